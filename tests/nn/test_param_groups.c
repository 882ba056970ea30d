/* test_param_groups.c - weight decay and learning rates by groups of parameters, against the
 * parameter groups of torch.optim in float64. */
#include "nn_test.h"

enum { N_P = 3, N_Q = 4, N_ALL = N_P + N_Q, STEPS = 3 };

static const double start_p[N_P] = {0.5, -1.25, 2.0}, start_q[N_Q] = {0.3, -0.7, 1.1, 0.05};
static const double rates[STEPS] = {0.1, 0.05, 0.2};

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

/* The parameters "net/p" and "net/q". */
typedef struct {
    adj_graph *g;
    adj_node *p, *q, *lr, *loss;
} subject;

static subject subject_new(void)
{
    const adj_init zero = adj_init_constant(0);
    subject s = {.g = adj_graph_new()};
    s.p = adj_param(s.g, "net/p", ADJ_F64, (adj_shape){1, {N_P}}, zero);
    s.q = adj_param(s.g, "net/q", ADJ_F64, (adj_shape){2, {2, 2}}, zero);
    s.lr = adj_input(s.g, "lr", ADJ_F64, (adj_shape){0});
    s.loss = loss_of(s.p, s.q);
    return s;
}

typedef struct {
    const char *name;
    adj_optimiser_opts opts;
    adj_param_group group[2];
    int n_group;
    double last[N_ALL];
} group_case;

/* torch 2.15, three steps: torch.optim.AdamW([{"params": [p], "weight_decay": 0.1}, {"params": [q],
 * "weight_decay": 0}]) and so on, "lr" of each group set before each step; one clip over both by
 * hand: gradients times clip / max(norm, clip). */
static const group_case cases[] = {
    {"adamw, one group",
     {.kind = ADJ_ADAMW, .weight_decay = 0.1},
     {{.pattern = "*/q"}},
     1,
     {0.15848999929102875, -0.8634188638392206, 1.584652122361981, -0.048373021359245094,
      -1.0483730167119192, 0.7516269771513906, -0.29837302059105986}},
    {"adamw, the first match, rate and clip",
     {.kind = ADJ_ADAMW, .weight_decay = 0.5, .clip_norm = 2},
     {{.pattern = "net/q", .rate = 0.25}, {.pattern = "net/*", .weight_decay = 0.1}},
     2,
     {0.1524147517454257, -0.8608254794565582, 1.583518407265266, 0.21232339617880697,
      -0.7876766000278527, 1.0123233949631258, -0.037676603194168344}},
    {"adam",
     {.kind = ADJ_ADAM, .weight_decay = 0.05},
     {{.pattern = "net/p", .weight_decay = 0.2, .rate = 10}},
     1,
     {1.020406037337044, -0.1016982648927935, -1.3697428419719944, -0.048309074374656924,
      -1.04791660021094, 0.7516259452650871, -0.2982626835696014}},
    {"sgd, clip",
     {.kind = ADJ_SGD, .clip_norm = 2},
     {{.pattern = "*p", .rate = 0.5}, {.pattern = "*q", .rate = 2, .weight_decay = 0.3}},
     2,
     {0.47310172960822544, -0.9562875027721827, 1.9036637248557688, -0.015865464773907115,
      -0.6673975547555839, 0.38428602947257406, -0.16633673727200954}},
    {"nesterov",
     {.kind = ADJ_SGD, .momentum = 0.9, .nesterov = 1},
     {{.pattern = "*p", .rate = 0.5}, {.pattern = "*q", .rate = 2, .weight_decay = 0.3}},
     2,
     {0.28809025, 0.048891999999999936, 1.1507261484374998, -1.4952605137008277,
      -1.1395616530448338, -2.1063631043080067, -1.368127986161453}},
};

static void check(const group_case *c, const adj_loss_scale *scale)
{
    subject s = subject_new();
    adj_optimiser_opts o = c->opts;
    o.loss_scale = scale;
    o.groups = c->group;
    o.n_groups = c->n_group;
    scoped(release_exec) adj_exec *e = exec_new(s.g, 1, &s.loss, adj_optimiser(s.loss, s.lr, &o));
    set_values(e, s.p, start_p);
    set_values(e, s.q, start_q);
    for (int step = 0; step < STEPS; step++) {
        set_values(e, s.lr, &rates[step]);
        run(e);
    }
    scoped(release) double *p = get_values(e, s.p), *q = get_values(e, s.q);
    expect_close(p, c->last, N_P, 1e-12, 1e-14, c->name);
    expect_close(q, c->last + N_P, N_Q, 1e-12, 1e-14, c->name);
    adj_graph_free(s.g);
}

Test(param_groups, steps_like_torch)
{
    static const adj_loss_scale scale = {.initial = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check(&cases[i], NULL);
        check(&cases[i], &scale);
    }
}

/* Expects a list of groups to be refused; freeze_q: net/q is not trained. */
static void expect_refused(const adj_param_group *groups, int n, int freeze_q,
                           const char *const words[3])
{
    subject s = subject_new();
    const adj_optimiser_opts o = {
        .groups = groups, .n_groups = n, .trained = freeze_q ? &s.p : NULL, .n_trained = freeze_q};
    cr_expect_null(adj_optimiser(s.loss, s.lr, &o));
    expect_error(s.g, ADJ_EARG, words);
    adj_graph_free(s.g);
}

Test(param_groups, refusals)
{
    const adj_param_group misspelled[] = {{.pattern = "net/p"}, {.pattern = "nte/*"}};
    const adj_param_group negative = {.pattern = "*", .weight_decay = -1};
    const adj_param_group not_a_number = {.pattern = "*", .rate = NAN};
    const adj_param_group everything = {0}, frozen = {.pattern = "net/q"};
    expect_refused(misspelled, 2, 0, (const char *const[3]){"groups[1]", "\"nte/*\"", NULL});
    expect_refused(&frozen, 1, 1, (const char *const[3]){"groups[0]", "no trained", NULL});
    expect_refused(&negative, 1, 0, (const char *const[3]){"groups[0]", "-1", NULL});
    expect_refused(&not_a_number, 1, 0, (const char *const[3]){"groups[0]", "nan", NULL});
    expect_refused(&everything, 1, 0, (const char *const[3]){"groups[0]", "pattern", NULL});
    expect_refused(NULL, 1, 0, (const char *const[3]){"groups", "NULL", NULL});
    expect_refused(&frozen, -1, 0, (const char *const[3]){"n_groups", "-1", NULL});
}
