/* pays.c - how many images make a slice, and where slices pay. */
#include "exec/backends.h"
#include "find.h"

/* Where slices are cut decides the order of sums over images, and so it follows from the graph and
 * the number of threads alone. */

/* Bytes that a slice may have at a time, which about fit into the second cache of most processors.
 */
static const double max_slice_bytes = 2 << 20;
/* The convolutions that math fast is for want so many pixels, as Winograd's algorithm does, and are
 * so fast that slices of twice these bytes pay, too. */
static const int64_t min_fast_pixels = 1024;
/* Below that nothing is gained that could be measured. */
static const double min_saved_bytes = 1 << 20;
/* So long a node of a slice is to take at least, or its call would count. */
static const double min_node_seconds = 5e-6;
/* So much does not fit into the second caches of a few threads, and goes to the last one, which is
 * others', too: inference was up to a fifth faster in slices from there on (AMD Zen 4). */
static const double min_shared_bytes = 4 << 20;

typedef struct {
    double image;   /* bytes that a slice of one image has at a time, if nothing is fused */
    double repeats; /* bytes that every slice reads */
    double saved;   /* bytes that pass memory only without slices */
    double seconds; /* nominal, of all images */
    int windows;    /* nodes that have some: convolutions and pools */
} effect;

/* What has windows is a pass of its own; what works element by element shares one. */
static int has_windows(const adj_node *n) { return adj_node_geom(n) != NULL; }

/* The value of a group, or one that enters it as images. */
static void add_value(const slice_search *s, const sliced_nodes *nodes, const adj_node *value,
                      effect *sum)
{
    const adj_uses *u = &s->e->uses[value->id];
    const int is_inside = is_member(s, nodes, value);
    int windows = 0, others = 0, leaves = u->is_root;
    for (int i = 0; i < u->n_user; i++) {
        const adj_node *reader = u->user[i];
        leaves |= !is_member(s, nodes, reader);
        if (!is_member(s, nodes, reader) ||
            !is_batch_operand(reader, adj_operand_position(reader, value)))
            continue;
        windows += has_windows(reader);
        others |= !has_windows(reader);
    }
    const double bytes = (double)adj_type_bytes(value->type);
    if (!is_inside)
        sum->saved += bytes * (windows + others - 1);
    else if (windows > 0 || has_windows(value))
        sum->saved += bytes * (windows + others + !leaves);
}

static int is_first_reader(const slice_search *s, const sliced_nodes *nodes, const adj_node *n,
                           int k)
{
    const adj_uses *u = &s->e->uses[n->in[k]->id];
    int i = 0;
    while (!is_member(s, nodes, u->user[i]))
        i++;
    return u->user[i] == n && adj_operand_position(n, n->in[k]) == k;
}

/* True if no later member reads the value. Users are in the order of their ids. */
static int is_last_reader(const slice_search *s, const sliced_nodes *nodes, const adj_node *n,
                          const adj_node *value)
{
    const adj_uses *u = &s->e->uses[value->id];
    int i = u->n_user - 1;
    while (i >= 0 && !is_member(s, nodes, u->user[i]))
        i--;
    return i < 0 || u->user[i]->id <= n->id;
}

/* Bytes of one image of all that is there at a time, in the order of the nodes: operands and the
 * result of the one that runs, and what later ones read. */
static double bytes_of_image(const slice_search *s, const sliced_nodes *nodes)
{
    double live = 0, max_live = 0;
    for (int i = 0; i < nodes->n; i++) {
        const adj_node *n = nodes->node[i];
        live += is_batch_result(n) ? (double)adj_type_bytes(n->type) : 0;
        for (int k = 0; k < n->n_in; k++)
            if (!is_member(s, nodes, n->in[k]) && is_batch_operand(n, k) &&
                is_first_reader(s, nodes, n, k))
                live += (double)adj_type_bytes(n->in[k]->type);
        max_live = live > max_live ? live : max_live;
        for (int k = 0; k < n->n_in; k++)
            if (is_batch_operand(n, k) && adj_operand_position(n, n->in[k]) == k &&
                is_last_reader(s, nodes, n, n->in[k]))
                live -= (double)adj_type_bytes(n->in[k]->type);
        if (is_batch_result(n) && is_last_reader(s, nodes, n, n)) /* it only leaves the group */
            live -= (double)adj_type_bytes(n->type);
    }
    return max_live / (double)nodes->batch;
}

