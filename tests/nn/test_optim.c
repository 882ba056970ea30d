/* test_optim.c - every optimizer against torch.optim in float64: parameters after one step and
 * after five with different rates; weight decay and rates by groups of parameters. */
#include <string.h>

#include "nn_test.h"
#include "ops/nn/names.h"

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

/* Parameters "net/p", with p frozen or not, and "net/q", and one that the loss does not need. */
typedef struct {
    adj_graph *g;
    adj_node *p, *q, *lr, *loss;
} subject;

static subject subject_new(int stop_p)
{
    const adj_init zero = adj_init_constant(0);
    subject s = {.g = adj_graph_new()};
    s.p = adj_param(s.g, "net/p", ADJ_F64, (adj_shape){1, {N_P}}, zero);
    s.q = adj_param(s.g, "net/q", ADJ_F64, (adj_shape){2, {2, 2}}, zero);
    s.lr = adj_input(s.g, "learning_rate", ADJ_F64, (adj_shape){0});
    s.loss = loss_of(stop_p ? adj_stop_gradient(s.p) : s.p, s.q);
    cr_assert_not_null(adj_param(s.g, "unused", ADJ_F64, (adj_shape){1, {2}}, zero));
    return s;
}

static void subject_free(subject *s) { adj_graph_free(s->g); }

typedef struct {
    const char *name;
    adj_optimizer_opts opts;
    double first[N_ALL], last[N_ALL];
} optimizer_case;

/* PyTorch 1.13. Clipping there is by hand, with max(norm, clip_norm). */
static const optimizer_case cases[] = {
    {"sgd",
     {0},
     {0.45, -0.65, 1.825, 0.1650141192424, -0.74965853037914, 0.79958339760536, -0.0551271096376},
     {0.33208, -0.49136, 1.2371555859375, -0.22570763400482, -0.91775106028664, 0.12734978208321,
      -0.37579617006029}},
    {"sgd, decay",
     {.weight_decay = 0.1},
     {0.445, -0.6375, 1.805, 0.1620141192424, -0.74265853037914, 0.78858339760536,
      -0.0556271096376},
     {0.3184900132375, -0.48579619753125, 1.1645138732, -0.22835067273546, -0.88371876269678,
      0.10604198188872, -0.37043292533671}},
    {"momentum",
     {.momentum = 0.9},
     {0.45, -0.65, 1.825, 0.1650141192424, -0.74965853037914, 0.79958339760536, -0.0551271096376},
     {0.0939625, -0.106475, 0.107951953125, -1.0252248601213, -1.24270747767507, -1.43125524676911,
      -1.01815749343578}},
    {"momentum, decay",
     {.momentum = 0.8, .weight_decay = 0.05},
     {0.4475, -0.64375, 1.815, 0.1635141192424, -0.74615853037914, 0.79408339760536,
      -0.0553771096376},
     {0.12436656759336, -0.21541984195605, 0.23127776064297, -0.87941086997732, -1.14554725772446,
      -1.15327434010641, -0.89357828463858}},
    {"nesterov, decay",
     {.momentum = 0.9, .nesterov = 1, .weight_decay = 0.1},
     {0.3955, -0.08625, 1.6295, 0.03782682656056, -0.78105120772037, 0.50830845545018,
      -0.15069150831144},
     {0.09429406612834, -0.37222082814496, -0.45871138761383, -1.19710550334519, -1.25030092432798,
      -1.58356217836212, -1.15969799370071}},
    {"adam",
     {.kind = ADJ_ADAM},
     {0.400000002, -1.15000000016667, 1.90000000057143, 0.20000000074082, -0.79999999798625,
      1.00000000033287, -0.04999999904877},
     {0.10680052912676, -0.78430784273953, 1.52609548550336, -0.17035488250214, -1.1703548761131,
      0.62964511545031, -0.42035488144606}},
    {"adam, decay and betas",
     {.kind = ADJ_ADAM, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.1},
     {0.40018148820327, -1.15001632386549, 1.90005125576627, 0.2000724187002, -0.7997661285383,
      1.00003210101781, -0.04990541687904},
     {0.11385534241748, -0.78761878965342, 1.5271005617003, -0.16740054056458, -1.16252960963592,
      0.63182967712389, -0.41687315050795}},
    {"adamw",
     {.kind = ADJ_ADAMW, .weight_decay = 0.1},
     {0.395000002, -1.13750000016667, 1.88000000057143, 0.19700000074082, -0.79299999798625,
      0.98900000033287, -0.05049999904877},
     {0.09822707799548, -0.73591107560042, 1.44101363218047, -0.17620215820997, -1.13008977622859,
      0.58692461662126, -0.41467626095644}},
    {"rmsprop",
     {.kind = ADJ_RMSPROP},
     {-0.4999998000000395, -0.2500000166666668, 1.000000057142854, -0.6999999259181831,
      -1.699999798624769, 0.1000000332871077, -0.9499999048770662},
     {0.2237584518720569, -0.4755245412096709, -0.5226290784745284, -1.628610856146729,
      -2.628610719757886, -0.8286108998563192, -1.878610833602173}},
    {"rmsprop, all",
     {.kind = ADJ_RMSPROP, .momentum = 0.9, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.1},
     {0.1855800217524761, -0.9339354150404988, 1.684284224211234, -0.01550471124155289,
      -1.013900818657129, 0.7840930214983829, -0.2652838652256157},
     {0.2492518919468398, 0.4785018036713621, -0.6385221324438909, -2.025669495957373,
      -2.705983418548764, -1.281195590762454, -2.238284086722716}},
    {"sgd, clipped",
     {.clip_norm = 2},
     {0.48606688176555, -1.08280258118657, 1.95123408617942, 0.26238451526845, -0.71383796350243,
      1.01628519918486, 0.02070503103546},
     {0.41696126092995, -0.59877001618901, 1.67717483840743, 0.06386285917817, -0.79171047574095,
      0.62177500361881, -0.13733591600051}},
    {"adam, clipped",
     {.kind = ADJ_ADAM, .clip_norm = 0.5},
     {0.40000002870857, -1.15000000239238, 1.90000000820245, 0.20000001063392, -0.79999997109402,
      1.00000000477813, -0.04999998634578},
     {0.11692398959537, -0.77623000246256, 1.52356245080671, -0.17598511445584, -1.17598503029754,
      0.62401485857329, -0.4259851005448}},
};

