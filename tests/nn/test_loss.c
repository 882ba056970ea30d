/* test_loss.c - softmax losses with class weights, smoothing and mixed labels, and their gradients,
 * against PyTorch. */
#include <string.h>

#include "adjoint_check.h"
#include "nn_test.h"

enum { N = 6, K = 4 };

static const double class_weights[K] = {0.5, 2, 1.25, 0};
static const double first_labels[N] = {2, 0, -1, 3, 1, 2}, second_labels[N] = {1, 1, -1, 0, 3, 2};

/* PyTorch 1.13, float64: cross_entropy(z, labels, weight, ignore_index=-1, label_smoothing), of the
 * logits sin(0.37 i + 0.5) * 3. */
static const struct {
    const char *name;
    int is_weighted;
    double smoothing, mix; /* mix 0: none */
    double loss, gradient[N * K];
} cases[] = {
    {"plain",
     0,
     0,
     0,
     1.1949536234049956,
     {0.016449804757503798,
      0.038668441550778865,
      -0.1333544024731653,
      0.078236156164882623,
      -0.090783369289523783,
      0.058876353421631493,
      0.023775651023990051,
      0.008131364843902221,
      0,
      0,
      0,
      0,
      0.013122596117668332,
      0.020428150040952851,
      0.044485119168284723,
      -0.078035865326905901,
      0.0091208477959948651,
      -0.17401336422954636,
      0.06079541048040854,
      0.10409710595314292,
      0.084741605832202124,
      0.065818333422525896,
      -0.16473866785746444,
      0.014178728602736435}},
    {"weights",
     1,
     0,
     0,
     1.5854070860582179,
     {0.020562255946879746,
      0.048335551938473581,
      -0.16669300309145663,
      0.097795195206103275,
      -0.045391684644761891,
      0.029438176710815746,
      0.011887825511995026,
      0.0040656824219511105,
      0,
      0,
      0,
      0,
      0,
      0,
      0,
      -0,
      0.01824169559198973,
      -0.34802672845909272,
      0.12159082096081708,
      0.20819421190628584,
      0.10592700729025264,
      0.082272916778157359,
      -0.20592333482183053,
      0.017723410753420543}},
    {"smoothed",
     0,
     0.1,
     0,
     1.2437911388442462,
     {0.011449804757503798,
      0.033668441550778867,
      -0.1183544024731653,
      0.073236156164882618,
      -0.075783369289523769,
      0.053876353421631488,
      0.01877565102399005,
      0.0031313648439022213,
      0,
      0,
      0,
      0,
      0.008122596117668331,
      0.01542815004095285,
      0.039485119168284726,
      -0.063035865326905888,
      0.004120847795994865,
      -0.15901336422954634,
      0.055795410480408543,
      0.09909710595314293,
      0.07974160583220212,
      0.060818333422525891,
      -0.14973866785746442,
      0.009178728602736436}},
    {"both",
     1,
     0.1,
     0,
     1.5821602516967352,
     {0.01754819954820775,
      0.037127163140011743,
      -0.15002567801417019,
      0.095350315325950688,
      -0.033113457051178553,
      0.022014017173012122,
      0.0066780102442945887,
      0.0044214296338718328,
      0,
      0,
      0,
      0,
      -0.0012697566139685938,
      -0.0080848609336606706,
      -0.0020795200779733071,
      0.011434137625602574,
      0.014772605513665273,
      -0.3207878085097034,
      0.10888130859727367,
      0.19713389439876439,
      0.10077883210799633,
      0.070216093858703421,
      -0.18827525145128476,
      0.017280325484585028}},
    {"mixed",
     0,
     0,
     0.7,
     1.3151881395164733,
     {0.016449804757503798,
      -0.021331558449221147,
      -0.073354402473165284,
      0.078236156164882623,
      -0.030783369289523757,
      -0.0011236465783685257,
      0.023775651023990048,
      0.008131364843902221,
      0,
      0,
      0,
      0,
      -0.046877403882331685,
      0.020428150040952851,
      0.044485119168284723,
      -0.018035865326905882,
      0.0091208477959948634,
      -0.11401336422954633,
      0.06079541048040854,
      0.044097105953142909,
      0.08474160583220211,
      0.065818333422525882,
      -0.16473866785746444,
      0.014178728602736435}},
    {"all",
     1,
     0.2,
     0.7,
     1.572923012987518,
     {0.016540167857902344,
      -0.052521247716041025,
      -0.065534584730805506,
      0.10151566458894416,
      0.035039181308807593,
      -0.051028452244615038,
      0.0088535563632808345,
      0.0071357145725265848,
      0,
      0,
      0,
      0,
      -0.021940391811087302,
      -0.0134053605725876,
      0.0006456303720636155,
      0.034700122011611288,
      0.0070542414034557143,
      -0.20943052785127375,
      0.067033076354500731,
      0.13534321009331729,
      0.091888587741689315,
      0.055883473380757123,
      -0.16395045280801446,
      0.016178391685568012}},
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
    if (cases[i].is_weighted)
        t.weights = adj_input(t.g, "weights", ADJ_F32, (adj_shape){1, {K}});
    if (cases[i].mix > 0) {
        t.others = adj_input(t.g, "others", ADJ_I32, (adj_shape){1, {N}});
        t.mix = adj_input(t.g, "mix", ADJ_F64, (adj_shape){0});
    }
    const adj_loss_opts o = {cases[i].smoothing, t.weights, t.others, t.mix};
    t.loss = adj_loss_softmax_with(t.z, t.labels, &o);
    return t;
}

