/* conv.c - the six convolutions, dense, grouped and depthwise, forward with an optional bias.
 *
 * To oneDNN an activation has dimensions n, c, h, w and a filter (g,) o, i, h, w, whatever the
 * order in memory; our [kh, kw, ic/groups, oc] filter, and the depthwise [kh, kw, c, m], are the
 * same memory. The candidates are all implementations in oneDNN's lists for channels-last
 * activations, for its preferred layout, and for Winograd's algorithm where that is allowed,
 * ordered by estimated time. oneDNN always chooses the filter's layout: its kernels for plain
 * filters are slow. */
#include <stdio.h>
#include <string.h>

#include "backends/efficiency.h"
#include "onednn.h"

/* Roles of the values, or their gradients, in the convolution. */
typedef enum { X, W, Y, B, N_ROLE } role;
typedef enum { CHANNELS_LAST, ANY_LAYOUT, WINOGRAD, N_CHOICE } choice;

/* By direction: the roles of the operands and of the result. */
static const struct {
    role in[2], result;
} roles[] = {
    [FORWARD] = {{X, W}, Y},
    [INPUT] = {{W, Y}, X},
    [FILTER] = {{X, Y}, W},
};

/* Indexed by the role of the result. */
static const dnnl_prop_kind_t directions[] = {
    [X] = dnnl_backward_data, [W] = dnnl_backward_weights, [Y] = dnnl_forward_training};
static const task tasks[] = {
    [X] = TASK_BACKWARD_DATA, [W] = TASK_BACKWARD_WEIGHTS, [Y] = TASK_FORWARD};

/* Arguments for a value and for its gradient. */
static const int args[][2] = {[X] = {DNNL_ARG_SRC, DNNL_ARG_DIFF_SRC},
                              [W] = {DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_WEIGHTS},
                              [Y] = {DNNL_ARG_DST, DNNL_ARG_DIFF_DST},
                              [B] = {DNNL_ARG_BIAS, DNNL_ARG_BIAS}};
static const dnnl_query_t md_queries[][2] = {
    [X] = {dnnl_query_src_md, dnnl_query_diff_src_md},
    [W] = {dnnl_query_weights_md, dnnl_query_diff_weights_md},
    [Y] = {dnnl_query_dst_md, dnnl_query_diff_dst_md}};

enum { MAX_OFFERS = 64 };

typedef struct { /* an acceptable implementation */
    choice layouts;
    int position; /* index among the acceptable ones of these layouts */
    double seconds;
} offer;

typedef struct {
    onednn *o;
    const adj_group *group;
    const adj_prep *prep;
    const adj_conv_geom *geom;
    const adj_node *value[N_ROLE]; /* value[B] may be NULL */
    role result;
    int grouped;
    md plain[N_ROLE], any[N_ROLE];
    choice layouts; /* layouts of the list being searched */
    int position;   /* index of the next acceptable one in it */
    int wanted;     /* index of the one to select */
    int n_offer;
    offer offer[MAX_OFFERS];
    const char *why_not; /* reason why the last implementation was skipped */
} conv;

/* Matches a convolution with its bias. Biases after gradients are left to other kernels, as are
 * those after a depthwise convolution with a multiplier, for which oneDNN has no kernel of its
 * own. */
static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const int direction = conv_direction(root->op);
    if (direction == 0 || max < 1)
        return 0;
    int n = tail_match(root, uses, max, group);
    if (n <= 1 || (group[1]->op == &adj_op_bias_add && direction != FORWARD))
        return n > 1 ? 1 : n;
    const adj_conv_geom *g = &((const adj_conv_attrs *)root->attrs)->geom;
    return g->groups > 1 && g->oc > g->ic ? 1 : n;
}

static int fits_int(const adj_conv_geom *g)
{
    const int64_t numbers[] = {g->sh, g->sw, g->dh, g->dw, g->pt, g->pb, g->pl, g->pr};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] > INT16_MAX)
            return 0;
    return 1;
}

static adj_status read_node(conv *c, char *why)
{
    const adj_node *n = c->group->node[0];
    const int direction = conv_direction(n->op);
    if (direction == 0 || !tail_of(c->group, &c->value[B]))
        return ADJ_ENOKERNEL; /* left to another kernel, which gives the reason */
    c->geom = &((const adj_conv_attrs *)n->attrs)->geom;
    c->grouped = c->geom->groups > 1;
    c->result = roles[direction].result;
    c->value[roles[direction].in[0]] = n->in[0];
    c->value[roles[direction].in[1]] = n->in[1];
    c->value[c->result] = c->group->out[0];
    adj_status status = onednn_check_image(n, c->geom, why);
    if (status == ADJ_OK)
        status = onednn_check_products(c->o, n, why);
    if (status == ADJ_OK && !fits_int(c->geom)) {
        snprintf(why, ADJ_WHY, "%s: strides, dilations or pads beyond oneDNN's", n->op->name);
        return ADJ_ENOKERNEL;
    }
    return status;
}

