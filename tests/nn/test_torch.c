/* test_torch.c - against PyTorch in float64: whole models, by the loss of a training step, the norm
 * and a weighted sum of gradients; batch norm and dropout layers, and their states that advance.
 * Parameters are sines of squares: full-rank matrices that any program can make. */
#include <string.h>

#include "nn_test.h"
#include "ops/nn/names.h"

typedef struct {
    const char *name;
    double norm, sum; /* norm of the gradient g; sum of g[i] cos(i) */
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
    scoped(release) double *v = fixture_get(e, gradient);
    double squares = 0, sum = 0;

    for (int64_t i = 0; i < adj_shape_elems(adj_node_type(gradient).shape); i++) {
        squares += v[i] * v[i];
        sum += v[i] * cos((double)i);
    }
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

/* ---- batch norm: two training steps, then evaluation with what they left ---- */

enum { BN_ELEMS = 24 };
/* PyTorch 1.13: BatchNorm2d(2) on sines with phases 0.5, 1.5 and 2.5, scale 2. */
static const double bn_gamma[] = {1.5, -0.5}, bn_beta[] = {0.25, 2};
static const double bn_want[3][BN_ELEMS] = {
    {0.8108731168832692,  1.60526701627558,  1.817985406209111,  1.436094545127379,
     1.756771443491791,   1.643332606403265, 0.6592499805219777, 2.118582662400101,
     -0.9005062426289178, 2.613259048900494, -2.106646639818598, 2.86861490925667,
     -2.328283938144094,  2.751083071077034, -1.449487893464712, 2.32214007643015,
     0.07007590192407684, 1.806150084541709, 1.435580029001536,  1.473008307931096,
     1.932779962937138,   1.496968844567029, 1.30160887308742,   1.865498827089493},
    {2.106289961278744,   1.357309573499447, 1.641982333489726,   1.684652686793084,
     0.2841507337401027,  2.205443426854344, -1.25697352740007,   2.647275487986215,
     -2.175285551545216,  2.779042918694107, -1.990450404274075,  2.531823066846952,
     -0.7991484905131501, 2.034927460773238, 0.7754943767493722,  1.548263748507752,
     1.909840960390807,   1.326387654216097, 2.010556666571329,   1.485354327345366,
     1.024960847699018,   1.942014201620638, -0.5314179061865878, 2.45750544686276},
    {1.790924666748179,  1.780078976385661, -0.1120116986719488,  2.435941841742274,
     -1.87458728378669,  2.876615214228334, -2.57486422234985,    2.871599209372295,
     -1.846553640299718, 2.423517513132996, -0.07060777006842044, 1.766745029159146,
     1.824042022224385,  1.244815066091606, 2.846374754816653,    1.130729814896907,
     2.461646121682832,  1.484163035920343, 0.8710933906658901,   2.12024692978771,
     -1.093324341915271, 2.706269621434947, -2.404093074342439,   2.935704392534721}};
static const double bn_running[2][4] = {
    {0.04394096479030395, 0.04324530128385358, 1.110529398448083, 1.110330827076135},
    {0.06858898395727459, 0.05385755745577506, 1.206445904175555, 1.204236250614546}};

typedef struct {
    adj_graph *g;
    adj_node *x, *y;
    adj_exec *e;
} bn_net;

static bn_net bn_new(int training, adj_format format)
{
    bn_net b = {.g = adj_graph_new()};
    adj_shape s = {4, {2, 2, 3, 2}}; /* n, h, w, c */
    const int to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};

    b.x = adj_input(b.g, "x", ADJ_F64, s);
    adj_node *h = format == ADJ_NCHW ? adj_transpose(b.x, 4, to_nchw) : b.x;
    h = adj_layer_batch_norm(h, "bn", &(adj_norm_layer){.training = training, .format = format});
    b.y = format == ADJ_NCHW ? adj_transpose(h, 4, to_nhwc) : h;
    b.e = exec_new(b.g, 1, &b.y, adj_layer_updates(b.g));
    return b;
}

static void bn_free(bn_net *b)
{
    adj_exec_free(b->e);
    adj_graph_free(b->g);
}

static void bn_step(bn_net *b, int step)
{
    set_sine(b->e, b->x, 0.5 + step, 2);
    run(b->e);
    scoped(release) double *got = fixture_get(b->e, b->y);
    expect_close(got, bn_want[step], BN_ELEMS, 1e-12, 1e-13, "batch norm");
}

