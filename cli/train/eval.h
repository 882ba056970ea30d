/* eval.h - the splits of a data set that a net is evaluated on. */
#ifndef CLI_TRAIN_EVAL_H
#define CLI_TRAIN_EVAL_H

#include "adjoint_io.h"
#include "data.h"

enum { ALL_PARTS = ADJ_VALIDATION + 1 };

/* The splits to evaluate. */
typedef struct {
    int part; /* an adj_dataset_part, or ALL_PARTS */
    int n;
    adj_dataset *data[ALL_PARTS];
    const char *word[ALL_PARTS]; /* of each part */
    adj_dataset
        *train; /* training data with the class names that the card lacks; NULL: not opened */
    adj_dataset_opts takes; /* the card's size, channels and resize rule */
} eval_data;

/* True if the net has the classes of the embedded digits by name. */
int knows_digits(const adj_model_card *card);
/* Opens the parts to evaluate, with images of the net's size, channels and classes. part: a word of
 * --part, or NULL for the default. CONTINUE, or an exit status after a complaint; e is to be closed
 * in every case. */
int open_parts(const char *command, data_opts *o, const char *part, const adj_model_card *card,
               eval_data *e);
void close_parts(eval_data *e);

#endif