/* Describes [n,h,w,c] as n, c, h, w. */
static dnnl_status_t describe_activation(conv *c, role r, int64_t n, int64_t ch, int64_t h,
                                         int64_t w)
{
    const adj_allocator *a = &c->o->allocator;
    const int64_t dims[] = {n, ch, h, w}, nhwc[] = {h * w * ch, 1, w * ch, ch};
    dnnl_data_type_t type = onednn_type(c->value[r]->type.dtype);
    dnnl_status_t status = md_new(a, &c->plain[r], 4, dims, type, nhwc);
    if (status == dnnl_success)
        status = md_new(a, &c->any[r], 4, dims, type, NULL);
    return status;
}

/* Describes [kh, kw, i, g*o] as g, o, i, kh, kw; without g if there are no groups. */
static dnnl_status_t describe_filter(conv *c)
{
    const adj_conv_geom *f = c->geom;
    int64_t g = f->groups, o = f->oc / g, i = f->ic / g;
    const int64_t dims[] = {g, o, i, f->kh, f->kw};
    const int64_t strides[] = {o, 1, f->oc, f->kw * i * f->oc, i * f->oc};
    const adj_allocator *a = &c->o->allocator;
    dnnl_data_type_t type = onednn_type(c->value[W]->type.dtype);
    int skip = !c->grouped, n_dim = 5 - skip;
    dnnl_status_t status = md_new(a, &c->plain[W], n_dim, dims + skip, type, strides + skip);
    if (status == dnnl_success)
        status = md_new(a, &c->any[W], n_dim, dims + skip, type, NULL);
    return status;
}

static dnnl_status_t describe(conv *c)
{
    const adj_conv_geom *g = c->geom;
    dnnl_status_t status = describe_activation(c, X, g->n, g->ic, g->ih, g->iw);
    if (status == dnnl_success)
        status = describe_activation(c, Y, g->n, g->oc, g->oh, g->ow);
    if (status == dnnl_success)
        status = describe_filter(c);
    if (status == dnnl_success && c->value[B] != NULL)
        status = md_new(&c->o->allocator, &c->plain[B], 1, &g->oc,
                        onednn_type(c->value[B]->type.dtype), (const int64_t[]){1});
    return status;
}

static void free_descriptors(conv *c)
{
    for (int r = 0; r < N_ROLE; r++) {
        md_free(&c->o->allocator, c->plain[r]);
        md_free(&c->o->allocator, c->any[r]);
    }
}

/* True if the list for these layouts is searched. Winograd's errors exceed the bounds of a plain
 * sum, so it must be allowed. */
static int may_try(const conv *c, choice layouts)
{
    return layouts != WINOGRAD ||
           (c->o->math == ADJ_MATH_FAST && !c->grouped && c->group->node[0]->type.dtype == ADJ_F32);
}

/* True if that value is a gradient here: all roles except Y are gradients as the result. */
static int is_gradient(const conv *c, role r) { return (r == c->result) == (r != Y); }

static const_md layout_in(const conv *c, const_pd d, role r)
{
    return r == B ? c->plain[B]
                  : dnnl_primitive_desc_query_md(d, md_queries[r][is_gradient(c, r)], 0);
}

/* True if d is worth running. */
static int acceptable(conv *c, const_pd d)
{
    int last = dnnl_memory_desc_equal(layout_in(c, d, X), c->plain[X]);
    if (c->layouts != CHANNELS_LAST && last &&
        dnnl_memory_desc_equal(layout_in(c, d, Y), c->plain[Y]))
        return 0; /* the same one as in the first list */
    implementation i = {.task = tasks[c->result],
                        .geom = c->geom,
                        .dtype = c->group->node[0]->type.dtype,
                        .name = pd_name(d),
                        .channels_last = last};
    const char *reason = quarantined(c->o, &i);
    if (reason == NULL && is_reference(d))
        reason = "there is only reference code";
    if (reason != NULL)
        c->why_not = reason;
    return reason == NULL;
}

/* Returns the estimated seconds with the reorders from and to other layouts; an invariant
 * operand is reordered once. */
static double estimate(const conv *c, const_pd d)
{
    const adj_prep *p = c->prep;
    double seconds = efficiency_seconds(onednn_efficiencies, c->group, p, pd_name(d));
    for (int r = 0; r < B; r++) {
        const int in = r == (int)c->result ? -1 : adj_group_in(c->group, c->value[r]);
        const adj_layout *given = in >= 0 ? p->in[in] : NULL;
        const int is_invariant = in >= 0 && in < 32 && (p->invariant >> in & 1) != 0;
        const_md there = given != NULL ? given->memory : c->plain[r];
        if (!is_invariant && !layout_is_same(layout_in(c, d, (role)r), there))
            seconds += efficiency_reorder(p, (double)adj_type_bytes(c->value[r]->type));
    }
    return seconds;
}

/* Inserts d into the offers by estimated seconds; accepts none. */
static int list_offer(void *user, const_pd d)
{
    conv *c = user;
    if (!acceptable(c, d) || c->n_offer == MAX_OFFERS)
        return 0;
    const offer new = {c->layouts, c->position++, estimate(c, d)};
    int i = c->n_offer++;
    for (; i > 0 && c->offer[i - 1].seconds > new.seconds; i--)
        c->offer[i] = c->offer[i - 1];
    c->offer[i] = new;
    return 0;
}

