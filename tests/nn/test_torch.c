/* test_torch.c - whole models against PyTorch in float64: the loss of a training step, and the norm
 * and a weighted sum of gradients. Parameters are sines of squares: full-rank matrices that any
 * program can make. */
#include <string.h>

#include "nn_test.h"

typedef struct {
    const char *name;
    double norm, sum; /* of the gradient g: sqrt of sum g[i]^2, sum of g[i] cos(i) */
} summary;

/* PyTorch 1.13; the nets are those of a few lines of torch.nn.functional. */
static const summary lenet[] = {
    {"conv1/w", 3.4178330369374783, -0.2663610032357776},
    {"conv1/b", 1.2681238949684923, 0.40844290774499603},
    {"conv2/w", 26.668421196426504, 15.913872556470533},
    {"conv2/b", 0.84255520573026732, -0.096055236248763776},
    {"fc1/w", 66.810721994798371, -1.2050618107550597},
    {"fc1/b", 0.73719567915703366, 0.18011057430550503},
    {"logits/w", 14.547910566261509, 3.4157444774442594},
    {"logits/b", 0.72378626400875423, -0.6312902369838751},
};
static const summary resnet20[] = {
    {"conv1/w", 4.4993746662041989, -2.2671995758724468},
    {"bn1/gamma", 1.0523958901282995, 0.67884155685481695},
    {"bn1/beta", 0.7899180258177193, 0.25828700324217096},
    {"stage1/block1/conv1/w", 6.5912401129737459, -0.10197096341980361},
    {"stage1/block1/bn1/gamma", 0.5997356700390668, 0.24293460540563469},
    {"stage1/block1/bn1/beta", 0.37512144558333316, -0.17466172990574444},
    {"stage1/block1/conv2/w", 5.4259087522534086, -3.2097558004030859},
    {"stage1/block1/bn2/gamma", 0.29755728980382673, -0.15287648477491322},
    {"stage1/block1/bn2/beta", 0.41139249117089555, -0.18908183337763235},
    {"stage2/block1/conv1/w", 4.6185161706865552, 1.8345608542890248},
    {"stage2/block1/bn1/gamma", 0.36753877114010819, 0.133646014448151},
    {"stage2/block1/bn1/beta", 0.34363953684146809, 0.018102818593956072},
    {"stage2/block1/conv2/w", 5.4778999063831275, -6.4558761329100189},
    {"stage2/block1/bn2/gamma", 0.38537590673522121, 0.096329776336268491},
    {"stage2/block1/bn2/beta", 0.25587370375030938, -0.11204118294511944},
    {"stage2/block1/shortcut/w", 1.2859147471230212, -0.68158147330432139},
    {"stage2/block1/shortcut_bn/gamma", 0.39360532081318544, -0.31771788529210598},
    {"stage2/block1/shortcut_bn/beta", 0.25587370375030938, -0.11204118294511944},
    {"stage3/block3/conv1/w", 3.4155455277395141, 1.0906759130794945},
    {"stage3/block3/bn1/gamma", 0.15152565364892104, 0.10749431917318233},
    {"stage3/block3/bn1/beta", 0.13527593788109388, 0.15870622821156496},
    {"stage3/block3/conv2/w", 2.8375111447011991, -0.08057847805024726},
    {"stage3/block3/bn2/gamma", 0.31882394815651727, -0.015987503793637947},
    {"stage3/block3/bn2/beta", 0.65374938757531453, 0.14109197008172825},
    {"logits/w", 8.0600959501230722, 1.1122569747223006},
    {"logits/b", 0.74856210430163794, -0.15984932560855003},
};
static const summary mobilenet[] = {
    {"conv1/w", 58.091160462855512, 16.768671877493926},
    {"bn1/gamma", 1.8881373834155402, 0.42844556478622298},
    {"bn1/beta", 7.1849660233574779, 6.2230399554880496},
    {"block1/depthwise/w", 21.731609138595225, -5.0590663186825884},
    {"block1/bn1/gamma", 4.5563172604911539, -0.66718699424065731},
    {"block1/bn1/beta", 7.7276293650779673, 0.071805391397834484},
    {"block1/pointwise/w", 20.371741776969124, -7.6446273444174206},
    {"block1/bn2/gamma", 0.73474893299092237, 0.1411010943311615},
    {"block1/bn2/beta", 4.1111667932991924, 3.5231241906667319},
    {"block2/depthwise/w", 18.405131912986452, 0.012874335631043898},
    {"block2/bn1/gamma", 5.1784815053265651, 7.2787755782979966},
    {"block2/bn1/beta", 3.8581701264201849, 1.4709809232372297},
    {"block2/pointwise/w", 21.533108812948583, -15.718353353087704},
    {"block2/bn2/gamma", 0.42394107719893498, -0.15189075742260974},
    {"block2/bn2/beta", 3.2190709990137618, 2.0508216510725847},
    {"block13/depthwise/w", 0.60925943179117215, -0.22260312743634125},
    {"block13/bn1/gamma", 0.26034402076022645, -0.10944245601234527},
    {"block13/bn1/beta", 0.20964836618547919, 0.046291277867426567},
    {"block13/pointwise/w", 2.9670425612652633, -1.9771996974124528},
    {"block13/bn2/gamma", 0.20758006154965061, -0.4285303071262046},
    {"block13/bn2/beta", 0.15985353839041766, -0.25687411863073772},
    {"logits/w", 2.3373276355174375, -2.6430300875624804},
    {"logits/b", 0.017987212835290353, -0.005846839886308821},
};

