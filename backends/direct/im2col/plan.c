/* plan.c - the geometry of im2col.h: column tiles, rings, chunks, and what lies where
 * in the scratch. */
#include "backends/direct/arith.h"
#include "im2col.h"

enum {
    RING = 96 << 10,          /* elements of a ring, about: part of the second cache */
    CHUNK = 8 << 10,          /* elements of a chunk of gathered pixels, about: the first cache */
    SLACK = 2 * IM2COL_LANES, /* elements behind each buffer that loops may read or write */
    MIN_CHUNK = 16,
    MAX_CHUNK = 128
};
static const ptrdiff_t max_elements = 1 << 24; /* of any part of the scratch */

static int fits(const adj_conv_geom *g)
{
    return direct_conv_fits(g, 1 << 16) && g->groups == 1 && g->ic <= IM2COL_CHANNELS &&
           g->n <= INT32_MAX && g->kh <= IM2COL_K && g->kw <= IM2COL_K &&
           (g->dh == 1 || g->kh == 1) && (g->dw == 1 || g->kw == 1) && g->sh <= IM2COL_STRIDE &&
           g->sw <= IM2COL_STRIDE;
}

/* A tile of c columns reads c/sw + planes + 1 pixels of dy at most. */
static int plan_dx(im2col *d, size_t *thread, size_t each)
{
    const adj_conv_geom *g = &d->g;
    d->slots = min(divide_up(g->kh, g->sh), max(g->oh, 1));
    d->planes = divide_up(g->kw, g->sw);
    ptrdiff_t room = max(RING / (d->slots * d->pitch), 4 * d->planes + 8);
    ptrdiff_t columns = room >= g->ow ? g->iw : (room - d->planes - 1) * g->sw;
    d->n_column_tile = max(divide_up(g->iw, max(columns, 1)), 1);
    d->column_tile = divide_up(g->iw, d->n_column_tile);
    d->pixels = min(g->ow, d->column_tile / g->sw + d->planes + 1);
    d->plane = round_up((d->column_tile + (d->planes + 2) * g->sw) * g->ic + d->span + SLACK,
                        IM2COL_LANES);
    d->row = d->pixels * d->pitch + SLACK;
    ptrdiff_t outputs = d->pixels * g->oc;
    if (d->slots * d->row > max_elements || outputs > max_elements ||
        d->planes * d->plane > max_elements)
        return 0;
    d->work.jobs = max(min(d->work.threads, g->n * g->ih), 1);
    d->ring = reserve_ring(thread, d->slots, d->row, each);
    d->cols = reserve(thread, d->planes * d->plane, each);
    d->outputs = reserve(thread, d->dtype == ADJ_BF16 ? outputs : 0, each);
    d->sums = reserve(thread, d->dtype == ADJ_BF16 ? d->column_tile * g->ic + SLACK : 0, each);
    return 1;
}

static int plan_dw(im2col *d, size_t *thread, size_t each)
{
    const adj_conv_geom *g = &d->g;
    ptrdiff_t pixels = g->n * g->oh * g->ow;
    d->slots = g->kh + 1; /* the last is zeros */
    d->row =
        round_up((max(g->iw + g->pl, (g->ow - 1) * g->sw + g->kw)) * g->ic + SLACK, IM2COL_LANES);
    d->chunk = min(max(CHUNK / d->pitch, MIN_CHUNK), MAX_CHUNK);
    d->work.jobs = min(IM2COL_SEGMENTS, max(divide_up(pixels, d->chunk), 1));
    ptrdiff_t outputs = d->chunk * d->o_pitch, sums = d->pitch * d->o_pitch;
    if (d->slots * d->row > max_elements || outputs > max_elements ||
        d->work.jobs * sums > max_elements)
        return 0;
    d->ring = reserve_ring(thread, d->slots, d->row, each);
    d->cols = reserve(thread, d->chunk * d->pitch + SLACK, each);
    d->outputs = reserve(thread, outputs, each);
    d->sums = reserve(thread, sums, each);
    return 1;
}

int im2col_plan(im2col *d, ptrdiff_t vector, size_t *scratch)
{
    const adj_conv_geom *g = &d->g;
    if (!fits(g))
        return 0;
    size_t each = d->dtype == ADJ_F64 ? sizeof(double) : sizeof(float), thread = 0;
    d->span = g->kw * g->ic;
    d->taps = g->kh * d->span;
    d->pitch = round_up(d->taps, vector);
    d->o_pitch = round_up(g->oc, vector);
    if (d->pitch * d->o_pitch > max_elements)
        return 0;
    int fine = d->is_dw ? plan_dw(d, &thread, each) : plan_dx(d, &thread, each);
    d->per_thread = thread;
    *scratch = 0;
    d->panels = reserve(scratch, d->is_dw ? 0 : d->pitch * g->oc, each);
    d->totals =
        reserve(scratch, d->is_dw ? d->work.jobs * d->taps * d->o_pitch : 0, sizeof(double));
    d->thread = reserve(scratch, d->work.threads, d->per_thread);
    return fine;
}
