/* weights.h - initial weights of a training, and saving of its weights. */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "adjoint_fit.h"
#include "cli/onnx_model.h"
#include "train.h"

enum { MODEL_NAME = 80 };
/* Sets o->model, if no option has, to the built-in model that the card of --weights names; model
 * holds the name. */
void name_model(train_opts *o, char model[MODEL_NAME]);
/* Refuses data with other classes than an ONNX file whose weights are the initial ones. Returns
 * CONTINUE, or an exit status after an error message. */
int check_classes(const train_opts *o, const onnx_source *source, const adj_dataset *data);
/* Loads o->weights, if given, into t, and prints the result for each tensor unless all fit; else
 * prints which parameters of an ONNX file are new. data and channels: those of the training.
 * Returns CONTINUE, or an exit status after an error message. */
int load_start(const train_opts *o, const onnx_source *source, const adj_dataset *data,
               int64_t channels, adj_trainer *t);

/* Writes the parameters as they are to the file, with their model card. CONTINUE, or an exit status
 * after a complaint. in_folder: the folder also holds the best epoch's weights. output: as for
 * replace_output. */
int save_weights(const train_opts *o, const char *path, int in_folder, adj_trainer *t,
                 FILE *output);

#endif
