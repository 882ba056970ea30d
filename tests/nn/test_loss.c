/* test_loss.c - softmax losses with class weights, smoothing and mixed labels, and their gradients,
 * against PyTorch. */
#include <string.h>

#include "expect.h"
#include "nn_test.h"

enum { N = 6, K = 4 };

static const double class_weights[K] = {0.5, 2, 1.25, 0};
static const double first_labels[N] = {2, 0, -1, 3, 1, 2}, second_labels[N] = {1, 1, -1, 0, 3, 2};

/* PyTorch 1.13, float64: cross_entropy(z, labels, weight, ignore_index=-1, label_smoothing), of the
 * logits sin(0.37 i + 0.5) * 3. */
typedef struct {
    const char *name;
    int is_weighted;
    double smoothing, mix; /* mix 0: none */
    double loss;
} setting;
static const struct {
    setting of;
    double gradient[N][K];
} cases[] = {
    {{"plain", 0, 0, 0, 1.194953623405},
     {{0.0164498047575, 0.03866844155078, -0.13335440247317, 0.07823615616488},
      {-0.09078336928952, 0.05887635342163, 0.02377565102399, 0.0081313648439},
      {0, 0, 0, 0},
      {0.01312259611767, 0.02042815004095, 0.04448511916828, -0.07803586532691},
      {0.00912084779599, -0.17401336422955, 0.06079541048041, 0.10409710595314},
      {0.0847416058322, 0.06581833342253, -0.16473866785746, 0.01417872860274}}},
    {{"weights", 1, 0, 0, 1.58540708605822},
     {{0.02056225594688, 0.04833555193847, -0.16669300309146, 0.0977951952061},
      {-0.04539168464476, 0.02943817671082, 0.011887825512, 0.00406568242195},
      {0, 0, 0, 0},
      {0, 0, 0, -0},
      {0.01824169559199, -0.34802672845909, 0.12159082096082, 0.20819421190629},
      {0.10592700729025, 0.08227291677816, -0.20592333482183, 0.01772341075342}}},
    {{"smoothed", 0, 0.1, 0, 1.24379113884425},
     {{0.0114498047575, 0.03366844155078, -0.11835440247317, 0.07323615616488},
      {-0.07578336928952, 0.05387635342163, 0.01877565102399, 0.0031313648439},
      {0, 0, 0, 0},
      {0.00812259611767, 0.01542815004095, 0.03948511916828, -0.06303586532691},
      {0.00412084779599, -0.15901336422955, 0.05579541048041, 0.09909710595314},
      {0.0797416058322, 0.06081833342253, -0.14973866785746, 0.00917872860274}}},
    {{"both", 1, 0.1, 0, 1.58216025169674},
     {{0.01754819954821, 0.03712716314001, -0.15002567801417, 0.09535031532595},
      {-0.03311345705118, 0.02201401717301, 0.00667801024429, 0.00442142963387},
      {0, 0, 0, 0},
      {-0.00126975661397, -0.00808486093366, -0.00207952007797, 0.0114341376256},
      {0.01477260551367, -0.3207878085097, 0.10888130859727, 0.19713389439876},
      {0.100778832108, 0.0702160938587, -0.18827525145128, 0.01728032548459}}},
    {{"mixed", 0, 0, 0.7, 1.31518813951647},
     {{0.0164498047575, -0.02133155844922, -0.07335440247317, 0.07823615616488},
      {-0.03078336928952, -0.00112364657837, 0.02377565102399, 0.0081313648439},
      {0, 0, 0, 0},
      {-0.04687740388233, 0.02042815004095, 0.04448511916828, -0.01803586532691},
      {0.00912084779599, -0.11401336422955, 0.06079541048041, 0.04409710595314},
      {0.0847416058322, 0.06581833342253, -0.16473866785746, 0.01417872860274}}},
    {{"all", 1, 0.2, 0.7, 1.57292301298752},
     {{0.0165401678579, -0.05252124771604, -0.06553458473081, 0.10151566458894},
      {0.03503918130881, -0.05102845224462, 0.00885355636328, 0.00713571457253},
      {0, 0, 0, 0},
      {-0.02194039181109, -0.01340536057259, 0.00064563037206, 0.03470012201161},
      {0.00705424140346, -0.20943052785127, 0.0670330763545, 0.13534321009332},
      {0.09188858774169, 0.05588347338076, -0.16395045280801, 0.01617839168557}}},
};
enum { CASES = sizeof cases / sizeof cases[0] };