static void set_all(adj_exec *e, const task *t, size_t i)
{
    set_sine(e, t->z, 0.5, 3);
    set_values(e, t->labels, first_labels);
    if (t->weights != NULL)
        set_values(e, t->weights, class_weights);
    if (t->others != NULL) {
        set_values(e, t->others, second_labels);
        set_values(e, t->mix, &cases[i].mix);
    }
}

static void expect_pytorch(size_t i, adj_dtype dtype, double tolerance)
{
    task t = new_task(i, dtype);
    adj_node *dz = NULL;
    cr_assert_eq(adj_grad(t.loss, NULL, 1, &t.z, &dz), ADJ_OK, "%s", adj_graph_message(t.g));
    adj_exec *e = exec_new(t.g, 2, (adj_node *[]){t.loss, dz}, NULL);
    set_all(e, &t, i);
    run(e);
    double *got = get_values(e, dz), loss = get_scalar(e, t.loss);
    cr_expect_float_eq(loss, cases[i].loss, tolerance, "%s: %.17g", cases[i].name, loss);
    for (int k = 0; k < N * K; k++)
        cr_expect_float_eq(got[k], cases[i].gradient[k], tolerance, "%s, %d: %.17g", cases[i].name,
                           k, got[k]);
    free(got);
    adj_exec_free(e);
    adj_graph_free(t.g);
}

Test(loss, as_in_pytorch)
{
    for (size_t i = 0; i < CASES; i++) {
        expect_pytorch(i, ADJ_F64, 1e-12);
        expect_pytorch(i, ADJ_F32, 1e-6);
        expect_pytorch(i, ADJ_BF16, 0.02);
    }
}

Test(loss, gradients)
{
    for (size_t i = 0; i < CASES; i++) {
        task t = new_task(i, ADJ_F32);
        adj_gradcheck_report *r = NULL;
        cr_assert_eq(adj_gradcheck(t.loss, &(adj_gradcheck_opts){.backend = "naive"}, &r), ADJ_OK,
                     "%s", adj_gradcheck_message(r));
        cr_expect_eq(adj_gradcheck_verdict(r), ADJ_GRADCHECK_PASS, "%s", cases[i].name);
        adj_gradcheck_free(r);
        adj_graph_free(t.g);
    }
}

