/* settings.h - settings of a training: the command line's, else the model's recipe. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "adjoint_data.h"
#include "ops/nn/model_list.h"
#include "train.h"

/* Cases in which the command line may differ from the file. */
typedef enum { NEVER, TO_PROLONG, ALWAYS } freedom;

typedef struct {
    const char *key;   /* in a checkpoint */
    const char *usual; /* default; NULL: from the recipe, or none */
    option o;          /* option name without dashes, for messages */
    freedom may_change;
} setting;

enum { SETTINGS = 36 };
/* Lists the settings in a checkpoint: first the tool's, then those of adj_trainer_save. */
void list_settings(train_opts *o, setting list[SETTINGS]);
/* True if the command line has the option. */
int is_set(const option *o);

/* Returns options without any setting: NULL, UNSET or 0. */
train_opts unset_train_opts(void);
/* Sets all unset options to their defaults. */
void set_train_defaults(train_opts *o);
/* Returns the settings as a recipe, without those of the optimizer if its name is unknown. */
adj_recipe recipe_of(const train_opts *o);

enum { AUGMENTATION_TEXT = 120 };
/* "shift 2, flip, cutout 8, jitter 0.2, mixup 0.4"; "none". */
const char *augmentation_text(const train_opts *o, char text[AUGMENTATION_TEXT]);

/* ---- --class-weights: weight of each class in the loss ---- */

/* "none": *weights is NULL. "balanced": n / (classes * images of the class), as by scikit-learn's
 * compute_class_weight, so that all classes together count alike; 0 for a class without images.
 * "1,2.5,1": a number for each class. To be freed. CONTINUE, or an exit status after a complaint.
 */
int read_class_weights(const char *text, const adj_dataset *d, float **weights);

#endif