typedef struct {
    adj_graph *g;
    adj_node *z, *labels, *others, *mix, *weights, *loss;
} task;

static task new_task(size_t i, adj_dtype dtype)
{
    task t = {.g = adj_graph_new()};
    t.z = adj_param(t.g, "z", dtype, (adj_shape){2, {N, K}}, adj_init_constant(0));
    t.labels = adj_input(t.g, "labels", ADJ_I32, (adj_shape){1, {N}});
    if (cases[i].of.is_weighted)
        t.weights = adj_input(t.g, "weights", ADJ_F32, (adj_shape){1, {K}});
    if (cases[i].of.mix > 0) {
        t.others = adj_input(t.g, "others", ADJ_I32, (adj_shape){1, {N}});
        t.mix = adj_input(t.g, "mix", ADJ_F64, (adj_shape){0});
    }
    const adj_loss_opts o = {.smoothing = cases[i].of.smoothing,
                             .weights = t.weights,
                             .other_labels = t.others,
                             .mix = t.mix};
    t.loss = adj_loss_softmax(t.z, t.labels, &o);
    return t;
}

static void task_free(task *t) { adj_graph_free(t->g); }

static void set_all(adj_exec *e, const task *t, size_t i)
{
    set_sine(e, t->z, 0.5, 3);
    set_values(e, t->labels, first_labels);
    if (t->weights != NULL)
        set_values(e, t->weights, class_weights);
    if (t->others != NULL) {
        set_values(e, t->others, second_labels);
        set_values(e, t->mix, &cases[i].of.mix);
    }
}

/* The loss and its gradient after a run. */
static void expect_loss(adj_exec *e, const adj_node *loss, double want, const adj_node *gradient,
                        const double wanted[], double tolerance, const char *name)
{
    run(e);
    scoped(release) double *got = fixture_get(e, gradient);
    const double value = get_scalar(e, loss);
    cr_expect_float_eq(value, want, tolerance, "%s: %.17g", name, value);
    for (int k = 0; k < elems_of(gradient); k++)
        cr_expect_float_eq(got[k], wanted[k], tolerance, "%s, %d: %.17g", name, k, got[k]);
}

static void expect_pytorch(size_t i, adj_dtype dtype, double tolerance)
{
    scoped(task_free) task t = new_task(i, dtype);
    adj_node *dz = gradient_of(t.loss, NULL, t.z);
    scoped(release_exec) adj_exec *e = exec_new(t.g, 2, (adj_node *[]){t.loss, dz}, NULL);
    set_all(e, &t, i);
    expect_loss(e, t.loss, cases[i].of.loss, dz, cases[i].gradient[0], tolerance, cases[i].of.name);
}

Test(loss, as_in_pytorch)
{
    for (size_t i = 0; i < CASES; i++) {
        expect_pytorch(i, ADJ_F64, 1e-12);
        expect_pytorch(i, ADJ_F32, 1e-6);
        expect_pytorch(i, ADJ_BF16, 0.02);
    }
}

/* Equal weights change nothing, whatever they are; a mix of 1 is the loss of the first labels. */
Test(loss, identities)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *z = adj_input(g, "z", ADJ_F64, (adj_shape){2, {N, K}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {N}});
    adj_node *others = adj_input(g, "others", ADJ_I32, (adj_shape){1, {N}});
    adj_node *threes = adj_fill(g, ADJ_F64, (adj_shape){1, {K}}, 3);
    adj_node *one = adj_fill(g, ADJ_F64, (adj_shape){0}, 1);
    adj_node *y[] = {
        adj_loss_softmax(z, labels, NULL),
        adj_loss_softmax(z, labels, &(adj_loss_opts){.weights = threes}),
        adj_loss_softmax(z, labels, &(adj_loss_opts){.other_labels = others, .mix = one}),
        adj_loss_softmax(z, labels, &(adj_loss_opts){.smoothing = 0.3}),
        adj_loss_softmax(z, labels, &(adj_loss_opts){.smoothing = 0.3, .weights = threes})};
    scoped(release_exec) adj_exec *e = exec_new(g, 5, y, NULL);
    set_sine(e, z, 0.5, 3);
    set_values(e, labels, first_labels);
    set_values(e, others, second_labels);
    run(e);
    for (int i = 1; i < 3; i++)
        cr_expect_float_eq(get_scalar(e, y[i]), get_scalar(e, y[0]), 1e-14);
    cr_expect_float_eq(get_scalar(e, y[4]), get_scalar(e, y[3]), 1e-14);
}

