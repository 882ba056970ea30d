/* test_recipes.c - the recipes are settings that can be trained with, and are fitted to a run. What
 * they reach is measured by tests/accuracy.sh. */
#include <criterion/criterion.h>
#include <string.h>

#include "adjoint_nn.h"
#include "tests/plan.h"

Test(recipes, every_model_has_one)
{
    for (int i = 0; adj_model_at(i) != NULL; i++) {
        const adj_model *m = adj_model_at(i);
        cr_assert_not_null(m->recipe, "%s", m->name);
        adj_recipe r = adj_recipe_for(m, 10);
        cr_expect_not_null(adj_optimiser_name(&r.optimiser), "%s", m->name);
        cr_expect_not_null(adj_schedule_name_at((int)r.schedule), "%s", m->name);
        cr_expect(r.lr > 0 && r.batch > 0 && r.shift >= 0 && r.shift <= 8, "%s", m->name);
        cr_expect(r.warmup >= 0 && r.warmup <= 2.5, "%s", m->name);
        cr_expect(r.smoothing >= 0 && r.smoothing < 1, "%s", m->name);
        cr_expect(r.why[0] != '\0' && strchr(r.why, '\n') == NULL, "%s", m->name);

        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *logits = adj_model_logits(g, m, &(adj_model_opts){.training = 1});
        adj_node *loss = adj_loss_softmax(logits, adj_input(g, "y", ADJ_I32, (adj_shape){1, {1}}));
        adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
        cr_expect_not_null(adj_training_updates(loss, lr, &r.optimiser), "%s: %s", m->name,
                           adj_graph_message(g));
    }
}

Test(recipes, fitted_to_the_run)
{
    const adj_recipe mine = {.lr = 0.5, .warmup = 2, .batch = 10, .why = "a test"};
    const adj_model model = {.recipe = &mine}, none = {0};

    cr_expect_eq(adj_recipe_for(&model, 100).warmup, 2);
    cr_expect_eq(adj_recipe_for(&model, 8).warmup, 2);
    cr_expect_eq(adj_recipe_for(&model, 1).warmup, 0.25);
    cr_expect_eq(adj_recipe_for(&model, 0).warmup, 0);
    cr_expect_eq(adj_recipe_for(&model, 1).lr, 0.5);
    cr_expect_eq(adj_recipe_for(&model, 1).batch, 10);
    cr_expect_gt(adj_recipe_for(NULL, 10).lr, 0);
    cr_expect_gt(adj_recipe_for(&none, 10).lr, 0);
}

/* Ten epochs of 20 steps, one of them warm-up. */
Test(recipes, rates)
{
    adj_recipe r = {.lr = 0.5, .warmup = 1, .schedule = ADJ_SCHEDULE_COSINE};
    adj_schedule s = adj_recipe_schedule(&r, 10, 20);

    cr_expect_float_eq(adj_schedule_rate(&s, 0), 0.025, 1e-15);
    cr_expect_float_eq(adj_schedule_rate(&s, 19), 0.5, 1e-15);
    cr_expect_float_eq(adj_schedule_rate(&s, 20 + 60), 0.375, 1e-15); /* (1 + cos 60) / 2 */
    cr_expect_float_eq(adj_schedule_rate(&s, 20 + 90), 0.25, 1e-15);
    cr_expect_float_eq(adj_schedule_rate(&s, 200), 0, 1e-15);

    r.warmup = 0.5;
    s = adj_recipe_schedule(&r, 10, 21); /* half of an odd number of steps: the whole part */
    cr_expect_float_eq(adj_schedule_rate(&s, 9), 0.5, 1e-15);
    cr_expect_float_eq(adj_schedule_rate(&s, 0), 0.05, 1e-15);

    /* a tenth after each third of what follows the warm-up */
    r = (adj_recipe){.lr = 0.5, .warmup = 1, .schedule = ADJ_SCHEDULE_STEP};
    s = adj_recipe_schedule(&r, 10, 20);
    cr_expect_float_eq(adj_schedule_rate(&s, 20 + 59), 0.5, 1e-15);
    cr_expect_float_eq(adj_schedule_rate(&s, 20 + 60), 0.05, 1e-15);
    cr_expect_float_eq(adj_schedule_rate(&s, 199), 0.005, 1e-15);
    r.schedule = ADJ_SCHEDULE_EXPONENTIAL;
    s = adj_recipe_schedule(&r, 10, 20);
    cr_expect_float_eq(adj_schedule_rate(&s, 20 + 120), 0.005, 1e-15);
}

Test(recipes, optimisers_have_names)
{
    for (int i = 0; adj_optimiser_name_at(i) != NULL; i++) {
        adj_optimiser_opts o;
        cr_assert_eq(adj_optimiser_from_name(adj_optimiser_name_at(i), &o), ADJ_OK);
        o.weight_decay = 0.3;
        o.clip_norm = 2;
        cr_expect_str_eq(adj_optimiser_name(&o), adj_optimiser_name_at(i));
    }
    cr_expect_null(adj_optimiser_name(&(adj_optimiser_opts){.momentum = 0.5}));
    cr_expect_null(adj_optimiser_name(NULL));
}
