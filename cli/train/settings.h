/* settings.h - what a run is done with: the model's recipe, but for what the command line says. */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "train.h"

/* Sets what is still unset. */
void set_train_defaults(train_opts *o);
/* The settings as a recipe: the optimizer's are none if there is none of the name. */
adj_recipe recipe_of(const train_opts *o);

#endif