static void expect_params(const subject *s, adj_exec *e, const double want[N_ALL],
                          const char *label)
{
    scoped(release) double *p = fixture_get(e, s->p), *q = fixture_get(e, s->q);
    expect_close(p, want, N_P, 1e-12, 1e-14, label);
    expect_close(q, want + N_P, N_Q, 1e-12, 1e-14, label);
}

/* Takes so many steps; first: expected after the first one (NULL: not looked at). */
static void expect_steps(const subject *s, const adj_optimizer_opts *o, int steps,
                         const double first[N_ALL], const double last[N_ALL], const char *name)
{
    scoped(release_exec) adj_exec *e =
        exec_new(s->g, 1, (adj_node *[]){s->loss}, adj_optimizer(s->loss, o));
    set_values(e, s->p, start_p);
    set_values(e, s->q, start_q);
    for (int step = 0; step < steps; step++) {
        set_values(e, s->lr, &rates[step]);
        run(e);
        if (step == 0 && first != NULL) /* p is not fetched: its current value */
            expect_params(s, e, first, name);
    }
    expect_params(s, e, last, name);
}

static void check(const optimizer_case *c, const adj_loss_scale *scale, double clip_norm)
{
    scoped(subject_free) subject s = subject_new(0);
    adj_optimizer_opts opts = c->opts;
    opts.loss_scale = scale;
    opts.clip_norm = c->opts.clip_norm > 0 ? c->opts.clip_norm : clip_norm;
    expect_steps(&s, &opts, STEPS, c->first, c->last, c->name);
}

/* Clipping that is out of reach changes nothing. */
Test(optim, steps_like_torch)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(&cases[i], NULL, 0);
        check(&cases[i], NULL, 1000);
    }
}

/* Powers of two and another number; one that grows on the way. */
Test(optim, steps_like_torch_whatever_the_loss_scale)
{
    static const adj_loss_scale scales[] = {
        {0}, {.initial = 0x1p-10, .interval = 2}, {.initial = 3}};
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            check(&cases[i], &scales[k], 0);
}

/* The loss is a sum of one of p and one of q: with p frozen, q goes as in the table, and p stays
 * whatever the decay. Clipped, q's steps would be longer. */