static const struct {
    const char *name;
    int64_t size;
    double labels[4], loss;
    const summary *gradient;
    int n;
} cases[] = {
    {"lenet", 28, {3, -1, 7, 0}, 4.7343524521504436, lenet, sizeof lenet / sizeof *lenet},
    {"resnet20",
     16,
     {3, -1, 7, 0},
     4.1403235326650796,
     resnet20,
     sizeof resnet20 / sizeof *resnet20},
    {"mobilenet_v1",
     64,
     {0, 1, -1, 1},
     0.74697783149221308,
     mobilenet,
     sizeof mobilenet / sizeof *mobilenet},
};
enum { MAX_GRADIENT = 32 };

/* sin(0.37 i^2 + phase) * scale + offset */
static void set_squares(adj_exec *e, const adj_node *leaf, double phase, double scale,
                        double offset)
{
    int64_t n = adj_shape_elems(adj_node_type(leaf).shape);
    scoped(release) double *v = malloc((size_t)(n + 1) * sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = sin((double)i * (double)i * 0.37 + phase) * scale + offset;
    set_values(e, leaf, v);
}

static int ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

/* Weights of variance 2 / fan_in, other parameters around 1 (gamma) and 0. */
static void set_parameter(adj_exec *e, const adj_node *p)
{
    const char *name = adj_node_name(p);
    adj_shape s = adj_node_type(p).shape;
    double fan_in = s.rank > 1 ? (double)(adj_shape_elems(s) / s.dim[s.rank - 1]) : 1;

    if (ends(name, "depthwise/w"))
        fan_in = 9;
    if (ends(name, "/w"))
        set_squares(e, p, 1, sqrt(4 / fan_in), 0);
    else if (ends(name, "/gamma"))
        set_squares(e, p, 2, 0.3, 1);
    else
        set_squares(e, p, 3, 0.3, 0);
}

static void expect_summary(adj_exec *e, const adj_node *gradient, const summary *s)
{
    double *v = fixture_get(e, gradient), squares = 0, sum = 0;

    for (int64_t i = 0; i < adj_shape_elems(adj_node_type(gradient).shape); i++) {
        squares += v[i] * v[i];
        sum += v[i] * cos((double)i);
    }
    free(v);
    const double got[] = {sqrt(squares), sum}, want[] = {s->norm, s->sum};
    expect_close(got, want, 2, 1e-9, 1e-9 * s->norm, s->name);
}

static void check(size_t k, adj_format format)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_model_opts o = {.batch = 4,
                              .size.h = cases[k].size,
                              .size.w = cases[k].size,
                              .dtype = ADJ_F64,
                              .training = 1};
    adj_model_opts inside = o;
    inside.format = format;
    const adj_model *m = adj_model_find(cases[k].name, NULL);
    const int to_nchw[] = {0, 3, 1, 2};
    adj_node *images = adj_input(g, "images", ADJ_F64,
                                 (adj_shape){4, {4, o.size.h, o.size.w, m->defaults.size.c}});
    adj_node *x = format == ADJ_NCHW ? adj_transpose(images, 4, to_nchw) : images;
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {4}});
    adj_node *loss = adj_loss_softmax(m->build(x, &inside), labels, NULL);
    adj_node *params[MAX_GRADIENT], *fetch[MAX_GRADIENT + 1], *all[100];

    for (int i = 0; i < cases[k].n; i++)
        params[i] = adj_find(g, cases[k].gradient[i].name);
    cr_assert_eq(adj_grad(loss, NULL, cases[k].n, params, fetch), ADJ_OK, "%s",
                 adj_graph_message(g));
    fetch[cases[k].n] = loss;
    scoped(release_exec) adj_exec *e = exec_new(g, cases[k].n + 1, fetch, NULL);
    set_squares(e, images, 0.5, 1, 0);
    set_values(e, labels, cases[k].labels);
    int n = adj_trainable(loss, NULL, 100, all);
    cr_assert(n > 0 && n <= 100);
    for (int i = 0; i < n; i++)
        set_parameter(e, all[i]);
    run(e);
    const double got = get_scalar(e, loss);
    expect_close(&got, &cases[k].loss, 1, 1e-10, 0, cases[k].name);
    for (int i = 0; i < cases[k].n; i++)
        expect_summary(e, fetch[i], &cases[k].gradient[i]);
}

Test(torch, losses_and_gradients)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check(k, ADJ_NHWC);
}

/* The features that reach lenet's first dense layer are in another order in NCHW: not compared. */
Test(torch, losses_and_gradients_nchw)
{
    for (size_t k = 1; k < sizeof cases / sizeof *cases; k++)
        check(k, ADJ_NCHW);
}
