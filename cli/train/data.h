/* data.h - --data and the options that go with it. */
#ifndef CLI_TRAIN_DATA_H
#define CLI_TRAIN_DATA_H

#include "adjoint_data.h"
#include "adjoint_nn.h"
#include "cli/command.h"

typedef struct {
    const char *path;          /* NULL: the drawn digits, which do not depend on --seed: runs with
                                  different seeds can be compared */
    const char *size, *resize; /* "32", "48x64" or "model"; a word of RESIZE_WORDS */
    int64_t channels, limit;   /* 0: as they are; all */
    int64_t skip_broken;       /* image files that cannot be read are left out */
    double val_split;          /* this and limit draw the same images whatever --seed is */
} data_opts;

#define RESIZE_WORDS "auto error" /* in the order of adj_resize_rule */
#define DATA_HELP "digits (default), FILE.npz, or a folder: CLASS/*.png, IDX or CIFAR files"

/* As when no option is given. */
extern const data_opts data_defaults;

/* --size, --channels, --resize, --limit, --val-split, --skip-broken; the list ends without a name.
 */
enum { DATA_OPTIONS = 7 };
void list_data_options(data_opts *o, option list[DATA_OPTIONS]);

/* Opens a part for a model (NULL: of no known size): a folder's images get the model's size unless
 * --size says another. like as in adj_dataset_opts. CONTINUE, or an exit status after a complaint.
 * *d is to be freed in every case. */
int open_data(const char *command, const data_opts *o, const char *model, adj_dataset_part part,
              const adj_dataset *like, adj_dataset **d);
/* The options of a model that takes these images: size and channels. Says in a line what does not
 * fit and is resized; --resize error refuses it. */
int fit_model(const char *command, const data_opts *o, const char *model, const adj_dataset *d,
              adj_model_opts *options);
/* Returns the part by which a training is judged: validation if the data have it or --val-split
 * makes it, else test. Where there is neither, o gets a split for validation and a note says so. */
adj_dataset_part part_to_judge(data_opts *o);
/* "train", "test" or "validation". */
const char *part_name(adj_dataset_part part);
const char *data_name(const char *path);

#endif
