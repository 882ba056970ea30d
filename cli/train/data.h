/* data.h - --data and its options; and the lines about what a data set holds before the work
 * starts: images by part and class, files that are left out, classes without images. */
#ifndef CLI_TRAIN_DATA_H
#define CLI_TRAIN_DATA_H

#include "adjoint_data.h"
#include "adjoint_io.h"
#include "cli/command.h"

typedef struct {
    const char *path;          /* NULL: the embedded digits, the same for every --seed */
    const char *size, *resize; /* "32", "48x64" or "model"; a word of RESIZE_WORDS */
    /* Channels; 0: those of the images. Maximum number of images; 0: all. */
    int64_t channels, limit;
    int64_t skip_broken; /* image files that cannot be read are left out */
    double val_split;    /* this and limit select the same images for every --seed */
} data_opts;

#define RESIZE_WORDS "auto error" /* in the order of adj_resize_rule */
#define DATA_HELP                                                                                  \
    "digits (default), FILE.npz, or a folder with one folder of images per class, IDX files or "   \
    "CIFAR files"

/* Returns the defaults of all options. */
extern const data_opts data_defaults;

/* --size, which a training chooses and a model card keeps; --limit, --val-split and --skip-broken.
 * Both lists end without a name; those of --size are items. */
enum { SIZE_OPTIONS = 1, SIZE_ITEMS = 4, DATA_OPTIONS = 5 };
void list_data_options(data_opts *o, option items[SIZE_ITEMS], option list[DATA_OPTIONS]);

/* Sets size, channels and resize rule of the training images by --size and the model, whose own
 * size and channels *own is set to. CONTINUE, or an exit status after a complaint. */
int images_for_model(const data_opts *o, const char *model, adj_dataset_opts *takes,
                     adj_model_opts *own);
/* Returns the size of a model for the opened images d, 0 where it is the model's own, and its
 * channels: --size's, else those of the model or the images, whichever are more. */
adj_model_opts model_for_images(const data_opts *o, const adj_model_opts *own,
                                const adj_dataset *d);
/* Opens a part with the size, channels and rule of takes; like as in adj_dataset_opts. CONTINUE, or
 * an exit status after a complaint. *d is to be freed in every case. */
int open_data(const data_opts *o, const adj_dataset_opts *takes, adj_dataset_part part,
              const adj_dataset *like, adj_dataset **d);
/* Prints notes on images that are resized, gain or lose color, or are normalized values. channels:
 * the net's; can_choose: --size channels=N may be given. */
void say_prepared(int n_part, const adj_dataset *const part[], int64_t channels, int can_choose);
/* Returns the split for held-out accuracy: validation if the data have it or --val-split makes it,
 * else test. If there is neither, sets a validation split in o and prints a note. */
adj_dataset_part part_to_judge(data_opts *o);
/* Returns "train", "test" or "validation". */
const char *part_name(adj_dataset_part part);
const char *data_name(const char *path);

/* ---- what a data set holds ---- */

/* Prints the number of images of n parts, named by the words, and the files that each ignores.
 * path: as in data_opts. The first part's images are counted by class. */
void say_found(const char *path, int n, const adj_dataset *const part[], const char *const word[]);
/* Returns the number of images of each class, to be freed. */
int64_t *count_classes(const adj_dataset *d);
/* Prints a note if classes of the training split d have no images. */
void say_empty_classes(const adj_dataset *d);

/* ---- the splits that a net is evaluated on (eval.c) ---- */

enum { ALL_PARTS = ADJ_VALIDATION + 1 };

/* The splits to evaluate. */
typedef struct {
    int part; /* an adj_dataset_part, or ALL_PARTS */
    int n;
    adj_dataset *data[ALL_PARTS];
    const char *word[ALL_PARTS]; /* name of each split */
    adj_dataset
        *train; /* training data with the class names that the card lacks; NULL: not opened */
    adj_dataset_opts takes; /* the card's size, channels and resize rule */
} eval_data;

/* True if the net has the classes of the embedded digits by name. */
int knows_digits(const adj_model_card *card);
/* Opens the parts to evaluate, with images of the net's size, channels and classes. part: a word of
 * --part, or NULL for the default. CONTINUE, or an exit status after a complaint; e is to be closed
 * in every case. */
int open_parts(data_opts *o, const char *part, const adj_model_card *card, eval_data *e);
void close_parts(eval_data *e);

#endif
