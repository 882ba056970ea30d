/* class_weights.h - train --class-weights: weight of each class in the loss. */
#ifndef CLI_TRAIN_CLASS_WEIGHTS_H
#define CLI_TRAIN_CLASS_WEIGHTS_H

#include "adjoint_data.h"

/* "none": *weights is NULL. "balanced": n / (classes * images of the class), as by scikit-learn's
 * compute_class_weight, so that all classes together count alike; 0 for a class without images.
 * "1,2.5,1": a number for each class. To be freed. CONTINUE, or an exit status after a complaint.
 */
int read_class_weights(const char *text, const adj_dataset *d, float **weights);

#endif
