/* test_optim.c - every optimizer against torch.optim in float64: parameters after one step and
 * after five with different rates. */
#include <string.h>

#include "nn_test.h"

enum { N_P = 3, N_Q = 4, N_ALL = N_P + N_Q, STEPS = 5 };

static const double start_p[N_P] = {0.5, -1.25, 2.0}, start_q[N_Q] = {0.3, -0.7, 1.1, 0.05};
static const double rates[STEPS] = {0.1, 0.05, 0.2, 0.1, 0.025};

/* loss = sum (p a - b)^2 + sum exp(q) */
static adj_node *loss_of(adj_node *p, adj_node *q)
{
    static const double a[N_P] = {1, -2, 0.5}, b[N_P] = {0.25, 1, -0.75};
    adj_graph *g = adj_node_graph(p);
    adj_node *scaled = adj_mul(p, adj_const(g, ADJ_F64, (adj_shape){1, {N_P}}, a));
    adj_node *error = adj_sub(scaled, adj_const(g, ADJ_F64, (adj_shape){1, {N_P}}, b));

    return adj_add(adj_reduce_sum(adj_square(error), (adj_axes){.n = ADJ_ALL}),
                   adj_reduce_sum(adj_exp(q), (adj_axes){.n = ADJ_ALL}));
}

typedef struct {
    const char *name;
    adj_optimiser_opts opts;
    double first[N_ALL], last[N_ALL];
} optimiser_case;

/* PyTorch 1.13. Clipping there is by hand, with max(norm, clip_norm). */
static const optimiser_case cases[] = {
    {"sgd",
     {0},
     {0.45, -0.6499999999999999, 1.825, 0.1650141192423997, -0.7496585303791409, 0.7995833976053567,
      -0.05512710963760242},
     {0.33208, -0.49136, 1.2371555859375, -0.2257076340048157, -0.9177510602866394,
      0.1273497820832119, -0.3757961700602866}},
    {"sgd, decay",
     {.weight_decay = 0.1},
     {0.445, -0.6375, 1.805, 0.1620141192423997, -0.7426585303791409, 0.7885833976053568,
      -0.0556271096376024},
     {0.3184900132375, -0.48579619753125, 1.1645138732, -0.2283506727354612, -0.8837187626967804,
      0.1060419818887226, -0.370432925336708}},
    {"momentum",
     {.momentum = 0.9},
     {0.45, -0.6499999999999999, 1.825, 0.1650141192423997, -0.7496585303791409, 0.7995833976053567,
      -0.05512710963760242},
     {0.09396249999999998, -0.1064750000000002, 0.1079519531249999, -1.0252248601213,
      -1.242707477675073, -1.431255246769114, -1.018157493435783}},
    {"momentum, decay",
     {.momentum = 0.8, .weight_decay = 0.05},
     {0.4475, -0.6437499999999999, 1.815, 0.1635141192423997, -0.7461585303791409,
      0.7940833976053567, -0.05537710963760241},
     {0.1243665675933593, -0.2154198419560548, 0.2312777606429685, -0.8794108699773234,
      -1.145547257724456, -1.153274340106415, -0.89357828463858}},
    {"nesterov, decay",
     {.momentum = 0.9, .nesterov = 1, .weight_decay = 0.1},
     {0.3955, -0.08625000000000001, 1.6295, 0.03782682656055936, -0.7810512077203677,
      0.5083084554501777, -0.1506915083114446},
     {0.0942940661283426, -0.372220828144962, -0.4587113876138322, -1.197105503345188,
      -1.250300924327981, -1.583562178362123, -1.159697993700713}},
    {"adam",
     {.kind = ADJ_ADAM},
     {0.400000002, -1.150000000166667, 1.900000000571429, 0.2000000007408182, -0.7999999979862473,
      1.000000000332871, -0.04999999904877059},
     {0.1068005291267597, -0.7843078427395277, 1.526095485503364, -0.1703548825021415,
      -1.170354876113103, 0.629645115450314, -0.4203548814460578}},
    {"adam, decay and betas",
     {.kind = ADJ_ADAM, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1},
     {0.4001814882032668, -1.150016323865491, 1.900051255766274, 0.2000724187001968,
      -0.799766128538298, 1.000032101017805, -0.04990541687903628},
     {0.1138553424174788, -0.7876187896534166, 1.527100561700298, -0.1674005405645782,
      -1.162529609635925, 0.6318296771238855, -0.4168731505079467}},
    {"adamw",
     {.kind = ADJ_ADAMW, .weight_decay = 0.1},
     {0.395000002, -1.137500000166667, 1.880000000571429, 0.1970000007408182, -0.7929999979862472,
      0.9890000003328711, -0.05049999904877059},
     {0.09822707799547824, -0.7359110756004237, 1.441013632180471, -0.1762021582099663,
      -1.130089776228585, 0.5869246166212604, -0.4146762609564446}},
    {"sgd, clipped",
     {.clip_norm = 2},
     {0.4860668817655477, -1.082802581186573, 1.951234086179417, 0.2623845152684536,
      -0.7138379635024341, 1.01628519918486, 0.02070503103546122},
     {0.4169612609299467, -0.5987700161890108, 1.67717483840743, 0.06386285917816963,
      -0.7917104757409464, 0.6217750036188092, -0.1373359160005137}},
    {"momentum, clip out of reach",
     {.momentum = 0.9, .clip_norm = 1000},
     {0.45, -0.6499999999999999, 1.825, 0.1650141192423997, -0.7496585303791409, 0.7995833976053567,
      -0.05512710963760242},
     {0.09396249999999998, -0.1064750000000002, 0.1079519531249999, -1.0252248601213,
      -1.242707477675073, -1.431255246769114, -1.018157493435783}},
    {"adam, clipped",
     {.kind = ADJ_ADAM, .clip_norm = 0.5},
     {0.4000000287085689, -1.150000002392381, 1.90000000820245, 0.2000000106339174,
      -0.7999999710940208, 1.000000004778127, -0.04999998634578018},
     {0.1169239895953705, -0.7762300024625571, 1.523562450806709, -0.1759851144558432,
      -1.17598503029754, 0.6240148585732892, -0.4259851005447953}},
};

