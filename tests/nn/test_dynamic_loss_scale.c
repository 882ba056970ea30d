/* test_dynamic_loss_scale.c - the dynamic loss scale: its values when gradients overflow at known
 * steps, by the documented rule of torch.cuda.amp.GradScaler, and values that a skipped step does
 * not change. */
#include <string.h>

#include "nn_test.h"
#include "tests/training.h"

enum { N = 3, MAX_BYTES = 1 << 14 };

static const adj_loss_scale usual = {0};
static const char *const backends[] = {"naive", "onednn"};
enum { BACKENDS = 2 };

/* loss = sum p slope, so slope is p's gradient. */
typedef struct {
    adj_graph *g;
    adj_node *p, *slope, *lr;
    adj_exec *e;
} linear;

static linear linear_new(const adj_loss_scale *scale, const char *backend)
{
    linear l = {.g = adj_graph_new()};
    const adj_shape s = {1, {N}};
    l.p = adj_param(l.g, "p", ADJ_F32, s, adj_init_constant(0.5));
    l.slope = adj_input(l.g, "slope", ADJ_F32, s);
    l.lr = adj_input(l.g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_reduce_sum(adj_mul(l.p, l.slope), (adj_axes){.n = ADJ_ALL});
    const adj_exec_opts e = {
        .updates = adj_training_updates(loss, &(adj_optimizer_opts){.loss_scale = scale}),
        .backend = backend,
        .debug = &(adj_exec_debug){.canaries = 1}};
    l.e = plan_of(l.g, &e);
    return l;
}

static void linear_free(linear *l)
{
    adj_exec_free(l->e);
    adj_graph_free(l->g);
}

static void step(const linear *l, double last_slope)
{
    const float slope[N] = {1, -0.25F, (float)last_slope}, lr = 0.5F;
    cr_assert_eq(adj_set(l->e, l->slope, slope, sizeof slope), ADJ_OK);
    cr_assert_eq(adj_set(l->e, l->lr, &lr, sizeof lr), ADJ_OK);
    run(l->e);
}

static double state(const linear *l, const char *name)
{
    return get_scalar(l->e, adj_find(l->g, name));
}

static void expect_scale(const linear *l, double scale, double good_steps, double skipped, int at)
{
    cr_assert_eq(state(l, "loss_scale"), scale, "step %d: %g", at, state(l, "loss_scale"));
    cr_assert_eq(state(l, "loss_scale/good_steps"), good_steps, "step %d", at);
    cr_assert_eq(state(l, "loss_scale/skipped"), skipped, "step %d", at);
}

/* GradScaler(growth_interval=2), its other arguments as they are: by hand. */
Test(dynamic_loss_scale, course)
{
    static const struct {
        double slope, scale, good_steps, skipped;
    } steps[] = {{3, 65536, 1, 0},         {3, 131072, 0, 0},    {3, 131072, 1, 0},
                 {INFINITY, 65536, 0, 1},  {3, 65536, 1, 1},     {NAN, 32768, 0, 2},
                 {-INFINITY, 16384, 0, 3}, {3, 16384, 1, 3},     {3, 32768, 0, 3},
                 {3, 32768, 1, 3},         {3, 65536, 0, 3},     {3, 65536, 1, 3},
                 {1e38, 32768, 0, 4}, /* 1e38 * 65536 is more than f32's largest number */
                 {1e33, 32768, 1, 4},      {-3e-44, 65536, 0, 4}};
    const adj_loss_scale two = {.interval = 2};
    for (int k = 0; k < BACKENDS; k++) {
        scoped(linear_free) linear l = linear_new(&two, backends[k]);
        cr_assert_eq(state(&l, "loss_scale"), 65536);
        for (int i = 0; i < (int)(sizeof steps / sizeof *steps); i++) {
            step(&l, steps[i].slope);
            expect_scale(&l, steps[i].scale, steps[i].good_steps, steps[i].skipped, i);
        }
    }
}

/* GradScaler's defaults: 65536, twice that after 2,000 steps. */
Test(dynamic_loss_scale, defaults)
{
    scoped(linear_free) linear l = linear_new(&usual, "naive");
    for (int i = 1; i <= 4000; i++) {
        step(&l, 0);
        if (i % 2000 >= 1999 || i % 2000 == 0)
            expect_scale(&l, i < 2000 ? 65536 : i < 4000 ? 131072 : 262144, i % 2000, 0, i);
    }
    step(&l, NAN);
    expect_scale(&l, 131072, 0, 1, 4001);
}

/* Other numbers, and the bounds that the header gives. */
Test(dynamic_loss_scale, options)
{
    static const struct {
        adj_loss_scale o;
        double slope, scale[3];
    } cases[] = {
        {{.initial = 12, .growth = 1.5, .interval = 1}, 1, {18, 27, 40.5}},
        {{.initial = 12, .backoff = 0.25, .interval = 1}, NAN, {3, 0.75, 0.1875}},
        {{.initial = 0x1p125, .interval = 1}, 0, {0x1p126, 0x1p126, 0x1p126}},
        {{.initial = 0x1p-23}, INFINITY, {0x1p-24, 0x1p-24, 0x1p-24}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        scoped(linear_free) linear l = linear_new(&cases[k].o, "naive");
        for (int i = 0; i < 3; i++) {
            step(&l, cases[k].slope);
            expect_scale(&l, cases[k].scale[i], 0, isfinite(cases[k].slope) ? 0 : i + 1, i);
        }
    }
}

/* ---- what is skipped ---- */

/* A net with batch norm and dropout. */
typedef struct {
    adj_graph *g;
    adj_node *x, *weight, *lr;
    adj_exec *e;
} net;

/* Its loss is weight times a mean, its gradient weight * scale times another: a large weight makes
 * that infinite, and nothing else. */
static net net_new(const adj_optimizer_opts *o, const char *backend)
{
    net n = {.g = adj_graph_new()};
    n.x = adj_input(n.g, "x", ADJ_F32, (adj_shape){4, {2, 6, 6, 3}});
    n.weight = adj_input(n.g, "weight", ADJ_F32, (adj_shape){0});
    n.lr = adj_input(n.g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *h = adj_layer_conv2d(n.x, "conv", &(adj_conv_layer){.filters = 4});
    h = adj_relu(adj_layer_batch_norm(h, "bn", &(adj_norm_layer){.training = 1}));
    h = adj_layer_dropout(h, "drop", 0.25, 1);
    h = adj_layer_dense(h, "fc", 2, NULL);
    adj_node *loss = adj_mul(n.weight, adj_reduce_mean(adj_square(h), (adj_axes){.n = ADJ_ALL}));
    const adj_exec_opts e = {.updates = adj_training_updates(loss, o),
                             .backend = backend,
                             .seed = 1,
                             .debug = &(adj_exec_debug){.canaries = 1}};
    n.e = plan_of(n.g, &e);
    set_sine(n.e, n.x, 1, 1);
    set_values(n.e, n.lr, (double[]){0.01});
    return n;
}

static void net_free(net *n)
{
    adj_exec_free(n->e);
    adj_graph_free(n->g);
}

static void train_net(const net *n, double weight)
{
    set_values(n->e, n->weight, &weight);
    run(n->e);
}

/* Forward passes go on, skipped step or not: running statistics and dropout's steps. */
static int belongs_to_forward(const adj_node *p)
{
    return strcmp(adj_node_name(p), "bn/running") == 0 ||
           strcmp(adj_node_name(p), "dropout/step") == 0;
}

static int belongs_to_scale(const adj_node *p)
{
    return strncmp(adj_node_name(p), "loss_scale", strlen("loss_scale")) == 0;
}

static void check_skipped(const adj_optimizer_opts *o, const char *backend)
{
    static char before[MAX_BYTES], skipped[MAX_BYTES], after[MAX_BYTES];
    scoped(net_free) net n = net_new(o, backend);
    train_net(&n, 1);
    copy_all_params(n.e, before, MAX_BYTES);
    train_net(&n, 1e37); /* 1e37 * 65536 is more than f32's largest number */
    copy_all_params(n.e, skipped, MAX_BYTES);
    train_net(&n, 1);
    copy_all_params(n.e, after, MAX_BYTES);
    const char *a = before, *b = skipped, *c = after;
    size_t size = 0;
    for (int i = 0; i < adj_exec_param_count(n.e); i++, a += size, b += size, c += size) {
        const adj_node *p = adj_exec_param_at(n.e, i);
        size = adj_type_bytes(adj_node_type(p));
        if (belongs_to_scale(p))
            continue;
        cr_expect_eq(memcmp(a, b, size) == 0, !belongs_to_forward(p), "%s: skipped",
                     adj_node_name(p));
        if (strcmp(adj_node_name(p), "conv/b") != 0) /* batch norm takes it away */
            cr_expect(memcmp(b, c, size) != 0, "%s: trained", adj_node_name(p));
    }
    cr_expect_eq(get_scalar(n.e, adj_find(n.g, "loss_scale")), 32768);
    cr_expect_eq(get_scalar(n.e, adj_find(n.g, "loss_scale/skipped")), 1);
}

/* One gradient of several is enough, whichever it is, to skip the step of all. */
Test(dynamic_loss_scale, any_gradient)
{
    enum { PARAMS = 3 };
    for (int broken = 0; broken < PARAMS; broken++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *p[PARAMS], *slope[PARAMS], *loss = NULL;
        for (int i = 0; i < PARAMS; i++) {
            const char name[] = {(char)('a' + i), '\0'}, other[] = {(char)('s' + i), '\0'};
            p[i] = adj_param(g, name, ADJ_F32, (adj_shape){0}, adj_init_constant(2));
            slope[i] = adj_input(g, other, ADJ_F32, (adj_shape){0});
            adj_node *term = adj_mul(p[i], slope[i]);
            loss = loss == NULL ? term : adj_add(loss, term);
        }
        adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
        scoped(release_exec) adj_exec *e =
            exec_new(g, 0, NULL, adj_optimizer(loss, &(adj_optimizer_opts){.loss_scale = &usual}));
        set_values(e, lr, (double[]){0.25});
        for (int step = 0; step < 2; step++) { /* the second one is made */
            for (int i = 0; i < PARAMS; i++)
                set_values(e, slope[i], (double[]){step == 0 && i == broken ? 1e36 : 1 + i});
            run(e);
            for (int i = 0; i < PARAMS; i++)
                cr_expect_eq(get_scalar(e, p[i]), step == 0 ? 2 : 2 - 0.25 * (1 + i),
                             "%d: parameter %d", broken, i);
        }
    }
}

/* Parameters, momenta, averages and counters stay bit by bit, whichever optimizer. */
Test(dynamic_loss_scale, skipped_step_leaves_everything)
{
    const adj_optimizer_opts opts[] = {
        {.loss_scale = &usual, .weight_decay = 0.1},
        {.loss_scale = &usual, .momentum = 0.9},
        {.loss_scale = &usual, .momentum = 0.9, .nesterov = 1, .weight_decay = 0.1},
        {.loss_scale = &usual, .momentum = 0.9, .clip_norm = 0.5},
        {.loss_scale = &usual, .kind = ADJ_ADAM, .weight_decay = 0.1},
        {.loss_scale = &usual, .kind = ADJ_ADAMW, .weight_decay = 0.1}};
    for (int k = 0; k < BACKENDS; k++)
        for (size_t i = 0; i < sizeof opts / sizeof *opts; i++)
            check_skipped(&opts[i], backends[k]);
}

/* ---- in f16 ---- */

typedef struct {
    double skipped, scale;
    float w[2];
} f16_result;

/* loss = tiny * sum of x w, w [2, 1]: dw is tiny times the sums of x's columns, through a product
 * in f16 whose gradient is tiny * scale. */
static f16_result train_f16(double tiny, const adj_loss_scale *scale, int steps)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {4, 2}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){2, {2, 1}}, adj_init_constant(0));
    adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *sum = adj_reduce_sum(adj_matmul(x, w, 0), (adj_axes){.n = ADJ_ALL});
    const adj_optimizer_opts o = {.loss_scale = scale};
    const adj_exec_opts opts = {.updates = adj_optimizer(adj_scale(sum, tiny), &o),
                                .precision = ADJ_PRECISION_F16,
                                .loss_scale = 1};
    scoped(release_exec) adj_exec *e = plan_of(g, &opts);
    set_values(e, x, (double[]){1, 2, 3, -1, 0, 4, -2, 0.5}); /* columns' sums: 2, 5.5 */
    set_values(e, lr, (double[]){1});
    for (int i = 0; i < steps; i++)
        run(e);
    f16_result r = {0};
    cr_assert_eq(adj_get(e, w, r.w, sizeof r.w), ADJ_OK);
    if (scale != NULL) {
        r.scale = get_scalar(e, adj_find(g, "loss_scale"));
        r.skipped = get_scalar(e, adj_find(g, "loss_scale/skipped"));
    }
    return r;
}

