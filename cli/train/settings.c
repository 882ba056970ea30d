/* settings.c - what the command line leaves open, after the model's recipe. */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "settings.h"

enum { SCALE_INTERVAL = 2000 }; /* PyTorch's */

static void set_default(int64_t *option, int64_t value)
{
    if (*option == UNSET)
        *option = value;
}

static void set_default_real(double *option, double value)
{
    if (*option < 0)
        *option = value;
}

static double usual_rate(const adj_optimiser_opts *o)
{
    if (o->kind != ADJ_SGD)
        return 0.001;
    return o->momentum == 0 ? 0.05 : 0.01;
}

/* The recipe's rate and decay are for its own optimizer; another one's are the usual. */
static void set_optimizer_defaults(train_opts *o, adj_recipe *r)
{
    const char *own = adj_optimiser_name(&r->optimiser);
    adj_optimiser_opts given;

    if (o->optimizer == NULL)
        o->optimizer = own;
    if (strcmp(o->optimizer, own) != 0 && adj_optimiser_from_name(o->optimizer, &given) == ADJ_OK) {
        given.clip_norm = r->optimiser.clip_norm;
        r->optimiser = given;
        r->lr = usual_rate(&given);
    }
    set_default_real(&o->lr, r->lr);
    set_default_real(&o->weight_decay, r->optimiser.weight_decay);
    set_default_real(&o->clip, r->optimiser.clip_norm);
}

void set_train_defaults(train_opts *o)
{
    o->model = o->model != NULL ? o->model : "lenet";
    o->backend = o->backend != NULL ? o->backend : "onednn";
    o->precision = o->precision != NULL ? o->precision : "f32";
    o->math = o->math != NULL ? o->math : "exact";
    o->freeze = o->freeze != NULL ? o->freeze : "none";
    o->data.size = o->data.size != NULL ? o->data.size : data_defaults.size;
    o->data.resize = o->data.resize != NULL ? o->data.resize : data_defaults.resize;
    o->data.val_split = o->data.val_split >= 0 ? o->data.val_split : 0;
    set_default(&o->data.channels, 0);
    set_default(&o->data.limit, 0);
    set_default(&o->epochs, 10);
    set_default(&o->seed, 1);
    set_default(&o->shards, 0);
    set_default(&o->same_bits, o->shards > 0);
    set_default(&o->sync_batch_norm, 0);
    set_default(&o->accumulate, 1);
    set_default(&o->threads, 0);
    set_default(&o->every, 0);
    set_default(&o->patience, 0);
    set_default(&o->flip, 0);
    set_default(&o->cutout, 0);
    set_default_real(&o->jitter, 0);
    set_default_real(&o->mixup, 0);
    set_default_real(&o->loss_scale, 0);
    set_default(&o->scale_interval,
                strcmp(o->precision, "f16") == 0 && o->loss_scale == 0 ? SCALE_INTERVAL : 0);
    o->class_weights = o->class_weights != NULL ? o->class_weights : "none";

    adj_recipe recipe = adj_recipe_for(adj_model_find(o->model, NULL), o->epochs);
    set_optimizer_defaults(o, &recipe);
    o->schedule = o->schedule != NULL ? o->schedule : adj_schedule_name_at(recipe.schedule);
    set_default_real(&o->warmup, recipe.warmup);
    set_default_real(&o->smoothing, recipe.smoothing);
    set_default(&o->batch, recipe.batch);
    set_default(&o->shift, recipe.shift);
}

adj_recipe recipe_of(const train_opts *o)
{
    adj_recipe r = {.lr = o->lr,
                    .warmup = o->warmup,
                    .smoothing = o->smoothing,
                    .batch = o->batch,
                    .shift = o->shift};
    (void)adj_optimiser_from_name(o->optimizer, &r.optimiser);
    (void)adj_schedule_from_name(o->schedule, &r.schedule);
    r.optimiser.weight_decay = o->weight_decay;
    r.optimiser.clip_norm = o->clip;
    return r;
}

/* value 0: it is left out; "flip" has none to be told. */
static void append(char text[AUGMENTATION_TEXT], const char *name, double value, int is_flag)
{
    const size_t used = strlen(text), room = AUGMENTATION_TEXT - used;
    const char *between = used > 0 ? ", " : "";
    if (value > 0 && is_flag)
        snprintf(text + used, room, "%s%s", between, name);
    else if (value > 0)
        snprintf(text + used, room, "%s%s %.4g", between, name, value);
}

const char *augmentation_text(const train_opts *o, char text[AUGMENTATION_TEXT])
{
    text[0] = '\0';
    append(text, "shift", (double)o->shift, 0);
    append(text, "flip", (double)o->flip, 1);
    append(text, "cutout", (double)o->cutout, 0);
    append(text, "jitter", o->jitter, 0);
    append(text, "mixup", o->mixup, 0);
    return text[0] != '\0' ? text : "none";
}
