/* softmax.c - the kernel of softmax.h: the nodes it accepts. */
#include "softmax.h"

#include "backends/direct/arith.h"

/* From this many classes on, the pitch of rows is an odd number of cache lines: with a power of
 * two, the same column of all rows would be in one set of the first cache. */
static const ptrdiff_t pad_from = 256;
static const ptrdiff_t max_classes = 1 << 14;  /* a thread holds SOFTMAX_ROWS times as many */
static const int64_t parallel_above = 1 << 12; /* logits */

static const struct {
    const adj_op *op;
    softmax_result result;
} ops[] = {{&adj_op_softmax, PROBABILITY},
           {&adj_op_log_softmax, LOG_PROBABILITY},
           {&adj_op_softmax_cross_entropy, LOSS},
           {&adj_op_sparse_softmax_cross_entropy, LOSS},
           {&adj_op_softmax_cross_entropy_grad, LOSS_GRAD},
           {&adj_op_sparse_softmax_cross_entropy_grad, LOSS_GRAD}};
enum { OPS = sizeof ops / sizeof *ops };

static void set_labels(const adj_group *g, softmax *p)
{
    const adj_node *n = g->node[0];
    p->labels = -1;
    if (n->n_in < 2)
        return;
    const double smoothing = ((const adj_value_attrs *)n->attrs)->value;
    p->labels = adj_group_in(g, n->in[1]);
    p->is_sparse = n->in[1]->type.dtype == ADJ_I32;
    p->keep = 1 - smoothing;
    p->spread = smoothing / (double)p->classes;
}

static size_t lay_out(softmax *p)
{
    const ptrdiff_t elems = SOFTMAX_ROWS * p->classes;
    size_t thread = 0, scratch = 0;
    p->pitch = p->classes < pad_from ? p->classes : round_up(p->classes, 32) + 16;
    p->exps = reserve(&thread, softmax_keeps_exps(p) ? elems : 0, sizeof(double));
    p->line = reserve(&thread, SOFTMAX_ROWS * p->pitch, sizeof(float));
    p->logit_columns = reserve(&thread, elems, sizeof(float));
    p->label_columns = reserve(&thread, p->labels < 0 || p->is_sparse ? 0 : elems, sizeof(float));
    p->per_thread = thread;
    reserve(&scratch, p->work.threads, thread);
    return scratch;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *prep)
{
    const direct *d = backend;
    const adj_node *n = g->node[0];
    int i = 0;
    while (i < OPS && ops[i].op != n->op)
        i++;
    if (candidate > 0 || g->n_node > 1 || i == OPS)
        return ADJ_ENOKERNEL;
    const adj_type logits = n->in[0]->type;
    const int64_t elems = adj_shape_elems(logits.shape),
                  classes = logits.shape.dim[logits.shape.rank - 1];
    if (logits.dtype == ADJ_F64)
        return direct_refuse(prep, "%s: direct has no kernel for f64", n->op->name);
    if (classes < 1 || classes > max_classes)
        return direct_refuse(prep, "%s: direct takes 1 to %d classes", n->op->name,
                             (int)max_classes);
    const ptrdiff_t rows = (ptrdiff_t)(elems / classes);
    softmax p = {.result = ops[i].result,
                 .dtype = logits.dtype,
                 .rows = rows,
                 .classes = (ptrdiff_t)classes,
                 .logits = adj_group_in(g, n->in[0])};
    p.work = (direct_work){.code = d->isa->softmax, .jobs = divide_up(rows, SOFTMAX_ROWS)};
    p.work.threads = elems > parallel_above ? (int)min(d->threads, p.work.jobs) : 1;
    set_labels(g, &p);
    prep->scratch = lay_out(&p);
    if (p.result != LOSS) /* a job is read completely before it is written */
        prep->alias[0].operands = 1u << p.logits;
    if (p.result == LOSS_GRAD && p.labels >= 0 && !p.is_sparse)
        prep->alias[0].operands |= 1u << p.labels;
    return direct_accept(d, g, prep, "softmax", &p, sizeof p);
}

static adj_status run(const adj_call *c)
{
    const adj_status status = adj_call_check_labels(c);
    return status == ADJ_OK ? direct_run(c) : status;
}

const adj_kernel direct_softmax = {
    .name = "softmax", .prepare = prepare, .run = run, .drop = direct_drop};
