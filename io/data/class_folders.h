/* class_folders.h - finds the images of a part of a folder, and their classes.
 *
 * The classes are those of d->like if there is one. Else they are the class folders of the training
 * part, in the order of their bytes, that hold images in any part. */
#ifndef IO_DATA_CLASS_FOLDERS_H
#define IO_DATA_CLASS_FOLDERS_H

#include "data.h"
#include "string_list.h"

/* Appends the part's images to paths; sets labels, number, class names and left_out of d. */
adj_status io_list_classes(dataset *d, const char *folder, adj_dataset_part part,
                           string_list *paths);

#endif
