/* part_folder.h - finds the folder of a data set that holds a part: DIR/train/, DIR/val/ or
 * DIR/test/ by name; without DIR/train/, DIR itself is the training split. */
#ifndef IO_DATA_PART_FOLDER_H
#define IO_DATA_PART_FOLDER_H

#include <dirent.h>
#include <limits.h>

#include "data.h"

typedef struct {
    char name[ADJ_VALIDATION + 1][NAME_MAX + 1]; /* by part; "": the part has no folder */
} part_folders;

/* Returns the part whose folders have this name of part_name.h, in any case; -1 for another name.
 */
int io_part_of_name(const char *name);
/* True if the entry e of folder is a folder and not ignored; then path is set to it. */
int io_is_class_folder(const char *folder, const struct dirent *e, char path[PATH_MAX]);
/* True if folder itself holds a file with the name of an image; also if folder cannot be read, so
 * that reading it reports that. */
int io_has_images(const char *folder);
/* Finds the folders in folder that have a part's name and folders in them; of several for one part
 * the first in the order of part_name.h. */
void io_find_parts(const char *folder, part_folders *p);
/* True if folder has the part; then path is set to the folder of its class folders. */
int io_find_part(const char *folder, const part_folders *p, adj_dataset_part part,
                 char path[PATH_MAX]);

#endif