static effect effect_of(const slice_search *s, const sliced_nodes *nodes)
{
    effect sum = {.image = bytes_of_image(s, nodes)};
    for (int i = 0; i < nodes->n; i++) {
        const adj_node *n = nodes->node[i];
        sum.windows += has_windows(n);
        sum.seconds += 2 * roofline_node(&s->e->roofline, n);
        if (is_batch_result(n))
            add_value(s, nodes, n, &sum);
        for (int k = 0; k < n->n_in; k++) {
            if (is_member(s, nodes, n->in[k]) || !is_first_reader(s, nodes, n, k))
                continue;
            if (is_batch_operand(n, k))
                add_value(s, nodes, n->in[k], &sum);
            else
                sum.repeats += (double)adj_type_bytes(n->in[k]->type);
        }
    }
    return sum;
}

/* Is it a chain of layers of which nothing but results remains? No sum is over images there, and no
 * gradient reads what is in between. */
static int is_inference(const slice_search *s, const sliced_nodes *nodes)
{
    int is = 1;
    for (int i = 0; i < nodes->n && is; i++) {
        const adj_uses *u = &s->e->uses[nodes->node[i]->id];
        is = nodes->node[i]->role == ADJ_ROLE_FORWARD && is_batch_result(nodes->node[i]);
        for (int k = 0; k < u->n_user; k++)
            is &= u->user[k]->role == ADJ_ROLE_FORWARD;
    }
    return is;
}

/* The most images that divide the batch and whose slice has no more than max_bytes; rather so many
 * that all threads get as many slices. */
static int64_t images_of(const adj_exec *e, int64_t batch, double image, double max_bytes)
{
    const int64_t min_slices = e->threads > 2 ? e->threads : 2;
    int64_t best = 1;
    int is_even = 0;
    for (int64_t k = 1; k <= batch / min_slices && (double)k * image <= max_bytes; k++) {
        const int even = batch / k % e->threads == 0;
        if (batch % k != 0 || (is_even && !even))
            continue;
        best = k;
        is_even |= even;
    }
    return best;
}

/* Does every convolution that math fast is for have pixels enough in slices of so many images? */
static int has_fast_pixels(const sliced_nodes *nodes, int64_t images)
{
    int has = 1;
    for (int i = 0; i < nodes->n; i++) {
        const adj_conv_geom *g = adj_node_geom(nodes->node[i]);
        if (g != NULL && g->groups == 1 && g->kh * g->kw > 1)
            has &= images * g->oh * g->ow >= min_fast_pixels;
    }
    return has;
}

/* How many images make a slice? */
static int64_t images_in_slice(const adj_exec *e, const sliced_nodes *nodes, double image)
{
    const int64_t n = images_of(e, nodes->batch, image, max_slice_bytes);
    return e->math == ADJ_MATH_EXACT || has_fast_pixels(nodes, n)
               ? n
               : images_of(e, nodes->batch, image, 2 * max_slice_bytes);
}

/* Is it worth trying? */
static int is_large(const adj_exec *e, const sliced_nodes *nodes, const effect *sum)
{
    const double n_slice = (double)(nodes->batch / nodes->images);
    return sum->saved >= min_saved_bytes && n_slice >= 2 * e->threads &&
           (double)nodes->images * sum->image <= 2 * max_slice_bytes &&
           n_slice * sum->repeats <= sum->saved &&
           sum->seconds * e->threads >= n_slice * nodes->n * min_node_seconds;
}

/* Is it worth it without trying? A batch that does not divide well, as a prime, has slices of an
 * image or two, or one thread has a slice more than others. */
static int pays(const adj_exec *e, const sliced_nodes *nodes, const effect *sum)
{
    const int64_t n_slice = nodes->batch / nodes->images,
                  max_of_thread = (n_slice + e->threads - 1) / e->threads;
    return (e->math == ADJ_MATH_EXACT || has_fast_pixels(nodes, nodes->images)) &&
           2 * (double)n_slice * sum->repeats <= sum->saved &&
           (double)nodes->batch * sum->image >= min_shared_bytes &&
           (double)nodes->images * sum->image >= max_slice_bytes / 4 &&
           20 * max_of_thread * e->threads <= 21 * n_slice;
}

int cut_slices(const slice_search *s, int large, sliced_nodes *nodes)
{
    const effect sum = effect_of(s, nodes);
    nodes->images = images_in_slice(s->e, nodes, sum.image);
    const int64_t n_slice = nodes->batch / nodes->images;
    if (sum.windows == 0 || !(sum.saved > 0) || n_slice < s->e->threads || n_slice < 2)
        return 0;
    const int is_worth_trying = is_large(s->e, nodes, &sum);
    nodes->pays = is_worth_trying && is_inference(s, nodes) && pays(s->e, nodes, &sum);
    return !large || is_worth_trying;
}