static void expect_params(adj_exec *e, adj_node *p, adj_node *q, const double want[N_ALL],
                          const char *label)
{
    scoped(release) double *at_p = get_values(e, p), *at_q = get_values(e, q);

    expect_close(at_p, want, N_P, 1e-12, 1e-14, label);
    expect_close(at_q, want + N_P, N_Q, 1e-12, 1e-14, label);
}

static void check(const optimiser_case *c, const adj_loss_scale *scale)
{
    adj_optimiser_opts opts = c->opts;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F64, (adj_shape){1, {N_P}}, adj_init_constant(0));
    adj_node *q = adj_param(g, "q", ADJ_F64, (adj_shape){2, {2, 2}}, adj_init_constant(0));
    adj_node *unused = adj_param(g, "unused", ADJ_F64, (adj_shape){1, {2}}, adj_init_constant(0));
    adj_node *lr = adj_input(g, "lr", ADJ_F64, (adj_shape){0}), *loss = loss_of(p, q);

    opts.loss_scale = scale;
    adj_updates *u = adj_optimiser(loss, lr, &opts);
    cr_assert_not_null(unused);
    scoped(release_exec) adj_exec *e = exec_new(g, 1, &loss, u);
    set_values(e, p, start_p);
    set_values(e, q, start_q);
    for (int step = 0; step < STEPS; step++) {
        set_values(e, lr, &rates[step]);
        run(e);
        if (step == 0) /* p is not fetched: its current value */
            expect_params(e, p, q, c->first, c->name);
    }
    expect_params(e, p, q, c->last, c->name);
}

Test(optim, steps_like_torch)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i], NULL);
}