static void check_frozen(const optimizer_case *c, int by_list)
{
    scoped(subject_free) subject s = subject_new(!by_list);
    adj_optimizer_opts o = c->opts;
    double want[N_ALL];
    o.trained = by_list ? &s.q : NULL;
    o.n_trained = by_list;
    memcpy(want, start_p, sizeof start_p);
    memcpy(want + N_P, c->last + N_P, sizeof start_q);
    expect_steps(&s, &o, STEPS, NULL, want, c->name);
    cr_expect_null(adj_find(s.g, "net/p/momentum"));
    cr_expect_null(adj_find(s.g, "net/p/adam_m"));
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
    adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    const adj_loss_scale scale = {0};
    adj_optimizer_opts none = {.clip_norm = 1, .trained = &p, .loss_scale = &scale};
    cr_assert_eq(adj_updates_count(adj_optimizer(adj_square(p), &none)), 0);
    cr_assert_null(adj_find(g, "loss_scale"));
    none.kind = ADJ_ADAM;
    adj_updates *u = adj_optimizer(adj_square(p), &none);
    cr_assert_eq(adj_updates_count(u), 1);
    cr_assert_str_eq(adj_node_name(adj_updates_leaf_at(u, 0)), "adam/step");
    const adj_optimizer_opts wrong = {.trained = &lr, .n_trained = 1};
    cr_assert_null(adj_optimizer(adj_square(p), &wrong));
    expect_error(g, ADJ_EARG, "adj_optimizer|trained[0]");
}

/* Results of Python's fnmatch.fnmatchcase. */
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
    adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *loss = adj_reduce_sum(adj_scale(p, 0), (adj_axes){.n = ADJ_ALL});
    adj_exec *e = exec_new(g, 1, &loss, adj_optimizer(loss, &(adj_optimizer_opts){.clip_norm = 1}));
    const double half = 0.5, want[] = {2, 2, 2};

    set_values(e, lr, &half);
    run(e);
    scoped(release) double *got = fixture_get(e, p);
    expect_close(got, want, 3, 0, 0, "p");
    adj_exec_free(e);
}

Test(optim, what_is_assigned)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(2));
    adj_node *q = adj_param(g, "q", ADJ_F32, (adj_shape){0}, adj_init_constant(2));
    adj_param(g, "unused", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(2));
    adj_node *lr =
        adj_input(g, "learning_rate", ADJ_F64, (adj_shape){0}); /* cast to the parameters' type */
    adj_node *loss = adj_reduce_sum(adj_mul(p, q), (adj_axes){.n = ADJ_ALL}),
             *trained[2] = {NULL, NULL};
    adj_updates *u = adj_adam(loss, 0);
    static const char *const names[] = {"adam/step", "p/adam_m", "p/adam_v", "p",
                                        "q/adam_m",  "q/adam_v", "q"};

    cr_assert_eq(adj_graph_status(g), ADJ_OK, "%s", adj_graph_message(g));
    cr_assert_eq(adj_updates_count(u), 7);
    for (int i = 0; i < 7; i++)
        cr_assert_str_eq(adj_node_name(adj_updates_leaf_at(u, i)), names[i]);
    cr_assert_eq(adj_trainable(loss, NULL, 2, trained), 2);
    cr_assert(trained[0] == p && trained[1] == q);
    cr_assert_eq(adj_trainable_elems(loss), 4);
    cr_assert_eq(adj_trainable_elems(lr), 0);
    cr_assert_eq(adj_trainable(NULL, NULL, 0, NULL), 0);
}

