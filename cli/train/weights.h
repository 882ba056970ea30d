/* weights.h - initial weights of a training, and saving of its weights; settings in a checkpoint
 * file, for resuming. */
#ifndef CLI_WEIGHTS_H
#define CLI_WEIGHTS_H

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "cli/onnx_model.h"
#include "train.h"

/* ---- checkpoints ---- */

/* Sizes of the metadata that the tool adds to a checkpoint: options of the data, and of the
 * training as given. */
enum { CHECKPOINT_DATA = 12, CHECKPOINT_TEXT = 40 };
typedef struct {
    adj_metadata entry[CHECKPOINT_DATA];
    char text[CHECKPOINT_DATA][CHECKPOINT_TEXT];
} checkpoint_metadata;
/* m points into o and itself. */
void checkpoint_data(train_opts *o, checkpoint_metadata *m);

/* Reads o->checkpoint and sets the options that o leaves unset. The others must agree, except the
 * number of threads (a note), patience, and a larger --epochs, which extends the run and may come
 * with another --lr. o then points into *file, which the caller frees in every case. CONTINUE, or
 * an exit status after a complaint. */
int checkpoint_open(train_opts *o, adj_tensors **file);

/* Prints a note if a new run replaces the file of --checkpoint. */
void checkpoint_say_replaced(const train_opts *o);

/* ---- weights ---- */

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