/* No label, or only of a class without weight: 0, and a gradient of 0. A label that is no class
 * fails the run. */
Test(loss, nothing_counts)
{
    static const double none[N] = {-1, -1, -1, -1, -1, -1}, third[N] = {3, -1, 3, 3, 3, 3};
    static const double wrong[N] = {0, 1, 2, 3, 4, 0};
    scoped(task_free) task t = new_task(1, ADJ_F64);
    adj_node *dz = gradient_of(t.loss, NULL, t.z);
    scoped(release_exec) adj_exec *e = exec_new(t.g, 2, (adj_node *[]){t.loss, dz}, NULL);
    set_all(e, &t, 1);
    for (int i = 0; i < 2; i++) {
        static const double zeros[N * K];
        set_values(e, t.labels, i == 0 ? none : third);
        expect_loss(e, t.loss, 0, dz, zeros, 0, "nothing");
    }
    set_values(e, t.labels, wrong);
    cr_expect_eq(adj_run(e), ADJ_EARG);
}

static adj_node *softmax(fixture *f, adj_loss_opts o)
{
    return adj_loss_softmax(input(f, "f32[6, 4]"), input(f, "i32[6]"), &o);
}

Test(loss, refused)
{
    scoped(fixture_free) fixture f = fixture_new();
    static const char *const weights[] = {"f32[1]", "f32[6, 4]", "f32[]"};
    const adj_loss_opts negative = {.delta = -1};
    expect_refusal(&f, softmax(&f, (adj_loss_opts){.smoothing = -0.1}), ADJ_EARG,
                   "smoothing is out of range (got -0.1, expected 0 to 1)");
    expect_refusal(&f, softmax(&f, (adj_loss_opts){.smoothing = NAN}), ADJ_EARG,
                   "smoothing is out of range");
    expect_refusal(&f, softmax(&f, (adj_loss_opts){.mix = input(&f, "f32[]")}), ADJ_EARG,
                   "other_labels is missing");
    expect_refusal(&f, softmax(&f, (adj_loss_opts){.other_labels = input(&f, "i32[6]")}), ADJ_EARG,
                   "mix is missing");
    const adj_loss_opts mixed = {.other_labels = input(&f, "i32[6]"), .mix = input(&f, "f32[1]")};
    expect_refusal(&f, softmax(&f, mixed), ADJ_ESHAPE, "mix has the wrong rank (got 1");
    for (int i = 0; i < 3; i++)
        expect_refusal(&f, softmax(&f, (adj_loss_opts){.weights = input(&f, weights[i])}),
                       ADJ_ESHAPE, "weights must have one value per class, 4");
    cr_expect_null(adj_loss_softmax(NULL, NULL, NULL));
    expect_refusal(&f, softmax(&f, (adj_loss_opts){.reduction = (adj_loss_reduction)9}), ADJ_EARG,
                   "loss: reduction is wrong (got 9, expected 0 to 2)");
    const adj_loss_opts below = {.reduction = (adj_loss_reduction)-1};
    expect_refusal(&f, adj_loss_mse(input(&f, "f32[6]"), input(&f, "f32[6]"), &below), ADJ_EARG,
                   "loss: reduction is wrong (got -1, expected 0 to 2)");
    expect_refusal(&f, adj_loss_mse(input(&f, "f32[3, 4]"), input(&f, "f32[3]"), NULL), ADJ_ESHAPE,
                   "does not have the prediction");
    expect_refusal(&f, adj_loss_huber(input(&f, "f32[3, 4]"), input(&f, "f32[3, 4]"), &negative),
                   ADJ_EARG, "delta is out of range (got -1");
    expect_refusal(&f, adj_loss_softmax(input(&f, "f32[3, 4]"), input(&f, "f32[3]"), NULL),
                   ADJ_EDTYPE, "labels have the wrong type");
    expect_refusal(&f, adj_loss_softmax(input(&f, "f32[3, 4]"), input(&f, "i32[3, 4]"), NULL),
                   ADJ_ESHAPE, "without the last axis");
    cr_expect_null(adj_loss_mse(NULL, NULL, NULL));
}

