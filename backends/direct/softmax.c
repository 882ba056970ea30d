/* softmax.c - softmax and log_softmax over the last axis, softmax cross-entropy and its gradient
 * for the logits: ROWS rows at a time, one class after another, so that vectors are full even with
 * few classes. Loops run along the rows, each shifted by its maximum m:
 *
 *   s = sum(exp(z - m))
 *   p = exp(z - m) / s
 *   log p = z - m - log s
 *
 * The jobs are compiled once per instruction set, with -fno-trapping-math, as loops.c is. */
#include "arith.h"
#include "direct.h"
#include "exp_log.h"

enum { ROWS = 16 }; /* rows of a job */

typedef enum { PROBABILITY, LOG_PROBABILITY, LOSS, LOSS_GRAD } softmax_result;

typedef struct {
    direct_work work;
    softmax_result result;
    adj_dtype dtype;
    ptrdiff_t rows, classes;
    ptrdiff_t pitch;     /* elements from row to row in `line` */
    int logits, labels;  /* indices of the operands; labels is -1 if there are none */
    int is_sparse;       /* labels are integers */
    double keep, spread; /* a target is keep * label + spread */
    size_t per_thread;   /* bytes of scratch per thread, and offsets in it */
    size_t exps, line, logit_columns, label_columns;
} softmax;

/* True if the results need each exponential, not only their sum. */
static int keeps_exps(const softmax *p)
{
    return p->result == PROBABILITY || p->result == LOSS_GRAD;
}

typedef struct {
    const softmax *p;
    ptrdiff_t first, n;          /* rows */
    const float *logits, *dense; /* [classes][ROWS]; dense: labels, or NULL */
    float max[ROWS];
    double *exps; /* [classes][ROWS], if they are needed again */
    double sum[ROWS], log_sum[ROWS];
    int32_t label[ROWS]; /* integer labels; -1 beyond the rows */
} block;

/* ---- reading ---- */

/* Returns how many rows of a tensor are contiguous with the pitch of `line`. */
static ptrdiff_t rows_at_once(const block *b) { return b->p->pitch == b->p->classes ? b->n : 1; }

/* Returns the offset of row r in a tensor of rows, in bytes. */
static ptrdiff_t row_bytes(const block *b, ptrdiff_t r)
{
    return tensor_bytes(b->p->dtype, (b->first + r) * b->p->classes);
}

/* Reads the rows of an operand, transposed. Rows beyond b->n are zeros, whose results nothing
 * reads. */
static void read_columns(const block *b, const void *operand, float *restrict line,
                         float *restrict column)
{
    const ptrdiff_t pitch = b->p->pitch, step = rows_at_once(b);
    for (ptrdiff_t r = 0; r < b->n; r += step)
        load_reals(b->p->dtype, step * b->p->classes, line + r * pitch,
                   (const char *)operand + row_bytes(b, r));
    memset(line + b->n * pitch, 0, (size_t)((ROWS - b->n) * pitch) * sizeof *line);
    for (ptrdiff_t j = 0; j < b->p->classes; j++)
        for (int r = 0; r < ROWS; r++)
            column[j * ROWS + r] = line[r * pitch + j];
}

static void read_labels(block *b, const int32_t *label)
{
    for (int r = 0; r < ROWS; r++)
        b->label[r] = r < b->n ? label[b->first + r] : -1;
}

/* ---- the sums ---- */

static void find_max(block *b)
{
    float max[ROWS];
    memcpy(max, b->logits, sizeof max);
    for (ptrdiff_t j = 1; j < b->p->classes; j++) {
        const float *z = b->logits + j * ROWS;
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            max[r] = z[r] > max[r] ? z[r] : max[r];
    }
    memcpy(b->max, max, sizeof max);
}

static void sum_exps(block *b)
{
    const int keeps = keeps_exps(b->p);
    double sum[ROWS] = {0}, e[ROWS];
    for (ptrdiff_t j = 0; j < b->p->classes; j++) {
        const float *z = b->logits + j * ROWS;
#pragma omp simd
        for (int r = 0; r < ROWS; r++) {
            e[r] = exponential((double)z[r] - (double)b->max[r]);
            sum[r] += e[r];
        }
        if (keeps)
            memcpy(b->exps + j * ROWS, e, sizeof e);
    }
#pragma omp simd
    for (int r = 0; r < ROWS; r++) {
        b->sum[r] = sum[r];
        b->log_sum[r] = logarithm(sum[r]);
    }
}

/* ---- results ---- */

/* Computes the targets of class j. */
ALWAYS void targets_of(const block *b, ptrdiff_t j, double *restrict target)
{
    const double keep = b->p->keep, spread = b->p->spread;
    if (b->dense != NULL) {
        const float *label = b->dense + j * ROWS;
#pragma omp simd
        for (int r = 0; r < ROWS; r++)
            target[r] = keep * (double)label[r] + spread;
        return;
    }
#pragma omp simd
    for (int r = 0; r < ROWS; r++)
        target[r] = (b->label[r] == (int32_t)j ? keep : 0) + spread;
}