/* f16 ends at 65504 and 2^-24. A scale of 2^20 is halved until 2^15, the first that f16 holds: five
 * steps are skipped, the sixth is made. Gradients of 2^-30 are 0 without a scale, exact with it. */
Test(dynamic_loss_scale, in_f16)
{
    const adj_loss_scale large = {.initial = 0x1p20};
    f16_result r = train_f16(1, &large, 5);
    cr_expect(r.skipped == 5 && r.w[0] == 0 && r.w[1] == 0, "%g skipped, w %g %g", r.skipped,
              (double)r.w[0], (double)r.w[1]);
    r = train_f16(1, &large, 6);
    cr_expect(r.skipped == 5 && r.scale == 0x1p15 && r.w[0] == -2 && r.w[1] == -5.5F,
              "%g skipped, scale %g, w %g %g", r.skipped, r.scale, (double)r.w[0], (double)r.w[1]);
    r = train_f16(0x1p-30, &usual, 1);
    cr_expect(r.skipped == 0 && r.w[0] == -0x1p-29F && r.w[1] == -0x1.6p-28F, "w %a %a",
              (double)r.w[0], (double)r.w[1]);
    r = train_f16(0x1p-30, NULL, 1);
    cr_expect(r.w[0] == 0 && r.w[1] == 0);
}
