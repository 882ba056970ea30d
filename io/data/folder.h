/* folder.h - a folder of class folders with image files. Files are listed and their headers read
 * when the data set is opened, decoded when they are wanted. */
#ifndef IO_DATA_FOLDER_H
#define IO_DATA_FOLDER_H

#include <dirent.h>

#include "data.h"
#include "string_list.h"

int io_folder_has(const char *folder, adj_dataset_part part);
adj_status io_folder_read(dataset *d, const char *folder, adj_dataset_part part);
/* Returns the seconds that opening took to read the files of d, or 0 if d is not a folder. */
double io_folder_seconds(const adj_dataset *d);
/* Returns the name of file i. */
const char *io_folder_path(const dataset *d, int64_t i);
/* Removes all files but these from the list. */
void io_folder_keep(dataset *d, const int64_t *keep, int64_t kept);
/* Reads the headers to d->readings; settles the size and the source. */
adj_status io_folder_show(dataset *d, const adj_dataset_opts *o);

/* ---- splits ----
 *
 * The folder of a part is DIR/train/, DIR/val/ or DIR/test/ by name; without DIR/train/, DIR itself
 * is the training split. */

typedef struct {
    char name[ADJ_VALIDATION + 1][NAME_MAX + 1]; /* by part; "": the part has no folder */
} part_folders;

/* Returns the part whose folders have this name of names.h, in any case; -1 for another name. */
int io_part_of_name(const char *name);
/* True if the entry e of folder is a folder and not ignored; then path is set to it. */
int io_is_class_folder(const char *folder, const struct dirent *e, char path[PATH_MAX]);
/* True if folder itself holds a file with the name of an image; also if folder cannot be read, so
 * that reading it reports that. */
int io_has_images(const char *folder);
/* Finds the folders in folder that have a part's name and folders in them; of several for one part
 * the first in the order of names.h. */
void io_find_parts(const char *folder, part_folders *p);
/* True if folder has the part; then path is set to the folder of its class folders. */
int io_find_part(const char *folder, const part_folders *p, adj_dataset_part part,
                 char path[PATH_MAX]);

/* ---- classes (class_folders.c) ----
 *
 * The classes are those of d->like if there is one. Else they are the class folders of the training
 * part, in the order of their bytes, that hold images in any part. */

/* Appends the part's images to paths; sets labels, number, class names and left_out of d. */
adj_status io_list_classes(dataset *d, const char *folder, adj_dataset_part part,
                           string_list *paths);

/* ---- what is not read (left_out.c) ----
 *
 * The files and folders of a data set that are not read are counted and described in one line. */

/* Reasons why a folder is no class. */
typedef enum { WITHOUT_IMAGES, WITHOUT_CLASSES, NO_PART, FOLDER_REASONS } left_out_reason;

enum { LEFT_OUT_ENDINGS = 16, LEFT_OUT_ENDING = 12, LEFT_OUT_NAMES = 100 };

typedef struct {
    char text[LEFT_OUT_ENDING]; /* ".bmp", lower case; "": none */
    int64_t n;                  /* files */
} left_out_ending;

typedef struct {
    int64_t ignored;                          /* names that are hidden or of an operating system */
    int64_t outside;                          /* files beside class folders */
    int64_t inside;                           /* folders in class folders */
    int64_t files;                            /* in class folders, with other endings than images */
    left_out_ending ending[LEFT_OUT_ENDINGS]; /* the first ones met */
    int n_ending;
    struct {
        int64_t n;
        char names[LEFT_OUT_NAMES]; /* names of the first ones */
        int is_cut;                 /* names has no room for more */
    } folder[FOLDER_REASONS];
} left_out;

/* Counts a file of a class folder that is neither an image nor ignored. */
void left_out_file(left_out *l, const char *name);
/* Counts a folder that is no class. */
void left_out_folder(left_out *l, left_out_reason reason, const char *name);
/* Writes the line; "" if nothing was left out. */
void left_out_text(const left_out *l, char text[ADJ_MESSAGE]);

#endif