/* Equal weights change nothing, whatever they are; a mix of 1 is the loss of the first labels. */
Test(loss, identities)
{
    adj_graph *g = adj_graph_new();
    adj_node *z = adj_input(g, "z", ADJ_F64, (adj_shape){2, {N, K}});
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {N}});
    adj_node *others = adj_input(g, "others", ADJ_I32, (adj_shape){1, {N}});
    adj_node *threes = adj_fill(g, ADJ_F64, (adj_shape){1, {K}}, 3);
    adj_node *one = adj_fill(g, ADJ_F64, (adj_shape){0}, 1);
    adj_node *y[] = {
        adj_loss_softmax(z, labels),
        adj_loss_softmax_with(z, labels, &(adj_loss_opts){.weights = threes}),
        adj_loss_softmax_with(z, labels, &(adj_loss_opts){.other_labels = others, .mix = one}),
        adj_loss_softmax_smoothed(z, labels, 0.3),
        adj_loss_softmax_with(z, labels, &(adj_loss_opts){.smoothing = 0.3, .weights = threes})};
    adj_exec *e = exec_new(g, 5, y, NULL);
    set_sine(e, z, 0.5, 3);
    set_values(e, labels, first_labels);
    set_values(e, others, second_labels);
    run(e);
    for (int i = 1; i < 3; i++)
        cr_expect_float_eq(get_scalar(e, y[i]), get_scalar(e, y[0]), 1e-14);
    cr_expect_float_eq(get_scalar(e, y[4]), get_scalar(e, y[3]), 1e-14);
    adj_exec_free(e);
    adj_graph_free(g);
}

/* No label, or only of a class without weight: 0, and a gradient of 0. A label that is no class
 * fails the run. */
Test(loss, nothing_counts)
{
    static const double none[N] = {-1, -1, -1, -1, -1, -1}, third[N] = {3, -1, 3, 3, 3, 3};
    static const double wrong[N] = {0, 1, 2, 3, 4, 0};
    task t = new_task(1, ADJ_F64);
    adj_node *dz = NULL;
    cr_assert_eq(adj_grad(t.loss, NULL, 1, &t.z, &dz), ADJ_OK);
    adj_exec *e = exec_new(t.g, 2, (adj_node *[]){t.loss, dz}, NULL);
    set_all(e, &t, 1);
    for (int i = 0; i < 2; i++) {
        set_values(e, t.labels, i == 0 ? none : third);
        run(e);
        double *got = get_values(e, dz);
        cr_expect_eq(get_scalar(e, t.loss), 0);
        for (int k = 0; k < N * K; k++)
            cr_expect_eq(got[k], 0);
        free(got);
    }
    set_values(e, t.labels, wrong);
    cr_expect_eq(adj_run(e), ADJ_EARG);
    adj_exec_free(e);
    adj_graph_free(t.g);
}

Test(loss, refused)
{
    for (int i = 0; i < 8; i++) {
        adj_graph *g = adj_graph_new();
        adj_node *z = adj_input(g, "z", ADJ_F32, (adj_shape){2, {N, K}});
        adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {N}});
        adj_node *scalar = adj_fill(g, ADJ_F32, (adj_shape){0}, 1);
        adj_node *one = adj_fill(g, ADJ_F32, (adj_shape){1, {1}}, 1);
        adj_node *rows = adj_fill(g, ADJ_F32, (adj_shape){2, {N, K}}, 1);
        const struct {
            adj_loss_opts o;
            const char *says;
        } bad[] = {{{.smoothing = -0.1}, "smoothing is out of range (got -0.1, expected 0 to 1)"},
                   {{.smoothing = NAN}, "smoothing is out of range"},
                   {{.mix = scalar}, "other_labels is missing"},
                   {{.other_labels = labels}, "mix is missing"},
                   {{.other_labels = labels, .mix = one}, "mix has the wrong rank (got 1"},
                   {{.weights = one}, "weights are not one for each of 4 classes"},
                   {{.weights = rows}, "weights are not one for each of 4 classes"},
                   {{.weights = scalar}, "weights are not one for each of 4 classes"}};
        cr_expect_null(adj_loss_softmax_with(z, labels, &bad[i].o));
        cr_expect_not_null(strstr(adj_graph_message(g), bad[i].says), "%s", adj_graph_message(g));
        adj_graph_free(g);
    }
    cr_expect_null(adj_loss_softmax_with(NULL, NULL, NULL));
}
