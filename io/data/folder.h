/* folder.h - a folder of class folders with image files (class_folders.h, part_folder.h). Files are
 * listed and their headers read when the data set is opened, decoded when they are wanted. */
#ifndef IO_DATA_FOLDER_H
#define IO_DATA_FOLDER_H

#include "data.h"

int io_folder_has(const char *folder, adj_dataset_part part);
adj_status io_folder_read(dataset *d, const char *folder, adj_dataset_part part);
/* Returns the seconds that opening took to read the files of d, or 0 if d is not a folder. */
double io_folder_seconds(const adj_dataset *d);
/* Returns the name of file i. */
const char *io_folder_path(const dataset *d, int64_t i);
/* Removes all files but these from the data set. */
void io_folder_keep(dataset *d, const int64_t *keep, int64_t kept);
/* Reads the headers to d->readings; settles the size and the source. */
adj_status io_folder_show(dataset *d, const adj_dataset_opts *o);

#endif
