/* branch.c - If whose condition is known while loading: the nodes of one branch take its place. */
#include "table.h"

int import_if(call *n)
{
    import *f = n->f;
    const numbers *condition = in_known(n, 0);
    if (condition == NULL || condition->n != 1)
        return refuse(n, "its condition is no truth value");
    const int is_true = number_at(condition, 0) != 0;
    const Onnx__AttributeProto *a = attribute(n, is_true ? "then_branch" : "else_branch");
    const int n_refused = f->n_refused;
    if (a == NULL || a->g == NULL || (int)a->g->n_output != n->n_out)
        return refuse(n, "its branch is missing, or has another number of results");
    if (!add_initializers(f, a->g) || !import_nodes(f, a->g))
        return 0;
    if (f->n_refused > n_refused)
        return refuse(n, "a node of its branch is not supported");
    for (int i = 0; i < n->n_out; i++) {
        const char *name = a->g->output[i]->name;
        const value *v = name != NULL ? find_value(f, name) : NULL;
        if (v == NULL)
            return refuse(n, "no node computes a result of its branch");
        n->out[i] = *v;
    }
    return 1;
}