Test(layers, batch_norm_like_torch)
{
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++) {
        scoped(bn_free) bn_net training = bn_new(1, (adj_format)format);
        scoped(bn_free) bn_net evaluation = bn_new(0, ADJ_NHWC);
        adj_node *running = adj_find(training.g, "bn/running");
        const double initial[] = {0, 0, 1, 1};

        cr_assert_eq(adj_updates_count(adj_layer_updates(training.g)), 1);
        cr_assert_eq(adj_updates_count(adj_layer_updates(evaluation.g)), 0);
        cr_assert_eq(adj_trainable_elems(training.y), 4);
        scoped(release) double *at_first = fixture_get(training.e, running);
        expect_close(at_first, initial, 4, 0, 0, "initial running statistics");
        set_values(training.e, adj_find(training.g, "bn/gamma"), bn_gamma);
        set_values(training.e, adj_find(training.g, "bn/beta"), bn_beta);
        for (int step = 0; step < 2; step++) {
            bn_step(&training, step);
            scoped(release) double *kept = fixture_get(training.e, running);
            expect_close(kept, bn_running[step], 4, 1e-12, 1e-13, "running statistics");
        }
        cr_assert_eq(adj_copy_params(evaluation.e, training.e), ADJ_OK);
        bn_step(&evaluation, 2);
    }
}

/* ---- dropout: masks change from step to step and between layers, states advance ---- */

Test(layers, dropout_steps)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_fill(g, ADJ_F32, (adj_shape){1, {1000}}, 1);
    adj_node *y[2] = {adj_layer_dropout(x, "d1", 0.25, 1), adj_layer_dropout(x, "d2", 0.25, 1)};
    adj_updates *noted = adj_layer_updates(g);
    double *seen[2][2], same[4] = {0}, kept = 0;

    cr_assert_eq(adj_layer_dropout(x, "d3", 0.25, 0), x);
    cr_assert_eq(adj_updates_count(noted), 1); /* one step for both */
    scoped(release_exec) adj_exec *e = exec_new(g, 2, y, noted);
    for (int step = 0; step < 2; step++) {
        run(e);
        for (int i = 0; i < 2; i++)
            seen[step][i] = fixture_get(e, y[i]);
    }
    cr_assert_eq(get_scalar(e, adj_find(g, "dropout/step")), 2);
    for (int k = 0; k < 1000; k++) {
        kept += seen[0][0][k] != 0;
        cr_assert(seen[0][0][k] == 0 || fabs(seen[0][0][k] - 4.0 / 3) < 1e-6);
        same[0] += seen[0][0][k] == seen[1][0][k];
        same[1] += seen[0][0][k] == seen[0][1][k];
    }
    /* 0.75 kept; two independent masks agree in 0.625 of the places; 5 deviations are 0.077 */
    cr_assert(fabs(kept / 1000 - 0.75) < 0.07, "kept %g", kept);
    cr_assert(fabs(same[0] / 1000 - 0.625) < 0.077, "steps agree in %g", same[0]);
    cr_assert(fabs(same[1] / 1000 - 0.625) < 0.077, "layers agree in %g", same[1]);
    for (int i = 0; i < 4; i++)
        free(seen[i / 2][i % 2]);
}

/* A layer whose parameters are all frozen keeps its running statistics; one that trains its beta
 * does not. */
Test(layers, statistics_of_a_frozen_layer)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 2, 2, 3}});
    const adj_norm_layer training = {.training = 1};
    adj_node *h = adj_layer_batch_norm(x, "a/bn", &training);
    h = adj_layer_dropout(adj_layer_batch_norm(h, "bn", &training), "drop", 0.5, 1);
    adj_node *loss = adj_reduce_sum(adj_square(h), (adj_axes){.n = ADJ_ALL}), *params[4];
    int n = adj_trainable(loss, "a/bn/*,bn/gamma", 4, params);
    cr_assert_eq(n, 1);
    cr_assert_str_eq(adj_node_name(params[0]), "bn/beta");
    adj_updates *u = adj_training_updates(
        loss, &(adj_optimizer_opts){.momentum = 0.9, .trained = params, .n_trained = n});
    static const char *const names[] = {"bn/beta/momentum", "bn/beta", "bn/running",
                                        "dropout/step"};
    cr_assert_eq(adj_updates_count(u), 4);
    for (int i = 0; i < 4; i++)
        cr_expect_str_eq(adj_node_name(adj_updates_leaf_at(u, i)), names[i]);
    cr_expect(adj_is_training_state(adj_updates_leaf_at(u, 0)));
    cr_expect(!adj_is_training_state(params[0]));
    cr_expect(!adj_is_training_state(adj_updates_leaf_at(u, 2)));
    cr_expect(adj_is_training_state(adj_updates_leaf_at(u, 3)));
}

/* In a training graph of resnet8 whose first block is frozen, that block has no batch statistics.
 */
Test(layers, a_frozen_part_of_a_model)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_model_opts o = {.training = 1, .freeze = "conv1/*,bn1/*,block1/*"};
    adj_node *logits = adj_model_logits(g, adj_model_find("resnet8", NULL), &o);
    int stats = 0;
    cr_assert_not_null(logits);
    for (int i = 0; i < adj_graph_node_count(g); i++)
        stats += strcmp(adj_node_op(adj_graph_node_at(g, i)), "batch_norm_stats") == 0;
    cr_expect_eq(stats, 4); /* 4 of 7: two in each block */
    cr_expect_eq(adj_updates_count(adj_layer_updates(g)), 4);
}