static int is_wanted(void *user, const_pd d)
{
    conv *c = user;
    return acceptable(c, d) && c->position++ == c->wanted;
}

/* Searches oneDNN's list for one combination of layouts. */
static dnnl_status_t query(conv *c, choice layouts, pd_accept *accept, pd *out)
{
    const adj_conv_geom *g = c->geom;
    const md *a = layouts == CHANNELS_LAST ? c->plain : c->any;
    c->layouts = layouts;
    c->position = 0;
    conv_request r = {.direction = directions[c->result],
                      .kind =
                          layouts == WINOGRAD ? dnnl_convolution_winograd : dnnl_convolution_direct,
                      .x = a[X],
                      .w = c->any[W],
                      .b = c->plain[B],
                      .y = a[Y],
                      .stride = {g->sh, g->sw},
                      .dilation = {g->kh > 1 ? g->dh - 1 : 0, g->kw > 1 ? g->dw - 1 : 0},
                      .before = {g->pt, g->pl},
                      .after = {g->pb, g->pr}};
    return pd_conv(&(pd_query){c->o->engine, c->o->attr}, &r, accept, c, out);
}

static dnnl_status_t find(conv *c, int candidate, pd *out)
{
    for (choice layouts = CHANNELS_LAST; layouts < N_CHOICE; layouts++) {
        if (!may_try(c, layouts))
            continue;
        dnnl_status_t status = query(c, layouts, list_offer, out);
        if (status == dnnl_out_of_memory)
            return status;
    }
    if (candidate >= c->n_offer)
        return dnnl_unimplemented;
    c->wanted = c->offer[candidate].position;
    return query(c, c->offer[candidate].layouts, is_wanted, out);
}

/* Sets the layouts of the operands and the result. Fails if one value in two roles needs two
 * layouts. */
static adj_status agree(conv *c, const_pd d, adj_prep *p)
{
    const char *axes[] = {"nchw", c->grouped ? "goihw" : "oihw", "nchw", "a"};
    const adj_layout *seen[N_ROLE] = {NULL};

    for (int r = 0; r < N_ROLE; r++) {
        if (c->value[r] == NULL)
            continue;
        adj_status status =
            layout_of(c->o, layout_in(c, d, (role)r), c->plain[r], axes[r], &seen[r]);
        if (status != ADJ_OK)
            return status;
        if (r == (int)c->result)
            p->out[0] = seen[r];
        else
            p->in[adj_group_in(c->group, c->value[r])] = seen[r];
        for (int k = 0; k < r; k++)
            if (c->value[k] == c->value[r] && seen[k] != seen[r]) {
                snprintf(p->why, ADJ_WHY, "%s: an operand used twice would need two layouts",
                         c->group->node[0]->op->name);
                return ADJ_ENOKERNEL;
            }
    }
    return ADJ_OK;
}

static adj_status make_primitive(const conv *c, const_pd d, adj_prep *p)
{
    primitive_arg list[N_ROLE + 1] = {{0}};
    int n = 0;

    for (int r = 0; r < N_ROLE; r++) {
        if (c->value[r] == NULL)
            continue;
        int is_result = r == (int)c->result;
        list[n++] = (primitive_arg){args[r][is_gradient(c, (role)r)], is_result ? AT_OUT : AT_IN,
                                    is_result ? 0 : (size_t)adj_group_in(c->group, c->value[r]),
                                    layout_in(c, d, (role)r)};
    }
    return primitive_prepare(c->o, c->group->node[0], d, list, p);
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    conv c = {.o = backend, .group = g, .prep = p};
    pd d = NULL;
    adj_status status = read_node(&c, p->why);
    if (status != ADJ_OK)
        return status;

    dnnl_status_t found = describe(&c);
    if (found == dnnl_success)
        found = find(&c, candidate, &d);
    if (found != dnnl_success) {
        status = onednn_refuse(found, g->node[0]->op->name, p->why);
        if (status == ADJ_ENOKERNEL && c.why_not != NULL)
            snprintf(p->why, ADJ_WHY, "%s: oneDNN's implementation is left out: %s",
                     g->node[0]->op->name, c.why_not);
    }
    if (status == ADJ_OK)
        status = agree(&c, d, p);
    if (status == ADJ_OK)
        status = make_primitive(&c, d, p);
    if (status == ADJ_OK) {
        p->seconds = c.offer[candidate].seconds;
        /* images, or the inner dimension of a product, are distributed to threads */
        p->sums_by_threads = c.result == W || strstr(pd_name(d), "gemm") != NULL;
    }
    if (d != NULL)
        dnnl_primitive_desc_destroy(d);
    free_descriptors(&c);
    return status;
}

const adj_kernel onednn_conv = {.name = "convolution",
                                .match = match,
                                .prepare = prepare,
                                .run = primitive_run,
                                .drop = primitive_drop};