static const struct {
    adj_optimizer_opts opts;
    const char *words;
} refused[] = {
    {{.kind = (adj_optimizer_kind)9}, "adj_optimizer|kind"},
    {{.momentum = 1}, "adj_optimizer|momentum"},
    {{.momentum = -0.1}, "adj_optimizer|momentum"},
    {{.momentum = 7}, "adj_optimizer|momentum|got 7, expected 0 to below 1"},
    {{.nesterov = 1}, "adj_optimizer|nesterov"},
    {{.kind = ADJ_ADAM, .beta2 = 1}, "adj_optimizer|beta"},
    {{.kind = ADJ_ADAM, .beta1 = -0.5}, "adj_optimizer|beta1|got -0.5"},
    {{.kind = ADJ_ADAM, .epsilon = -1e-8}, "adj_optimizer|epsilon|got -1e-08"},
    {{.weight_decay = -1}, "adj_optimizer|weight_decay"},
    {{.weight_decay = INFINITY}, "adj_optimizer|weight_decay|got inf"},
    {{.clip_norm = -1}, "adj_optimizer|clip_norm"},
    {{.clip_norm = INFINITY}, "adj_optimizer|clip_norm|got inf"},
    {{.lr = 1e300}, "adj_optimizer|lr|got 1e+300"},
    {{.n_trained = 1}, "adj_optimizer|trained is NULL|n_trained is 1"},
    {{.loss_scale = &(adj_loss_scale){.initial = -1}}, "adj_optimizer|initial|got -1"},
    {{.loss_scale = &(adj_loss_scale){.initial = NAN}}, "initial|nan"},
    {{.loss_scale = &(adj_loss_scale){.initial = INFINITY}}, "initial|inf"},
    {{.loss_scale = &(adj_loss_scale){.initial = 1e-8}}, "initial|1e-08"},
    {{.loss_scale = &(adj_loss_scale){.growth = 0.5}}, "growth|0.5"},
    {{.loss_scale = &(adj_loss_scale){.growth = NAN}}, "growth|nan"},
    {{.loss_scale = &(adj_loss_scale){.growth = INFINITY}}, "growth|inf"},
    {{.loss_scale = &(adj_loss_scale){.backoff = 1}}, "backoff|below 1"},
    {{.loss_scale = &(adj_loss_scale){.backoff = -0.5}}, "backoff|-0.5"},
    {{.loss_scale = &(adj_loss_scale){.backoff = NAN}}, "backoff|nan"},
    {{.loss_scale = &(adj_loss_scale){.interval = -1}}, "interval|got -1"},
    {{.loss_scale = &(adj_loss_scale){.interval = INT64_MAX}}, "interval|16777216"},
};

Test(optim, refusals)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){0}, adj_init_constant(1));
        cr_assert_null(adj_optimizer(adj_square(p), &refused[i].opts));
        expect_error(g, ADJ_EARG, refused[i].words);
        cr_assert_null(adj_sgd(adj_square(p), 0)); /* the error is sticky */
    }
    cr_assert_null(adj_sgd(NULL, 0));
}

Test(optim, names)
{
    adj_optimizer_opts o;
    for (int i = 0; adj_optimizer_name_at(i) != NULL; i++) {
        o = (adj_optimizer_opts){.clip_norm = 3};
        cr_assert_eq(adj_optimizer_from_name(adj_optimizer_name_at(i), &o), ADJ_OK);
        cr_expect_eq(o.clip_norm, 0);
        o.clip_norm = 2; /* no part of the name */
        o.weight_decay = 0.3;
        cr_expect_str_eq(adj_optimizer_name(&o), adj_optimizer_name_at(i));
    }
    cr_assert_eq(adj_optimizer_from_name("adamw", &o), ADJ_OK);
    cr_assert(o.kind == ADJ_ADAMW && o.weight_decay == 0.01);
    cr_assert_eq(adj_optimizer_from_name("nesterov", &o), ADJ_OK);
    cr_assert(o.kind == ADJ_SGD && o.momentum == 0.9 && o.nesterov);
    cr_assert_eq(adj_optimizer_from_name("Adam", &o), ADJ_EARG);
    cr_assert_eq(adj_optimizer_from_name(NULL, &o), ADJ_EARG);
    cr_assert_eq(adj_optimizer_from_name("adam", NULL), ADJ_EARG);
    cr_expect_null(adj_optimizer_name(&(adj_optimizer_opts){.momentum = 0.5}));
    cr_expect_null(adj_optimizer_name(NULL));
}

/* ---- groups of parameters ---- */

enum { GROUP_STEPS = 3 };

typedef struct {
    const char *name;
    adj_optimizer_opts opts;
    adj_param_group group[2];
    int n_group;
    double last[N_ALL];
} group_case;

/* torch 2.15, three steps: torch.optim.AdamW([{"params": [p], "weight_decay": 0.1}, {"params": [q],
 * "weight_decay": 0}]) and so on, "lr" of each group set before each step; one clip over both by
 * hand: gradients times clip / max(norm, clip). */
