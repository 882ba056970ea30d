/* found.h - prints what a data set holds before the work starts: images by part and class, files
 * that are left out, classes without images. */
#ifndef CLI_TRAIN_FOUND_H
#define CLI_TRAIN_FOUND_H

#include "adjoint_data.h"

/* Prints the number of images of n parts, named by the words, and the files that each ignores.
 * path: as in data_opts. The first part's images are counted by class. */
void say_found(const char *path, int n, const adj_dataset *const part[], const char *const word[]);
/* Prints a note if classes of the training split d have no images. */
void say_empty_classes(const adj_dataset *d);

#endif
