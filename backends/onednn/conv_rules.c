/* conv_rules.c - see conv_rules.h.
 *
 * Rows are in two tables, conv_rules_direct.c and conv_rules_impl.c. A row holds for a class of
 * convolutions on machines like those that it was measured on; where none holds, oneDNN's own order
 * stands. Its bounds are open where the reason is the same on every machine: oneDNN has slow code
 * for the class, or none; or a kernel for 8 channels does not take the time of one for 16. They are
 * closed where other instructions bring other kernels: those for AMX are up to 2.2 times as fast as
 * those for AVX-512 that the rows for bf16 put first. */
#include "conv_rules.h"

#include <string.h>

#include "conv_rules_rows.h"

/* In the order of their bits (conv_rules_rows.h). */
static const adj_op *const ops[] = {
    &adj_op_conv2d,
    &adj_op_conv2d_backprop_input,
    &adj_op_conv2d_backprop_filter,
    &adj_op_depthwise_conv2d_native,
    &adj_op_depthwise_conv2d_native_backprop_input,
    &adj_op_depthwise_conv2d_native_backprop_filter,
};
enum { N_OP = sizeof ops / sizeof *ops };

int conv_rule_count(void) { return conv_rules_direct.n + conv_rules_impl.n; }

const conv_rule *conv_rule_at(int i)
{
    const int n = conv_rules_direct.n;
    return i < n ? &conv_rules_direct.row[i] : &conv_rules_impl.row[i - n];
}

static int is_kind(const cpu_kind *k, machine m)
{
    return strcmp(m.cpu.vendor, k->vendor) == 0 && m.cpu.family == k->family &&
           (m.isa & k->isa) == k->isa;
}

int rule_holds(const conv_rule *r, machine m)
{
    if (r->not_on != NULL && is_kind(r->not_on, m))
        return 0;
    if (r->only_on != NULL && !is_kind(r->only_on, m))
        return 0;
    return m.version >= r->first && (r->last == OPEN || m.version <= r->last) &&
           (m.isa & r->isa) == r->isa && (r->below == OPEN || (m.isa & r->below) != r->below);
}

static unsigned op_bit(const adj_op *op)
{
    int i = 0;
    while (i < N_OP && ops[i] != op)
        i++;
    return 1U << i;
}

static int is_for(const conv_rule *r, const adj_node *n)
{
    return (r->ops & op_bit(n->op)) != 0 && (r->dtypes >> n->in[0]->type.dtype & 1) != 0 &&
           r->applies(&((const adj_conv_attrs *)n->attrs)->geom);
}

const conv_rule *rule_for(const adj_node *n, conv_preference preference, machine m)
{
    for (int i = 0; i < conv_rule_count(); i++) {
        const conv_rule *r = conv_rule_at(i);
        if (r->prefers == preference && rule_holds(r, m) && is_for(r, n))
            return r;
    }
    return NULL;
}
