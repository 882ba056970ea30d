/* predict.h - input and pictures of adjoint predict: image files named on a command line; a picture
 * of how much a class depends on each pixel. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "adjoint_fit.h"
#include "io/data/string_list.h"

typedef struct {
    string_list paths; /* to be freed */
    int64_t left_out;  /* number of files in folders without the name of an image */
} file_list;

/* Adds the path; of a folder, the images in it and below by name (io/data/names.h), in the
 * order of their bytes. Images too deep are left out. Returns 0 after a complaint of a folder that
 * cannot be read or has no images. */
int files_add(file_list *list, const char *path);

/* Writes a gray PNG of the net's size: the gradient of the class's logit with respect to the
 * pixels, its largest absolute value over the channels, scaled so that 255 is the largest of the
 * picture. CONTINUE, or an exit status after a complaint. */
int write_saliency(adj_predictor *p, const char *path, const float pixels[], int64_t class);

#endif
