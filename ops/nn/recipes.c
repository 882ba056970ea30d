/* recipes.c - a table of each model's best training options. */
#include <math.h>

#include "model_list.h"

const adj_recipe nn_recipe_lenet = {
    .optimizer = {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1, .weight_decay = 5e-4},
    .lr = 0.02,
    .schedule = ADJ_SCHEDULE_COSINE,
    .warmup = 1,
    .batch = 32,
    .shift = 2,
    .why = "no batch norm: a high rate only after a warm-up",
};

const adj_recipe nn_recipe_lenet5 = {
    .optimizer = {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1, .weight_decay = 5e-4},
    .lr = 0.02,
    .schedule = ADJ_SCHEDULE_COSINE,
    .warmup = 1,
    .batch = 32,
    .shift = 2,
    .why = "no batch norm: a high rate only after a warm-up",
};

const adj_recipe nn_recipe_residual = {
    .optimizer = {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1, .weight_decay = 5e-4},
    .lr = 0.1,
    .schedule = ADJ_SCHEDULE_COSINE,
    .warmup = 1,
    .batch = 64,
    .shift = 2,
    .why = "He et al. 2015, section 4.2: 0.1 and decay; shifts as their crops",
};

const adj_recipe nn_recipe_mobilenet_v1 = {
    .optimizer = {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1, .weight_decay = 1e-4},
    .lr = 0.1,
    .schedule = ADJ_SCHEDULE_COSINE,
    .warmup = 1,
    .batch = 32,
    .shift = 6,
    .why = "little decay on depthwise filters (Howard et al. 2017, section 3.2)",
};

const adj_recipe nn_recipe_vgg6 = {
    .optimizer =
        {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1, .weight_decay = 5e-4, .clip_norm = 1},
    .lr = 0.02,
    .schedule = ADJ_SCHEDULE_COSINE,
    .warmup = 1,
    .batch = 64,
    .shift = 2,
    .why = "no batch norm, eight layers: clipped gradients keep it finite",
};

const adj_recipe nn_recipe_ds_cnn = {
    .optimizer = {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1, .weight_decay = 1e-4},
    .lr = 0.2,
    .schedule = ADJ_SCHEDULE_COSINE,
    .warmup = 1,
    .batch = 64,
    .shift = 1,
    .why = "batch norm everywhere takes a high rate; little decay on depthwise filters",
};

adj_recipe adj_recipe_for(const adj_model *model, int64_t epochs)
{
    const adj_listed_model *listed;
    adj_recipe r = nn_recipe_lenet;

    for (int i = 0; (listed = adj_model_at(i)) != NULL; i++)
        if (model == &listed->model)
            r = *listed->recipe;
    r.warmup = fmin(r.warmup, epochs > 0 ? (double)epochs / 4 : 0);
    return r;
}

adj_schedule adj_recipe_schedule(const adj_recipe *recipe, int64_t epochs, int64_t steps)
{
    int64_t total;

    if (recipe == NULL || epochs < 0 || steps < 0 || __builtin_mul_overflow(epochs, steps, &total))
        return (adj_schedule){0};
    int64_t warmup = (int64_t)fmin(recipe->warmup * (double)steps, (double)total);
    adj_schedule s = {
        .kind = recipe->schedule, .base = recipe->lr, .warmup = warmup, .total = total};
    if (s.kind == ADJ_SCHEDULE_STEP || s.kind == ADJ_SCHEDULE_EXPONENTIAL)
        s.period = (total - warmup) / 3;
    return s;
}