static const group_case group_cases[] = {
    {"adamw, one group",
     {.kind = ADJ_ADAMW, .weight_decay = 0.1},
     {{.pattern = "*/q"}},
     1,
     {0.15848999929103, -0.86341886383922, 1.58465212236198, -0.04837302135925, -1.04837301671192,
      0.75162697715139, -0.29837302059106}},
    {"adamw, the first match, rate and clip",
     {.kind = ADJ_ADAMW, .weight_decay = 0.5, .clip_norm = 2},
     {{.pattern = "net/q", .rate = 0.25}, {.pattern = "net/*", .weight_decay = 0.1}},
     2,
     {0.15241475174543, -0.86082547945656, 1.58351840726527, 0.21232339617881, -0.78767660002785,
      1.01232339496313, -0.03767660319417}},
    {"adam",
     {.kind = ADJ_ADAM, .weight_decay = 0.05},
     {{.pattern = "net/p", .weight_decay = 0.2, .rate = 10}},
     1,
     {1.02040603733704, -0.10169826489279, -1.36974284197199, -0.04830907437466, -1.04791660021094,
      0.75162594526509, -0.2982626835696}},
    {"sgd, clip",
     {.kind = ADJ_SGD, .clip_norm = 2},
     {{.pattern = "*p", .rate = 0.5}, {.pattern = "*q", .rate = 2, .weight_decay = 0.3}},
     2,
     {0.47310172960823, -0.95628750277218, 1.90366372485577, -0.01586546477391, -0.66739755475558,
      0.38428602947257, -0.16633673727201}},
    {"nesterov",
     {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1},
     {{.pattern = "*p", .rate = 0.5}, {.pattern = "*q", .rate = 2, .weight_decay = 0.3}},
     2,
     {0.28809025, 0.048892, 1.1507261484375, -1.49526051370083, -1.13956165304483,
      -2.10636310430801, -1.36812798616145}},
};

static void check_groups(const group_case *c, const adj_loss_scale *scale)
{
    scoped(subject_free) subject s = subject_new(0);
    adj_optimizer_opts o = c->opts;
    o.loss_scale = scale;
    o.groups = c->group;
    o.n_groups = c->n_group;
    expect_steps(&s, &o, GROUP_STEPS, NULL, c->last, c->name);
}

Test(param_groups, steps_like_torch)
{
    static const adj_loss_scale scale = {.initial = 3};
    for (size_t i = 0; i < sizeof group_cases / sizeof *group_cases; i++) {
        check_groups(&group_cases[i], NULL);
        check_groups(&group_cases[i], &scale);
    }
}

/* Expects a list of groups to be refused; freeze_q: net/q is not trained. */
static void expect_refused(const adj_param_group *groups, int n, int freeze_q, const char *words)
{
    scoped(subject_free) subject s = subject_new(0);
    const adj_optimizer_opts o = {
        .groups = groups, .n_groups = n, .trained = freeze_q ? &s.p : NULL, .n_trained = freeze_q};
    cr_expect_null(adj_optimizer(s.loss, &o));
    expect_error(s.g, ADJ_EARG, words);
}

Test(param_groups, refusals)
{
    const adj_param_group misspelled[] = {{.pattern = "net/p"}, {.pattern = "nte/*"}};
    const adj_param_group negative = {.pattern = "*", .weight_decay = -1};
    const adj_param_group not_a_number = {.pattern = "*", .rate = NAN};
    const adj_param_group large = {.pattern = "*", .rate = 1e300};
    const adj_param_group everything = {0}, frozen = {.pattern = "net/q"};
    expect_refused(misspelled, 2, 0, "groups[1]|\"nte/*\"");
    expect_refused(&frozen, 1, 1, "groups[0]|no trained");
    expect_refused(&negative, 1, 0, "groups[0].weight_decay|got -1, expected 0 or more");
    expect_refused(&not_a_number, 1, 0, "groups[0].rate|nan");
    expect_refused(&large, 1, 0, "groups[0].rate|got 1e+300, expected 0 to FLT_MAX");
    expect_refused(&everything, 1, 0, "groups[0]|pattern");
    expect_refused(NULL, 1, 0, "groups|NULL");
    expect_refused(&frozen, -1, 0, "n_groups|-1");
}

/* ---- the learning rate ---- */

