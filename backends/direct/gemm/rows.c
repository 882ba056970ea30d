/* rows.c - computes rows of a pass's positions: see gemm.h. Compiled once per instruction set
 * and type. */
#include "backends/direct/epilogue_vector.h"
#include "backends/direct/micro_gemm.h"
#include "backends/direct/padded_rows.h"
#include "filter.h"

typedef struct { /* state of a thread */
    const gemm *p;
    const adj_call *call;
    ptrdiff_t number;   /* number of the portion and image; -1 if none yet */
    const real *src;    /* src of the image */
    ptrdiff_t image_at; /* elements of the result before the image */
    real *dst; /* result of the image; if it is cast, the thread's buffer, which begins with */
    ptrdiff_t dst_at; /* this element of the result */
    real *cast, *windows, *sums;
    conv_range panels; /* panels being computed */
    const real **row;  /* rows of src, from first_row on */
    ptrdiff_t first_row;
    ptrdiff_t *at; /* slices of a row of windows, from the first on */
    row_ring ring;
    epilogue_operands epilogue; /* epilogue of the products; its addend is the image's */
} worker;

/* Rows of a pass in an image. */
typedef struct {
    const gemm_pass *a;
    ptrdiff_t first, end, columns;
} chunk;

/* A panel of the filter: outputs from `output` on. */
typedef struct {
    const real *filter;
    ptrdiff_t output, vectors, pitch;
} panel;

/* ---- rows of src ---- */

/* Finds the rows that a chunk reads: s->row[i] is row s->first_row + i. */
static void find_rows(worker *s, ptrdiff_t first, ptrdiff_t end)
{
    const gemm *p = s->p;
    const ptrdiff_t stride = p->pass[0].h.stride;
    const padded_rows rows = {.height = p->src.h,
                              .line = p->src.w * p->src.c,
                              .left = p->chunk.left * p->src.c,
                              .row = p->chunk.row};
    s->first_row = first * stride - p->chunk.top;
    find_padded_rows(&rows, &s->ring, s->src, s->first_row,
                     (end - 1) * stride + p->chunk.bottom + 1, s->row);
}

/* Returns row `row`, at the pass's first column. */
static inline const real *row_of(const worker *s, const gemm_pass *a, ptrdiff_t row)
{
    return s->row[row - s->first_row] + (s->p->chunk.left - a->w.pad) * s->p->src.c;
}

/* Returns the elements of the image's result before row `row` of the pass's positions. */
static ptrdiff_t element_at(const worker *s, const gemm_pass *a, ptrdiff_t row)
{
    return ((a->h.first + row * a->h.step) * s->p->dst.w + a->w.first) * s->p->dst.c;
}

/* Returns the position of these elements before a cast. */
static real *result_at(const worker *s, const gemm_pass *a, ptrdiff_t row)
{
    return s->dst + (element_at(s, a, row) - s->dst_at);
}

/* Returns the outputs of the panels being computed. */
static conv_range outputs_of(const worker *s)
{
    const ptrdiff_t end = gemm_panel_at(s->p, s->panels.end - 1).end * VECTOR;
    return (conv_range){gemm_panel_at(s->p, s->panels.first).first * VECTOR, min(end, s->p->dst.c)};
}

/* True if the panel's last vector has lanes beyond the outputs. */
static int is_rest(const worker *s, const panel *f)
{
    return f->output + f->vectors * VECTOR > s->p->dst.c;
}

/* Sets where the sums of a chunk's row i go: to the result, with the epilogue; outputs that do
 * not fill a vector go to a buffer, without the epilogue. */
static micro_gemm sums_of(const worker *s, const chunk *b, const panel *f, ptrdiff_t i)
{
    micro_gemm m = {.rows = b->columns, .vectors = f->vectors, .b = f->filter, .b_pitch = f->pitch};
    const epilogue_operands *e = &s->epilogue;
    if (is_rest(s, f)) {
        m.c = s->sums + i * b->columns * VECTOR;
        m.c_pitch = VECTOR;
        return m;
    }
    m.c = result_at(s, b->a, b->first + i) + f->output;
    m.c_pitch = m.addend_pitch = b->a->w.step * s->p->dst.c;
    m.bias = e->bias != NULL ? e->bias + f->output : NULL;
    m.addend = e->addend != NULL ? e->addend + element_at(s, b->a, b->first + i) + f->output : NULL;
    m.has_relu = e->has_relu;
    return m;
}

