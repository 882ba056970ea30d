/* settings.h - settings of a training: the command line's, else the model's recipe. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "ops/nn/model_list.h"
#include "train.h"

/* Cases in which the command line may differ from the file. */
typedef enum { NEVER, TO_PROLONG, ALWAYS } freedom;

typedef struct {
    const char *key;   /* in a checkpoint */
    const char *usual; /* where it is not given; NULL: the recipe says, or it may stay unset */
    freedom may_change;
    option o; /* its name without the dashes, which messages have */
} setting;

enum { SETTINGS = 36 };
/* Lists what a checkpoint keeps of a run: first what the tool adds, then adj_trainer_save's. */
void list_settings(train_opts *o, setting list[SETTINGS]);
/* True if the command line has the option. */
int is_set(const option *o);

/* Returns options without any setting: NULL, UNSET or 0. */
train_opts unset_train_opts(void);
/* Sets all unset options to their defaults. */
void set_train_defaults(train_opts *o);
/* The settings as a recipe: the optimizer's are none if there is none of the name. */
adj_recipe recipe_of(const train_opts *o);

enum { AUGMENTATION_TEXT = 120 };
/* "shift 2, flip, cutout 8, jitter 0.2, mixup 0.4"; "none". */
const char *augmentation_text(const train_opts *o, char text[AUGMENTATION_TEXT]);

#endif
