/* recipe.h - a recipe as text and as JSON. */
#ifndef CLI_RECIPE_H
#define CLI_RECIPE_H

#include <jansson.h>

#include "ops/nn/model_list.h"

enum { RECIPE_TEXT = 200 };
/* "nesterov, lr 0.02, cosine, warm-up 1 epochs, weight decay 0.0005, batch 32, shift 2"; settings
 * of 0 are omitted. */
const char *recipe_text(const adj_recipe *r, char text[RECIPE_TEXT]);
/* Returns an object with all fields but why; NULL when out of memory. */
json_t *recipe_json(const adj_recipe *r);

#endif
