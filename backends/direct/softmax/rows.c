/* rows.c - a job of softmax.h. Loops run along the rows, each shifted by its maximum m:
 *   p = exp(z - m) / s     log p = z - m - log s     s = sum(exp(z - m))
 * Compiled once per instruction set, with -fno-trapping-math, as loops.c is. */
#include "backends/direct/arith.h"
#include "backends/direct/exp_log.h"
#include "softmax.h"

typedef struct {
    const softmax *p;
    ptrdiff_t first, n;          /* rows */
    const float *logits, *dense; /* [classes][SOFTMAX_ROWS]; dense: labels, or NULL */
    float max[SOFTMAX_ROWS];
    double *exps; /* [classes][SOFTMAX_ROWS], if they are needed again */
    double sum[SOFTMAX_ROWS], log_sum[SOFTMAX_ROWS];
    int32_t label[SOFTMAX_ROWS]; /* integer labels; -1 beyond the rows */
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
    memset(line + b->n * pitch, 0, (size_t)((SOFTMAX_ROWS - b->n) * pitch) * sizeof *line);
    for (ptrdiff_t j = 0; j < b->p->classes; j++)
        for (int r = 0; r < SOFTMAX_ROWS; r++)
            column[j * SOFTMAX_ROWS + r] = line[r * pitch + j];
}

static void read_labels(block *b, const int32_t *label)
{
    for (int r = 0; r < SOFTMAX_ROWS; r++)
        b->label[r] = r < b->n ? label[b->first + r] : -1;
}

/* ---- the sums ---- */

static void find_max(block *b)
{
    float max[SOFTMAX_ROWS];
    memcpy(max, b->logits, sizeof max);
    for (ptrdiff_t j = 1; j < b->p->classes; j++) {
        const float *z = b->logits + j * SOFTMAX_ROWS;
#pragma omp simd
        for (int r = 0; r < SOFTMAX_ROWS; r++)
            max[r] = z[r] > max[r] ? z[r] : max[r];
    }
    memcpy(b->max, max, sizeof max);
}

static void sum_exps(block *b)
{
    const int keeps = softmax_keeps_exps(b->p);
    double sum[SOFTMAX_ROWS] = {0}, e[SOFTMAX_ROWS];
    for (ptrdiff_t j = 0; j < b->p->classes; j++) {
        const float *z = b->logits + j * SOFTMAX_ROWS;
#pragma omp simd
        for (int r = 0; r < SOFTMAX_ROWS; r++) {
            e[r] = exponential((double)z[r] - (double)b->max[r]);
            sum[r] += e[r];
        }
        if (keeps)
            memcpy(b->exps + j * SOFTMAX_ROWS, e, sizeof e);
    }
#pragma omp simd
    for (int r = 0; r < SOFTMAX_ROWS; r++) {
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
        const float *label = b->dense + j * SOFTMAX_ROWS;
#pragma omp simd
        for (int r = 0; r < SOFTMAX_ROWS; r++)
            target[r] = keep * (double)label[r] + spread;
        return;
    }
#pragma omp simd
    for (int r = 0; r < SOFTMAX_ROWS; r++)
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
    float y[SOFTMAX_ROWS];
    double loss[SOFTMAX_ROWS] = {0}, target[SOFTMAX_ROWS];
    for (ptrdiff_t j = 0; j < b->p->classes; j++) {
        const float *z = b->logits + j * SOFTMAX_ROWS;
        targets_of(b, j, target);
#pragma omp simd
        for (int r = 0; r < SOFTMAX_ROWS; r++) {
            const double term = -target[r] * log_probability(b, z, r);
            loss[r] += target[r] == 0 ? 0 : term;
        }
    }
    for (int r = 0; r < SOFTMAX_ROWS; r++)
        y[r] = is_left_out(b, r) ? 0 : (float)loss[r];
    store_reals(b->p->dtype, b->n, (char *)result + tensor_bytes(b->p->dtype, b->first), y);
}

/* Computes class j of the other results. */
ALWAYS void results_of(const block *b, softmax_result result, ptrdiff_t j, float *restrict y)
{
    const float *z = b->logits + j * SOFTMAX_ROWS;
    const double *e = b->exps + j * SOFTMAX_ROWS;
    double target[SOFTMAX_ROWS] = {0};
    if (result == LOSS_GRAD)
        targets_of(b, j, target);
#pragma omp simd
    for (int r = 0; r < SOFTMAX_ROWS; r++) {
        const double v =
            result == LOG_PROBABILITY ? log_probability(b, z, r) : e[r] / b->sum[r] - target[r];
        y[r] = (float)v;
    }
}

/* Writes all classes of these results, as rows. */
ALWAYS void write_rows(const block *b, softmax_result result, float *restrict line, void *dst)
{
    const ptrdiff_t k = b->p->classes, pitch = b->p->pitch, step = rows_at_once(b);
    float y[SOFTMAX_ROWS];
    for (ptrdiff_t j = 0; j < k; j++) {
        results_of(b, result, j, y);
        for (int r = 0; r < SOFTMAX_ROWS; r++)
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
    const ptrdiff_t first = job * SOFTMAX_ROWS;
    block b = {.p = p,
               .first = first,
               .n = min(p->rows - first, SOFTMAX_ROWS),
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
