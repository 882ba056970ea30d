/* settings.h - what a run is done with: the model's recipe, but for what the command line says. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "train.h"

/* Sets what is still unset. */
void set_train_defaults(train_opts *o);
/* The settings as a recipe: the optimizer's are none if there is none of the name. */
adj_recipe recipe_of(const train_opts *o);

enum { AUGMENTATION_TEXT = 120 };
/* "shift 2, flip, cutout 8, jitter 0.2, mixup 0.4"; "none". */
const char *augmentation_text(const train_opts *o, char text[AUGMENTATION_TEXT]);

#endif