/* ---- products of rows in place ---- */

/* Sets m->a and m->b to the in-bounds part of the row's windows; without one the sum stays empty.
 */
static void find_slices(const worker *s, const gemm_pass *a, ptrdiff_t row, micro_gemm *m)
{
    const conv_range t = conv_taps_inside(&a->h, row);
    const ptrdiff_t top = row * a->h.stride - a->h.pad, first = t.first * a->slices;
    ptrdiff_t n = 0;
    if (t.first >= t.end || a->slices == 0) {
        m->a = m->b;
        m->prefetch = NULL;
        return;
    }
    m->depth = a->depth;
    m->a_pitch = a->w.stride * s->p->src.c;
    m->a = row_of(s, a, top + t.first * a->h.dilation);
    m->b += first * a->depth * m->b_pitch;
    for (ptrdiff_t k = first; k < t.end * a->slices; k++)
        s->at[n++] = row_of(s, a, top + k / a->slices * a->h.dilation) +
                     k % a->slices * a->w.dilation * s->p->src.c - m->a;
    m->more = n - 1;
    m->more_at = s->at + 1;
}

/* Prefetches the row of src that the next chunk will read in place of this one. */
static void prefetch_next(const worker *s, const chunk *b, ptrdiff_t row, micro_gemm *m)
{
    const gemm *p = s->p;
    const ptrdiff_t stride = b->a->h.stride, line = p->src.w * p->src.c;
    const ptrdiff_t next = (row + p->chunk.rows - 1) * stride + p->chunk.bottom + 1;
    m->prefetch = (const char *)(s->src + next * line);
    m->prefetch_bytes = divide_up(stride * line * (ptrdiff_t)sizeof(real), b->columns);
}

static void multiply_rows(const worker *s, const chunk *b, const panel *f)
{
    const gemm_pass *a = b->a;
    for (ptrdiff_t row = b->first; row < b->end; row++) {
        micro_gemm m = sums_of(s, b, f, row - b->first);
        m.c_is_cold = !gemm_casts(s->p) && !is_rest(s, f);
        if (f->output == outputs_of(s).first && a == s->p->pass)
            prefetch_next(s, b, row, &m);
        find_slices(s, a, row, &m);
        REAL_TYPED(micro_gemm)(&m);
    }
}

/* ---- products of gathered windows, for rows of few positions ---- */

/* Copies the taps of row i to the windows of a row of positions. */
static void gather_row(const worker *s, const gemm_pass *a, ptrdiff_t row, ptrdiff_t i,
                       real *windows)
{
    const ptrdiff_t at = row * a->h.stride + i * a->h.dilation - a->h.pad, pixel = s->p->src.c;
    const real *src = at >= 0 && at < a->h.src ? row_of(s, a, at) : NULL;
    for (ptrdiff_t x = 0; x < a->w.dst; x++, windows += a->elements)
        for (ptrdiff_t j = 0; j < a->w.taps; j++)
            for (ptrdiff_t c = 0; c < pixel; c++)
                windows[j * pixel + c] =
                    src != NULL ? src[(x * a->w.stride + j * a->w.dilation) * pixel + c] : 0;
}

static void gather(const worker *s, const chunk *b)
{
    const gemm_pass *a = b->a;
    real *windows = s->windows;
    for (ptrdiff_t row = b->first; row < b->end; row++, windows += a->w.dst * a->elements)
        for (ptrdiff_t i = 0; i < a->h.taps; i++)
            gather_row(s, a, row, i, windows + i * a->w.taps * s->p->src.c);
}

static void multiply_windows(const worker *s, const chunk *b, const panel *f)
{
    micro_gemm m = sums_of(s, b, f, 0);
    m.rows *= b->end - b->first;
    m.depth = m.a_pitch = b->a->elements;
    m.a = s->windows;
    REAL_TYPED(micro_gemm)(&m);
}

/* ---- a chunk ---- */

