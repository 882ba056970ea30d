/* optim_check.c - checks the options of an optimizer before a node is added. */
#include <float.h>

#include "nn.h"

/* Checks the groups' settings. Their patterns are matched with parameters later (optim.c). */
static adj_status check_groups(adj_graph *g, const adj_optimizer_opts *o)
{
    if (o->n_groups < 0 || (o->n_groups > 0 && o->groups == NULL))
        return adj_fail(g, ADJ_EARG, "adj_optimizer: groups is %s (n_groups is %d)",
                        o->groups == NULL ? "NULL" : "given", o->n_groups);
    for (int i = 0; i < o->n_groups; i++) {
        const adj_param_group *group = &o->groups[i];
        if (group->pattern == NULL)
            return adj_fail(g, ADJ_EARG, "adj_optimizer: groups[%d].pattern is NULL", i);
        if (!(group->weight_decay >= 0 && group->weight_decay <= DBL_MAX))
            return adj_fail(g, ADJ_EARG,
                            "adj_optimizer: groups[%d].weight_decay is out of range (got %g, "
                            "expected 0 or more)",
                            i, group->weight_decay);
        if (!(group->rate >= 0 && group->rate <= FLT_MAX))
            return adj_fail(g, ADJ_EARG,
                            "adj_optimizer: groups[%d].rate is out of range (got %g, expected 0 "
                            "to FLT_MAX)",
                            i, group->rate);
    }
    return ADJ_OK;
}

/* Checks the numbers of the options. Comparisons are negated so that NaN fails too. */
static adj_status check_numbers(adj_graph *g, const adj_optimizer_opts *o)
{
    const double below_one = 0x1.fffffffffffffp-1;
    const struct {
        const char *name;
        double value, most;
        const char *expected;
    } numbers[] = {{"momentum", o->momentum, below_one, "0 to below 1"},
                   {"beta1", o->beta1, below_one, "0 to below 1"},
                   {"beta2", o->beta2, below_one, "0 to below 1"},
                   {"lr", o->lr, FLT_MAX, "0 to FLT_MAX"},
                   {"epsilon", o->epsilon, DBL_MAX, "0 or more"},
                   {"weight_decay", o->weight_decay, DBL_MAX, "0 or more"},
                   {"clip_norm", o->clip_norm, DBL_MAX, "0 or more"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i].value >= 0 && numbers[i].value <= numbers[i].most))
            return adj_fail(g, ADJ_EARG, "adj_optimizer: %s is out of range (got %g, expected %s)",
                            numbers[i].name, numbers[i].value, numbers[i].expected);
    return ADJ_OK;
}

adj_status nn_check_optimizer(adj_graph *g, const adj_optimizer_opts *o)
{
    if (o->kind != ADJ_SGD && o->kind != ADJ_ADAM && o->kind != ADJ_ADAMW && o->kind != ADJ_RMSPROP)
        return adj_fail(g, ADJ_EARG, "adj_optimizer: kind is unknown (got %d)", (int)o->kind);
    if (o->nesterov && o->momentum == 0)
        return adj_fail(g, ADJ_EARG, "adj_optimizer: nesterov requires a momentum (got 0)");
    if (o->n_trained < 0 || (o->n_trained > 0 && o->trained == NULL))
        return adj_fail(g, ADJ_EARG, "adj_optimizer: trained is %s (n_trained is %d)",
                        o->trained == NULL ? "NULL" : "given", o->n_trained);
    if (check_numbers(g, o) != ADJ_OK || check_groups(g, o) != ADJ_OK)
        return ADJ_EARG;
    return o->loss_scale != NULL ? nn_check_loss_scale(g, o->loss_scale) : ADJ_OK;
}