/* Powers of two and another number; one that grows on the way. */
Test(optim, steps_like_torch_whatever_the_loss_scale)
{
    static const adj_loss_scale scales[] = {
        {0}, {.initial = 0x1p-10, .interval = 2}, {.initial = 3}};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check(&cases[i], &scales[k]);
}

/* The loss is a sum of one of p and one of q: with p frozen, q goes as in the table, and p stays
 * whatever the decay. Clipped, q's steps would be longer. */
static void check_frozen(const optimiser_case *c, int by_list)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F64, (adj_shape){1, {N_P}}, adj_init_constant(0));
    adj_node *q = adj_param(g, "q", ADJ_F64, (adj_shape){2, {2, 2}}, adj_init_constant(0));
    adj_node *lr = adj_input(g, "lr", ADJ_F64, (adj_shape){0});
    adj_node *loss = loss_of(by_list ? p : adj_stop_gradient(p), q);
    adj_optimiser_opts o = c->opts;
    double want[N_ALL];

    if (by_list) {
        o.trained = &q;
        o.n_trained = 1;
    }
    scoped(release_exec) adj_exec *e = exec_new(g, 1, &loss, adj_training_updates(loss, lr, &o));
    memcpy(want, start_p, sizeof start_p);
    memcpy(want + N_P, c->last + N_P, sizeof start_q);
    set_values(e, p, start_p);
    set_values(e, q, start_q);
    for (int step = 0; step < STEPS; step++) {
        set_values(e, lr, &rates[step]);
        run(e);
    }
    expect_params(e, p, q, want, c->name);
    cr_expect_null(adj_find(g, "p/momentum"));
    cr_expect_null(adj_find(g, "p/adam_m"));
}

Test(optim, what_is_frozen_stays)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].opts.clip_norm == 0) {
            check_frozen(&cases[i], 1);
            check_frozen(&cases[i], 0);
        }
}

Test(optim, everything_frozen)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){0}, adj_init_constant(1));
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    const adj_optimiser_opts none = {.kind = ADJ_ADAM, .clip_norm = 1, .trained = &p};
    adj_updates *u = adj_optimiser(adj_square(p), lr, &none);
    cr_assert_eq(adj_updates_count(u), 1);
    cr_assert_str_eq(adj_node_name(adj_updates_leaf_at(u, 0)), "adam/step");
    const adj_optimiser_opts wrong = {.trained = &lr, .n_trained = 1};
    cr_assert_null(adj_optimiser(adj_square(p), lr, &wrong));
    expect_error(g, ADJ_EARG, (const char *[]){"adj_optimiser", "trained[0]", NULL});
}

/* As Python's fnmatch.fnmatchcase says. */
static const struct {
    const char *patterns, *name;
    int matches;
} names_matched[] = {{"conv1/*", "conv1/w", 1},
                     {"conv1/*", "conv10/w", 0},
                     {"conv?/w", "conv1/w", 1},
                     {"conv?/w", "conv10/w", 0},
                     {"*", "stage1/block2/bn", 1},
                     {"stage*/w", "stage1/conv1/w", 1},
                     {"*b*a", "abcbca", 1},
                     {"*b*a", "abcbcab", 0},
                     {"a**b", "ab", 1},
                     {"", "", 0},
                     {"?", "", 0},
                     {"fc*,conv1/*", "conv1/b", 1},
                     {"fc*,conv1/*", "bn1/b", 0},
                     {",,conv1/w,", "conv1/w", 1},
                     {"conv1", "conv1/w", 0},
                     {NULL, "conv1/w", 0}};

Test(optim, name_patterns)
{
    for (size_t i = 0; i < sizeof names_matched / sizeof *names_matched; i++)
        cr_expect_eq(adj_name_matches(names_matched[i].patterns, names_matched[i].name),
                     names_matched[i].matches, "case %zu", i);
}