/* True if the row's label is -1: it is ignored and its results are 0. */
static int is_left_out(const block *b, int r) { return b->p->is_sparse && b->label[r] < 0; }

ALWAYS double log_probability(const block *b, const float *z, int r)
{
    return (double)z[r] - (double)b->max[r] - b->log_sum[r];
}

/* Writes the losses. A class whose target is 0 adds nothing, even where its probability is 0. */
static void write_losses(const block *b, void *result)
{
    float y[ROWS];
    double loss[ROWS] = {0}, target[ROWS];
    for (ptrdiff_t j = 0; j < b->p->classes; j++) {
        const float *z = b->logits + j * ROWS;
        targets_of(b, j, target);
#pragma omp simd
        for (int r = 0; r < ROWS; r++) {
            const double term = -target[r] * log_probability(b, z, r);
            loss[r] += target[r] == 0 ? 0 : term;
        }
    }
    for (int r = 0; r < ROWS; r++)
        y[r] = is_left_out(b, r) ? 0 : (float)loss[r];
    store_reals(b->p->dtype, b->n, (char *)result + tensor_bytes(b->p->dtype, b->first), y);
}

/* Computes class j of the other results. */
ALWAYS void results_of(const block *b, softmax_result result, ptrdiff_t j, float *restrict y)
{
    const float *z = b->logits + j * ROWS;
    const double *e = b->exps + j * ROWS;
    double target[ROWS] = {0};
    if (result == LOSS_GRAD)
        targets_of(b, j, target);
#pragma omp simd
    for (int r = 0; r < ROWS; r++) {
        const double v =
            result == LOG_PROBABILITY ? log_probability(b, z, r) : e[r] / b->sum[r] - target[r];
        y[r] = (float)v;
    }
}

/* Writes all classes of these results, as rows. */
ALWAYS void write_rows(const block *b, softmax_result result, float *restrict line, void *dst)
{
    const ptrdiff_t k = b->p->classes, pitch = b->p->pitch, step = rows_at_once(b);
    float y[ROWS];
    for (ptrdiff_t j = 0; j < k; j++) {
        results_of(b, result, j, y);
        for (int r = 0; r < ROWS; r++)
            line[r * pitch + j] = y[r];
    }
    for (int r = 0; r < b->n; r++)
        if (is_left_out(b, r))
            memset(line + r * pitch, 0, (size_t)k * sizeof *line);
    for (ptrdiff_t r = 0; r < b->n; r += step)
        store_reals(b->p->dtype, step * k, (char *)dst + row_bytes(b, r), line + r * pitch);
}

static void run_job(const adj_call *c, ptrdiff_t job, int thread)
{
    const softmax *p = c->state;
    char *own = direct_scratch(c, (size_t)thread * p->per_thread);
    float *line = (void *)(own + p->line), *logits = (void *)(own + p->logit_columns),
          *dense = (void *)(own + p->label_columns);
    const ptrdiff_t first = job * ROWS;
    block b = {.p = p,
               .first = first,
               .n = min(p->rows - first, ROWS),
               .logits = logits,
               .exps = (void *)(own + p->exps)};
    read_columns(&b, c->in[p->logits], line, logits);
    if (p->labels >= 0 && p->is_sparse)
        read_labels(&b, c->in[p->labels]);
    else if (p->labels >= 0) {
        read_columns(&b, c->in[p->labels], line, dense);
        b.dense = dense;
    }
    find_max(&b);
    sum_exps(&b);
    switch (p->result) {
    case PROBABILITY: write_rows(&b, PROBABILITY, line, c->out[0]); break;
    case LOG_PROBABILITY: write_rows(&b, LOG_PROBABILITY, line, c->out[0]); break;
    case LOSS: write_losses(&b, c->out[0]); break;
    case LOSS_GRAD: write_rows(&b, LOSS_GRAD, line, c->out[0]); break;
    }
}

const direct_code DIRECT(softmax) = {.job = run_job};

/* ---- the kernel: which nodes it accepts ---- */

#ifdef ISA_base

/* From this many classes on, the pitch of rows is an odd number of cache lines: with a power of
 * two, the same column of all rows would be in one set of the first cache. */
static const ptrdiff_t pad_from = 256;
static const ptrdiff_t max_classes = 1 << 14;  /* a thread holds ROWS times as many */
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
    const ptrdiff_t elems = ROWS * p->classes;
    size_t thread = 0, scratch = 0;
    p->pitch = p->classes < pad_from ? p->classes : round_up(p->classes, 32) + 16;
    p->exps = reserve(&thread, keeps_exps(p) ? elems : 0, sizeof(double));
    p->line = reserve(&thread, ROWS * p->pitch, sizeof(float));
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
    p.work = (direct_work){.code = d->isa->softmax, .jobs = divide_up(rows, ROWS)};
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

#endif