/* ---- losses of elements, and of pixels: PyTorch's, in float64 ---- */

enum { ELEMS = 12 };

typedef struct {
    struct {
        const char *name;
        adj_node *(*build)(adj_node *prediction, adj_node *target, const adj_loss_opts *options);
        int is_weighted;
        adj_loss_opts options;
        double loss;
    } of;
    double gradient[ELEMS];
} element_case;

static const double column_weights[] = {0.5, 2, 0, 1.25};
static const double probabilities[ELEMS] = {0, 1, 0.25, 1, 0, 0, 1, 0.5, 1, 1, 0, 0};

/* predictions sin(0.37 i + 1) * 2; targets sin(0.37 i + 0.3), or the probabilities */
static const element_case element_cases[] = {
    {{"mse", adj_loss_mse, 0, {.smoothing = 0}, 1.1281405707875123},
     {0.2312369604924, 0.2231383559601, 0.184839021738, 0.1215225930426, 0.04175865146723,
      -0.04365712768557, -0.123164119411, -0.1860014253631, -0.2236643109645, -0.2310552813335,
      -0.2071740033034, -0.1552526958233}},
    {{"mse, weights", adj_loss_mse, 1, {.smoothing = 0}, 1.134787314935031},
     {0.1233263789293, 0.4760284927149, 0, 0.1620301240568, 0.02227128078252, -0.09313520572921, 0,
      -0.2480019004841, -0.1192876325144, -0.4929179335115, 0, -0.2070035944311}},
    {{"mse, sum", adj_loss_mse, 0, {.reduction = ADJ_LOSS_SUM}, 13.537686849450147},
     {2.774843525909, 2.677660271521, 2.218068260856, 1.458271116512, 0.5011038176068,
      -0.5238855322268, -1.477969432932, -2.232017104357, -2.683971731574, -2.772663376002,
      -2.486088039641, -1.86303234988}},
    {{"l1", adj_loss_l1, 0, {.smoothing = 0}, 0.9862322732923235},
     {0.08333333333333, 0.08333333333333, 0.08333333333333, 0.08333333333333, 0.08333333333333,
      -0.08333333333333, -0.08333333333333, -0.08333333333333, -0.08333333333333, -0.08333333333333,
      -0.08333333333333, -0.08333333333333}},
    {{"huber, delta", adj_loss_huber, 0, {.delta = 0.7}, 0.4617749965896539},
     {0.05833333333333, 0.05833333333333, 0.05833333333333, 0.05833333333333, 0.02087932573361,
      -0.02182856384278, -0.05833333333333, -0.05833333333333, -0.05833333333333, -0.05833333333333,
      -0.05833333333333, -0.05833333333333}},
    {{"huber, weights", adj_loss_huber, 1, {.smoothing = 0}, 0.537239722990441},
     {0.04444444444444, 0.1777777777778, 0, 0.08101506202842, 0.01113564039126, -0.04656760286461,
      0, -0.1111111111111, -0.04444444444444, -0.1777777777778, 0, -0.1035017972156}},
    {{"binary", adj_loss_binary, 0, {.smoothing = 0}, 0.9803930041397478},
     {0.07027447529161, -0.01029057905614, 0.05231379358849, -0.01269638918161, 0.06446662168116,
      0.0533254969775, -0.0449236351486, -0.01701116207772, -0.06762921053445, -0.07206480190609,
      0.00993491982425, 0.01109504639992}},
    {{"binary, weights", adj_loss_binary, 1, {.smoothing = 0}, 0.9046710514668371},
     {0.03747972015552, -0.02195323531978, 0, -0.01692851890881, 0.03438219822995, 0.1137610602187,
      0, -0.02268154943696, -0.03606891228504, -0.1537382440663, 0, 0.0147933951999}},
};

