/* test_normalize.c - batch norm and dropout layers: values like PyTorch's, states that advance. */
#include <string.h>

#include "nn_test.h"
#include "ops/nn/names.h"

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
        bn_net training = bn_new(1, (adj_format)format), evaluation = bn_new(0, ADJ_NHWC);
        adj_node *running = adj_find(training.g, "bn/running");
        const double initial[] = {0, 0, 1, 1};

        cr_assert_eq(adj_updates_count(adj_layer_updates(training.g)), 1);
        cr_assert_eq(adj_updates_count(adj_layer_updates(evaluation.g)), 0);
        cr_assert_eq(adj_trainable_elems(training.y), 4);
        double *at_first = fixture_get(training.e, running);
        expect_close(at_first, initial, 4, 0, 0, "initial running statistics");
        free(at_first);
        set_values(training.e, adj_find(training.g, "bn/gamma"), bn_gamma);
        set_values(training.e, adj_find(training.g, "bn/beta"), bn_beta);
        for (int step = 0; step < 2; step++) {
            bn_step(&training, step);
            scoped(release) double *kept = fixture_get(training.e, running);
            expect_close(kept, bn_running[step], 4, 1e-12, 1e-13, "running statistics");
        }
        cr_assert_eq(adj_copy_params(evaluation.e, training.e), ADJ_OK);
        bn_step(&evaluation, 2);
        bn_free(&training);
        bn_free(&evaluation);
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
    cr_expect_eq(stats, 4); /* of 7: two in each block */
    cr_expect_eq(adj_updates_count(adj_layer_updates(g)), 4);
}
