/* found.h - the lines before the work that say what the data are: images by part and class, what is
 * left out, classes without images. */
#ifndef CLI_TRAIN_FOUND_H
#define CLI_TRAIN_FOUND_H

#include "adjoint_data.h"

/* Prints a line of what is in n parts, which the words name, and a line for each of what is left
 * out. path: as in data_opts. The first part's classes are counted one by one. */
void say_found(const char *path, int n, const adj_dataset *const part[], const char *const word[]);
/* Prints a note if classes of the training part d have no images. */
void say_empty_classes(const adj_dataset *d);

#endif
