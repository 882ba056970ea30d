/* recipe.c - see recipe.h. */
#include <stdio.h>
#include <string.h>

#include "ops/nn/names.h"
#include "recipe.h"

static const char *or_none(const char *name) { return name != NULL ? name : "none"; }

static void append(char text[RECIPE_TEXT], const char *name, double value, const char *unit)
{
    size_t used = strlen(text);
    if (value != 0)
        snprintf(text + used, RECIPE_TEXT - used, ", %s %.4g%s", name, value, unit);
}

const char *recipe_text(const adj_recipe *r, char text[RECIPE_TEXT])
{
    const adj_optimizer_opts *o = &r->optimizer;

    snprintf(text, RECIPE_TEXT, "%s, lr %.4g, %s", or_none(adj_optimizer_name(o)), r->lr,
             or_none(adj_schedule_name_at((int)r->schedule)));
    append(text, "warm-up", r->warmup, r->warmup == 1 ? " epoch" : " epochs");
    append(text, "weight decay", o->weight_decay, "");
    append(text, "clip", o->clip_norm, "");
    append(text, "smoothing", r->smoothing, "");
    append(text, "batch", (double)r->batch, "");
    append(text, "shift", (double)r->shift, "");
    return text;
}

json_t *recipe_json(const adj_recipe *r)
{
    return json_pack("{s:s, s:f, s:s, s:f, s:f, s:f, s:f, s:I, s:I}", "optimizer",
                     or_none(adj_optimizer_name(&r->optimizer)), "lr", r->lr, "schedule",
                     or_none(adj_schedule_name_at((int)r->schedule)), "warmup", r->warmup,
                     "weight_decay", r->optimizer.weight_decay, "clip", r->optimizer.clip_norm,
                     "smoothing", r->smoothing, "batch", (json_int_t)r->batch, "shift",
                     (json_int_t)r->shift);
}
