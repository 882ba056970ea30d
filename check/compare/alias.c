/* alias.c - a node or a group alone, computed in place of each operand that its kernel says it may
 * overwrite. Alone its operands are leaves, which no plan overwrites, so the claims are tried. */
#include <string.h>

#include "compare.h"
#include "exec/inspect.h"

/* Where operand is read: "operand 0 (input)"; of a group, and after transposes, its op. */
static void describe_operand(const adj_node *result, const adj_node *operand, char *text,
                             size_t size)
{
    const int k = adj_operand_position(result, operand);
    const char *name = k >= 0 && k < ADJ_NAMED_OPERANDS ? result->op->operand[k] : NULL;
    if (k < 0)
        snprintf(text, size, "%s", adj_node_op(operand));
    else if (name != NULL)
        snprintf(text, size, "operand %d (%s)", k, name);
    else
        snprintf(text, size, "operand %d", k);
}

adj_status find_false_alias(adj_exec *e, outcome *o)
{
    exec_false_alias f;
    char operand[80];
    const int found = exec_find_false_alias(e, &f);
    if (found <= 0)
        return found < 0 ? ADJ_ENOMEM : ADJ_OK;
    describe_operand(f.result, f.operand, operand, sizeof operand);
    snprintf(o->plan_fault, sizeof o->plan_fault,
             "memory: %s by %.60s, computed in place of %s, is another than in memory of its own",
             adj_node_op(f.result), f.impl, operand);
    return ADJ_OK;
}

void report_alias(adj_comparison *c, const outcome *o, adj_compare_row *row)
{
    if (o->plan_fault[0] == '\0' || row->verdict != ADJ_VERDICT_PASS || is_wrong(&row->isolated) ||
        !row->repeats)
        return;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = ADJ_BLAME_KERNEL;
    row->reason = report_text(c, "%s", o->plan_fault);
}
