/* memory.c - whether kernels write where values share memory, which plans prove to be allowed. The
 * plan that a user runs gives exactly the bits of the same plan with every value in memory of its
 * own. And a node or a group alone, whose operands are leaves that no plan overwrites, is computed
 * in place of each operand that its kernel says it may overwrite. */
#include <string.h>

#include "compare.h"
#include "exec/inspect.h"

/* Runs the trial's graph once: what outlives a run is read when the steps run again. *e is to be
 * freed in every case. */
static adj_status run_once(const trial *t, adj_exec_opts opts, int no_sharing, adj_exec **e)
{
    adj_exec_debug debug = *opts.debug;
    debug.no_sharing = no_sharing;
    opts.debug = &debug;
    opts.tune = 0;
    adj_status status = adj_exec_new(t->g, &opts, e);
    if (status == ADJ_OK)
        status = give_leaves(t, *e);
    return status == ADJ_OK ? adj_run(*e) : status;
}

static int repeats(const trial *t, const outcome *o)
{
    for (int i = 0; i < t->n_fetch; i++)
        if (!o->info[i].repeats)
            return 0;
    return 1;
}

void name_node(const adj_node *n, char *text, size_t size)
{
    const char *name = adj_node_name(n);
    snprintf(text, size, name[0] != '\0' ? "%s \"%.40s\"" : "%s", adj_node_op(n), name);
}

static void describe_damage(const exec_damage *d, outcome *o)
{
    char reader[80] = "the run's end", other[80];
    if (d->reader != NULL)
        name_node(d->reader, reader, sizeof reader);
    if (d->damaged != NULL || d->taken_over != NULL)
        name_node(d->damaged != NULL ? d->damaged : d->taken_over, other, sizeof other);
    if (d->damaged != NULL)
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "memory: a kernel writes over %s before %s reads it", other, reader);
    else if (d->taken_over != NULL)
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "memory: %s computed in place of %s differs from its result in separate memory",
                 reader, other);
    else /* of the same operands, by the same kernel */
        snprintf(o->plan_fault, sizeof o->plan_fault,
                 "%s depends on what its memory held before: its kernel leaves some of it "
                 "unwritten, or reads uninitialized memory",
                 reader);
}

adj_status find_damage(const trial *t, adj_exec_opts opts, outcome *o)
{
    exec_damage d;
    adj_exec *shared = NULL, *alone = NULL, *again = NULL;
    adj_status status = run_once(t, opts, 0, &shared);
    if (status == ADJ_OK)
        status = run_once(t, opts, 1, &alone);
    /* A kernel's fault, or that of shared memory? Where one reads what it never wrote, its result
     * depends on memory, too, but no value is written over. */
    if (status == ADJ_OK && !repeats(t, o))
        status = run_once(t, opts, 1, &again);
    if (status != ADJ_OK)
        outcome_message(o, adj_exec_message(again != NULL   ? again
                                            : alone != NULL ? alone
                                                            : shared));
    else if ((again == NULL || exec_find_damage(again, alone, &d) == 0) &&
             exec_find_damage(shared, alone, &d) > 0 && (again == NULL || d.damaged != NULL))
        describe_damage(&d, o);
    adj_exec_free(shared);
    adj_exec_free(alone);
    adj_exec_free(again);
    return status;
}

/* ---- claims to work in place ---- */

void name_operand(const adj_node *n, int k, char *text, size_t size)
{
    const char *name = k < ADJ_NAMED_OPERANDS ? n->op->operand[k] : NULL;
    snprintf(text, size, name != NULL ? "operand %d (%.40s)" : "operand %d", k, name);
}

adj_status find_false_alias(adj_exec *e, outcome *o)
{
    exec_false_alias f;
    char operand[80];
    const int found = exec_find_false_alias(e, &f);
    if (found <= 0)
        return found < 0 ? ADJ_ENOMEM : ADJ_OK;
    const int k = adj_operand_position(f.result, f.operand);
    if (k >= 0)
        name_operand(f.result, k, operand, sizeof operand);
    else /* in a group, and after transposes */
        snprintf(operand, sizeof operand, "%s", adj_node_op(f.operand));
    snprintf(
        o->plan_fault, sizeof o->plan_fault,
        "memory: %s by %.60s computed in place of %s differs from its result in separate memory",
        adj_node_op(f.result), f.impl, operand);
    return ADJ_OK;
}

void report_plan_fault(comparison *c, const outcome *o, compare_row *row)
{
    const int has_other =
        row->verdict != ADJ_VERDICT_PASS || is_wrong(&row->isolated) || !row->repeats;
    if (o->plan_fault[0] == '\0' || (has_other && !o->wrong_reorder))
        return;
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = o->wrong_reorder ? ADJ_BLAME_PLAN : ADJ_BLAME_KERNEL;
    row->reason = log_text(&c->log, "%s", o->plan_fault);
}