/* All gradients are 0: the clipping factor is 1, not NaN. */
Test(optim, clipping_a_zero_gradient)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(2));
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_reduce_sum(adj_scale(p, 0), (adj_axes){.n = ADJ_ALL});
    adj_exec *e =
        exec_new(g, 1, &loss, adj_optimiser(loss, lr, &(adj_optimiser_opts){.clip_norm = 1}));
    const double half = 0.5, want[] = {2, 2, 2};

    set_values(e, lr, &half);
    run(e);
    scoped(release) double *got = get_values(e, p);
    expect_close(got, want, 3, 0, 0, "p");
    adj_exec_free(e);
}

Test(optim, what_is_assigned)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(2));
    adj_node *q = adj_param(g, "q", ADJ_F32, (adj_shape){0}, adj_init_constant(2));
    adj_param(g, "unused", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(2));
    adj_node *lr = adj_input(g, "lr", ADJ_F64, (adj_shape){0}); /* cast to the parameters' type */
    adj_node *loss = adj_reduce_sum(adj_mul(p, q), (adj_axes){.n = ADJ_ALL}),
             *trained[2] = {NULL, NULL};
    adj_updates *u = adj_adam(loss, lr);
    static const char *const names[] = {"adam/step", "p/adam_m", "p/adam_v", "p",
                                        "q/adam_m",  "q/adam_v", "q"};

    cr_assert_eq(adj_graph_status(g), ADJ_OK, "%s", adj_graph_message(g));
    cr_assert_eq(adj_updates_count(u), 7);
    for (int i = 0; i < 7; i++)
        cr_assert_str_eq(adj_node_name(adj_updates_leaf_at(u, i)), names[i]);
    cr_assert_eq(adj_trainable(loss, 2, trained), 2);
    cr_assert(trained[0] == p && trained[1] == q);
    cr_assert_eq(adj_trainable_elems(loss), 4);
    cr_assert_eq(adj_trainable_elems(lr), 0);
    cr_assert_eq(adj_trainable(NULL, 0, NULL), 0);
}

static const struct {
    adj_optimiser_opts opts;
    const char *words[3];
} refused[] = {
    {{.kind = (adj_optimiser_kind)9}, {"adj_optimiser", "kind"}},
    {{.momentum = 1}, {"adj_optimiser", "momentum"}},
    {{.momentum = -0.1}, {"adj_optimiser", "momentum"}},
    {{.nesterov = 1}, {"adj_optimiser", "nesterov"}},
    {{.kind = ADJ_ADAM, .beta2 = 1}, {"adj_optimiser", "beta"}},
    {{.weight_decay = -1}, {"adj_optimiser", "weight_decay"}},
    {{.clip_norm = -1}, {"adj_optimiser", "clip_norm"}},
};

Test(optim, refusals)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){0}, adj_init_constant(1));
        adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
        cr_assert_null(adj_optimiser(adj_square(p), lr, &refused[i].opts));
        expect_error(g, ADJ_EARG, refused[i].words);
        cr_assert_null(adj_sgd(adj_square(p), lr)); /* the error is sticky */
    }
    cr_assert_null(adj_sgd(NULL, NULL));
}

Test(optim, names)
{
    adj_optimiser_opts o = {.clip_norm = 3};

    for (int i = 0; adj_optimiser_name_at(i) != NULL; i++)
        cr_assert_eq(adj_optimiser_from_name(adj_optimiser_name_at(i), &o), ADJ_OK);
    cr_assert(o.kind == ADJ_ADAMW && o.weight_decay == 0.01 && o.clip_norm == 0);
    cr_assert_eq(adj_optimiser_from_name("nesterov", &o), ADJ_OK);
    cr_assert(o.kind == ADJ_SGD && o.momentum == 0.9 && o.nesterov);
    cr_assert_eq(adj_optimiser_from_name("Adam", &o), ADJ_EARG);
    cr_assert_eq(adj_optimiser_from_name(NULL, &o), ADJ_EARG);
    cr_assert_eq(adj_optimiser_from_name("adam", NULL), ADJ_EARG);
}
