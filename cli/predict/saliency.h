/* saliency.h - a picture of how much a class depends on each pixel. */
#ifndef CLI_PREDICT_SALIENCY_H
#define CLI_PREDICT_SALIENCY_H

#include "adjoint_fit.h"

/* Writes a gray PNG of the net's size: the gradient of the class's logit with respect to the
 * pixels, its largest absolute value over the channels, scaled so that 255 is the largest of the
 * picture. CONTINUE, or an exit status after a complaint. */
int write_saliency(adj_predictor *p, const char *path, const float pixels[], int64_t class);

#endif