/* Stores the sums of outputs that do not fill a vector, with their epilogue, to the result. */
static void store_rest(const worker *s, const chunk *b, ptrdiff_t output)
{
    const ptrdiff_t n = s->p->dst.c - output, step = b->a->w.step * s->p->dst.c;
    const real *sums = s->sums;
    for (ptrdiff_t row = b->first; row < b->end; row++) {
        epilogue_operands e = s->epilogue;
        real *dst = result_at(s, b->a, row);
        if (e.addend != NULL)
            e.addend += element_at(s, b->a, row);
        for (ptrdiff_t i = 0; i < b->columns; i++, sums += VECTOR, dst += step) {
            for (ptrdiff_t o = 0; o < n; o++)
                dst[output + o] = epilogue_element(&e, output + o, sums[o]);
            if (e.addend != NULL)
                e.addend += step;
        }
    }
}

static panel find_panel(const worker *s, const gemm_pass *a, ptrdiff_t i)
{
    const gemm *p = s->p;
    const gemm_panel at = gemm_panel_at(p, i);
    const ptrdiff_t packed = gemm_packed_at(p, a, at), vectors = at.end - at.first;
    const real *entering = s->call->in[p->filter.in];
    panel f = {.output = at.first * VECTOR, .vectors = vectors, .pitch = vectors * VECTOR};
    if (p->filter.by_reorder)
        f.filter = entering + packed;
    else if (packed >= 0)
        f.filter = (const real *)direct_scratch(s->call, a->filter) + packed;
    else {
        f.filter = entering + f.output;
        f.pitch = p->dst.c;
    }
    return f;
}

static void multiply_panel(const worker *s, const chunk *b, ptrdiff_t i)
{
    const gemm *p = s->p;
    const panel f = find_panel(s, b->a, i);
    if (p->is_gathered)
        multiply_windows(s, b, &f);
    else
        multiply_rows(s, b, &f);
    if (is_rest(s, &f))
        store_rest(s, b, f.output);
}

/* ---- what reaches padding ---- */

static const real *operand(const worker *s, int in) { return in >= 0 ? s->call->in[in] : NULL; }

/* Returns the epilogue's operands of the image. */
static epilogue_operands operands_of(const worker *s)
{
    const direct_epilogue *e = &s->p->epilogue;
    epilogue_operands o = {operand(s, e->bias_in), operand(s, e->addend_in), e->has_relu};
    if (o.addend != NULL)
        o.addend += s->image_at;
    return o;
}

/* Recomputes without padding, with their epilogue, the outputs of positions whose windows were
 * multiplied with padding. */
static void mend_outputs(const worker *s, const chunk *b, const conv_plain *plain,
                         conv_range outputs)
{
    const gemm *p = s->p;
    const gemm_pass *a = b->a;
    for (ptrdiff_t row = b->first; row < b->end; row++) {
        const int has_rows = !p->is_gathered || conv_is_whole(&a->h, conv_taps_inside(&a->h, row));
        for (ptrdiff_t x = 0; x < b->columns; x++) {
            const ptrdiff_t at = x * a->w.step * p->dst.c;
            real *y = result_at(s, a, row) + at;
            epilogue_operands e = {.has_relu = s->epilogue.has_relu}; /* plain has the bias */
            if (has_rows && conv_is_whole(&a->w, conv_taps_inside(&a->w, x)))
                continue;
            if (s->epilogue.addend != NULL)
                e.addend = s->epilogue.addend + element_at(s, a, row) + at;
            conv_plain_position(plain, row, x, outputs.first, outputs.end, y);
            for (ptrdiff_t o = outputs.first; o < outputs.end; o++)
                y[o] = epilogue_element(&e, o, y[o]);
        }
    }
}

/* Recomputes all positions that reach padding. */
static void mend(const worker *s, const chunk *b)
{
    const gemm *p = s->p;
    conv_plain plain = {.pass = {b->a->h, b->a->w},
                        .dtype = p->dtype,
                        .kw = p->filter.kw,
                        .inputs = p->src.c,
                        .src = s->src,
                        .bias = operand(s, p->epilogue.bias_in)};
    if (!p->filter.by_reorder) {
        conv_plain_set_filter(&plain, s->call->in[p->filter.in], p->dst.c, p->is_turned);
        mend_outputs(s, b, &plain, outputs_of(s));
        return;
    }
    for (ptrdiff_t i = s->panels.first; i < s->panels.end; i++) {
        const panel f = find_panel(s, b->a, i);
        plain.filter = f.filter;
        plain.first = f.output;
        plain.of_tap = p->src.c * f.pitch;
        plain.of_input = f.pitch;
        plain.of_output = 1;
        mend_outputs(s, b, &plain, (conv_range){f.output, min(f.output + f.pitch, p->dst.c)});
    }
}