static void expect_element_loss(const element_case *c, const char *backend, adj_dtype dtype,
                                double tolerance)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_shape shape = {2, {3, 4}};
    adj_node *p = adj_param(g, "p", dtype, shape, adj_init_constant(0));
    adj_node *t = adj_input(g, "t", dtype, shape);
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){1, {4}});
    adj_loss_opts o = c->of.options;
    o.weights = c->of.is_weighted ? w : NULL;
    adj_node *loss = c->of.build(p, t, &o);
    adj_node *dp = gradient_of(loss, NULL, p);
    const adj_exec_opts opts = {
        .n_fetch = 2, .fetch = (adj_node *[]){loss, dp}, .backend = backend};
    scoped(release_exec) adj_exec *e = plan_of(g, &opts);
    set_sine(e, p, 1, 2);
    set_sine(e, t, 0.3, 1);
    if (c->of.build == adj_loss_binary)
        set_values(e, t, probabilities);
    if (c->of.is_weighted)
        set_values(e, w, column_weights);
    expect_loss(e, loss, c->of.loss, dp, c->gradient, tolerance, c->of.name);
}

Test(loss, of_elements)
{
    for (size_t i = 0; i < sizeof element_cases / sizeof *element_cases; i++) {
        expect_element_loss(&element_cases[i], "naive", ADJ_F64, 1e-12);
        expect_element_loss(&element_cases[i], "onednn", ADJ_F32, 1e-5);
    }
}

Test(loss, of_elements_at_rest)
{
    scoped(fixture_free) fixture f = fixture_new();
    const double at[] = {0, 500, -500}, wanted[] = {0.5, 0, 1}, zero[3] = {0};
    adj_node *z = given(&f, ADJ_F32, (adj_shape){1, {3}}, at);
    adj_node *t = given(&f, ADJ_F32, (adj_shape){1, {3}}, wanted);
    adj_node *binary = adj_loss_binary(z, t, &(adj_loss_opts){.reduction = ADJ_LOSS_EACH});
    expect_values(&f, binary, "naive", (double[]){log(2), 500, 500}, 1e-6, 0);
    adj_node *dz = gradient_of(adj_loss_binary(z, t, NULL), NULL, z);
    expect_values(&f, dz, "naive", (double[]){0, 1.0 / 3, -1.0 / 3}, 1e-6, 1e-7);
    expect_exact(&f, gradient_of(adj_loss_l1(z, z, NULL), NULL, z), zero);
    adj_node *none = given(&f, ADJ_F32, (adj_shape){0}, zero);
    adj_node *nothing = adj_loss_mse(z, t, &(adj_loss_opts){.weights = none});
    expect_exact(&f, nothing, zero);
}

static const double pixel_labels[] = {0, 2, 1, 7};

Test(loss, of_pixels)
{
    const double want[4][3] = {{-0.2883013428853, 0.105856386518, 0.1824449563673},
                               {0.1512274815048, 0.1183213426311, -0.2695488241359},
                               {0.228851782476, -0.255065136319, 0.026213353843},
                               {0, 0, 0}};
    const double each[] = {2.001769854266968, 1.6536326319919532, 1.4490016382253232, 0};
    const double mean = 1.701468041494748, weighted = 5.965928993574072;
    scoped(fixture_free) fixture f = fixture_new();
    double logits[12];
    for (int i = 0; i < 12; i++)
        logits[i] = sine(i, 0.5, 3);
    adj_node *z = given(&f, ADJ_F64, (adj_shape){4, {1, 2, 2, 3}}, logits);
    adj_node *labels = given(&f, ADJ_I32, (adj_shape){3, {1, 2, 2}}, pixel_labels);
    adj_node *weights = given(&f, ADJ_F64, (adj_shape){1, {3}}, (double[]){0.5, 2, 1.25});
    adj_loss_opts o = {.ignored_label = 7};
    adj_node *loss = adj_loss_softmax(z, labels, &o);
    expect_values(&f, loss, "naive", &mean, 1e-12, 0);
    expect_values(&f, gradient_of(loss, NULL, z), "naive", want[0], 1e-12, 1e-13);
    o.reduction = ADJ_LOSS_EACH;
    adj_node *rows = adj_loss_softmax(z, labels, &o);
    cr_assert_eq(adj_node_type(rows).shape.rank, 3);
    expect_values(&f, rows, "naive", each, 1e-12, 0);
    o = (adj_loss_opts){.ignored_label = 7, .weights = weights, .reduction = ADJ_LOSS_SUM};
    expect_values(&f, adj_loss_softmax(z, labels, &o), "naive", &weighted, 1e-12, 0);
}