Test(optim, learning_rate)
{
    static const struct {
        adj_optimizer_opts o;
        double usual;
    } of[] = {{{.kind = ADJ_SGD}, 0.01},
              {{.kind = ADJ_RMSPROP}, 0.001},
              {{.kind = ADJ_ADAM}, 0.001},
              {{.kind = ADJ_ADAMW, .lr = 0.25}, 0.25}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int wide = 0; wide < 2; wide++) {
            scoped(release_graph) adj_graph *g = adj_graph_new();
            const adj_dtype dtype = wide ? ADJ_F64 : ADJ_F32;
            adj_node *p = adj_param(g, "p", dtype, (adj_shape){0}, adj_init_constant(2));
            adj_node *loss = adj_square(p);
            const adj_updates *u = adj_optimizer(loss, &of[i].o);
            adj_node *lr = adj_find(g, "learning_rate");
            scoped(release_exec) adj_exec *e = exec_new(g, 2, (adj_node *[]){loss, lr}, u);
            double now = 0;
            run(e); /* although its rate is not set */
            cr_assert_eq(adj_get_scalar(e, lr, &now), ADJ_OK, "%s", adj_exec_message(e));
            cr_expect_eq(now, wide ? of[i].usual : (double)(float)of[i].usual);
            cr_assert_eq(adj_set_lr(e, 0), ADJ_OK);
            double before = 0, after = 0;
            cr_assert_eq(adj_get_scalar(e, p, &before), ADJ_OK);
            for (int k = 0; k < 4; k++) { /* refused: the rate stays */
                cr_expect_eq(adj_set_lr(e, (double[]){NAN, INFINITY, -0.1, 1e300}[k]), ADJ_EARG);
                expect_text(adj_exec_message(e), "adj_set_lr: lr is out of range (got ");
            }
            run(e);
            cr_assert_eq(adj_get_scalar(e, p, &after), ADJ_OK);
            cr_expect_eq(before, after); /* a rate of 0 is 0 */
            cr_expect_neq(before, 2);
        }
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){1, {2}});
    cr_expect_null(
        adj_sgd(adj_square(adj_param(g, "p", ADJ_F32, (adj_shape){0}, (adj_init){0})), 0));
    expect_text(adj_graph_message(g), "not a scalar of a float type (got f32 of rank 1)");
    cr_expect_neq(adj_set_lr(NULL, 0.1), ADJ_OK);
    (void)y;
}

/* A graph without an optimizer; an executor that has failed, whose message stays. */
Test(optim, no_learning_rate)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_param(g, "x", ADJ_F32, (adj_shape){0}, adj_init_constant(3));
    scoped(release_exec) adj_exec *e = exec_new(g, 1, &x, NULL), *failed = NULL;
    cr_expect_eq(adj_set_lr(e, 0.1), ADJ_EARG);
    expect_text(adj_exec_message(e), "adj_set_lr: the graph has no node \"learning_rate\"");
    cr_expect_eq(adj_get_scalar(e, x, &(double){0}), ADJ_OK, "%s", adj_exec_message(e));
    cr_expect_neq(adj_exec_new(g, &(adj_exec_opts){.threads = -1}, &failed), ADJ_OK);
    cr_expect_neq(adj_set_lr(failed, 0.1), ADJ_OK);
    expect_text(adj_exec_message(failed), "adj_exec_new: ");
}

Test(optim, a_scalar_alone_is_read)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_param(g, "x", ADJ_BF16, (adj_shape){2, {1, 1}}, adj_init_constant(3));
    adj_node *wide = adj_param(g, "wide", ADJ_F32, (adj_shape){1, {2}}, adj_init_constant(3));
    adj_node *y = adj_square(x);
    double value = 0;
    scoped(release_exec) adj_exec *e = exec_new(g, 2, (adj_node *[]){y, adj_square(wide)}, NULL);
    run(e);
    cr_expect_eq(adj_get_scalar(e, y, &value), ADJ_OK);
    cr_expect_eq(value, 9);
    cr_expect_eq(adj_get_scalar(e, wide, &value), ADJ_EARG);
    expect_text(adj_exec_message(e), "got 4 bytes, expected 8");
    cr_expect_eq(adj_get_scalar(e, NULL, &value), ADJ_EARG);
    cr_expect_eq(adj_get_scalar(e, y, NULL), ADJ_EARG);
}