/* Casts a chunk's results to the stored type. */
static void store_cast(const worker *s, const chunk *b)
{
    const gemm *p = s->p;
    const conv_range outputs = outputs_of(s);
    const int is_whole = outputs.end - outputs.first == p->dst.c;
    const ptrdiff_t pixels = (b->end - b->first) * b->columns;
    const ptrdiff_t times = is_whole ? 1 : pixels;
    const ptrdiff_t count = is_whole ? pixels * p->dst.c : outputs.end - outputs.first;
    const ptrdiff_t first = s->image_at + element_at(s, b->a, b->first) + outputs.first;
    const real *y = result_at(s, b->a, b->first) + outputs.first;
    for (ptrdiff_t i = 0; i < times; i++)
        store_reals(p->epilogue.stored, count,
                    (char *)s->call->out[0] +
                        tensor_bytes(p->epilogue.stored, first + i * p->dst.c),
                    y + i * p->dst.c);
}

static void compute(worker *s, const chunk *b, int is_finite)
{
    const gemm *p = s->p;
    if (gemm_casts(p))
        s->dst_at = element_at(s, b->a, b->first);
    if (p->is_gathered)
        gather(s, b);
    s->epilogue = operands_of(s);
    for (ptrdiff_t i = s->panels.first; i < s->panels.end; i++)
        multiply_panel(s, b, i);
    if (!is_finite)
        mend(s, b);
    if (gemm_casts(p))
        store_cast(s, b);
}

/* Computes rows from `first` on of every pass of an image. */
static void compute_chunk(worker *s, ptrdiff_t first, int is_finite)
{
    const gemm *p = s->p;
    find_rows(s, first, first + p->chunk.rows);
    for (int i = 0; i < p->n_pass; i++) {
        const gemm_pass *a = &p->pass[i];
        const ptrdiff_t columns =
            p->is_flat ? min(p->dst.w, p->pixels - first * p->dst.w) : a->w.dst;
        const chunk b = {a, first, min(first + p->chunk.rows, a->h.dst), columns};
        if (first < b.end && columns > 0)
            compute(s, &b, is_finite);
    }
}

/* Enters image number `number` and its panels: the images of the first portion of the outputs,
 * then those of the next. */
static void enter_image(worker *s, ptrdiff_t number)
{
    const gemm *p = s->p;
    const ptrdiff_t outputs = number / p->n, image = number % p->n;
    s->number = number;
    s->panels = (conv_range){gemm_panels(p) * outputs / p->output_chunks,
                             gemm_panels(p) * (outputs + 1) / p->output_chunks};
    s->src = (const real *)s->call->in[p->src_in] + image * p->src.h * p->src.w * p->src.c;
    s->image_at = image * p->dst.h * p->dst.w * p->dst.c;
    s->dst = gemm_casts(p) ? s->cast : (real *)s->call->out[0] + s->image_at;
    row_ring_forget(&s->ring);
}

/* Computes chunk number `number` of all images. */
static void compute_numbered(worker *s, ptrdiff_t number, int is_finite)
{
    const ptrdiff_t chunks = s->p->chunk.n;
    if (number / chunks != s->number)
        enter_image(s, number / chunks);
    compute_chunk(s, number % chunks * s->p->chunk.rows, is_finite);
}

static void multiply(const adj_call *call, job_range jobs, int thread, int is_finite)
{
    const gemm *p = call->state;
    char *own = direct_scratch(call, p->scratch.thread + p->scratch.per_thread * (size_t)thread);
    worker s = {.p = p,
                .call = call,
                .number = -1,
                .cast = (real *)(own + p->scratch.cast),
                .windows = (real *)(own + p->scratch.windows),
                .sums = (real *)(own + p->scratch.sums),
                .row = (const real **)(own + p->scratch.src_rows),
                .at = (ptrdiff_t *)(own + p->scratch.at),
                .ring = row_ring_at(own + p->scratch.ring, p->chunk.slots, p->chunk.row)};
    for (ptrdiff_t i = jobs.first; i < jobs.end; i++)
        compute_numbered(&s, i, is_finite);
}

const gemm_code TYPED(gemm) = {TYPED(gemm_prepare_filter), multiply};
