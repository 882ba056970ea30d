/* test_compare.c - adj_compare finds planted faults, blames the right node, and nothing else. */
#include <criterion/criterion.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "check/compare/compare.h"
#include "exec/report.h"
#include "tests/check/checked.h"
#include "tests/check/compare_rig.h"

TestSuite(compare, .init = plan_as_usual);

Test(compare, sound_kernels_pass)
{
    scoped(rig_free) rig r = rig_with(SOUND);
    cr_assert_eq(r.c->n_failed, 0);
    cr_assert_eq(r.c->n_whole_failed, 0);
    cr_assert_gt(r.c->n_row, 20);
    const compare_row *row = row_of(&r, r.relu);
    cr_assert_str_eq(row->backend, "crooked");
    cr_assert_str_eq(row->implementation, "crooked:relu");
    cr_assert_eq(row->isolated.max_abs, 0);
    cr_assert(isinf(row->isolated.sqnr) && row->repeats && row->us > 0 && row->bytes > 0);
    row = row_of(&r, adj_node_operand_at(adj_node_operand_at(r.relu, 0), 0));
    cr_assert_str_eq(adj_node_op(row->node), "conv2d");
    expect_text(row->origin, "18 u_f32"); /* 3*3*2 terms */
    cr_assert(row->isolated.worst > 0 && row->isolated.worst <= 1);
    expect_text(row->why, "crooked");
}

/* A mean over a window is a sum of its elements, also where windows overlap and there are as many
 * results as elements: 3 x 2 terms. */
Test(compare, terms_of_windows_that_overlap)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_pool window = {.ksize = {1, 3, 2, 1}, .stride = {1, 1, 1, 1}, .padding = ADJ_SAME};
    adj_node *y =
        adj_avg_pool(adj_input(g, "x", ADJ_F32, (adj_shape){4, {9, 14, 15, 16}}), &window);
    scoped(release_comparison) const adj_comparison *c =
        compared(y, "onednn", (adj_compare_opts){0});
    const compare_row *row = adj_comparison_row_at(c, 0);
    expect_text(row->origin, "6 u_f32 sum|ab|");
    cr_expect_eq(row->verdict, ADJ_VERDICT_PASS, "%s", row->reason);
}

Test(compare, planted_faults_are_found_and_blamed)
{
    static const fault faults[] = {SCALED, ONE_ELEMENT, UNWRITTEN, IN_A_PLAN};
    static const char *const names[] = {"scaled", "one element", "unwritten", "in a plan"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        scoped(rig_free) rig r = rig_with(faults[i]);
        const compare_row *row = row_of(&r, r.relu);
        expect_only_relu(&r, names[i]);
        cr_assert_eq(row->verdict, ADJ_VERDICT_FAIL);
        cr_assert_eq(row->blame, faults[i] == IN_A_PLAN ? ADJ_BLAME_PLAN : ADJ_BLAME_KERNEL);
        cr_assert_gt(row->in_plan.wrong, 0);
        if (faults[i] == ONE_ELEMENT) {
            cr_assert_eq(row->isolated.wrong, 1);
            cr_assert_eq(row->isolated.at, row->isolated.n - 2);
            cr_assert_eq(row->isolated.got, -1);
        }
        if (faults[i] == UNWRITTEN)
            cr_assert_eq(row->isolated.nan, 1);
    }
}

Test(compare, what_cannot_run_is_a_row)
{
    rig r = rig_with(OUTSIDE);
    const compare_row *row = row_of(&r, r.relu);
    expect_only_relu(&r, "outside");
    cr_assert(row->canary && row->verdict == ADJ_VERDICT_FAIL);
    expect_text(row->reason, "wrote behind");
    cr_assert_eq(adj_comparison_result_at(r.c, 1).verdict, ADJ_VERDICT_FAIL);
    cr_assert(adj_comparison_result_at(r.c, 1).canary && !adj_comparison_result_at(r.c, 0).canary);
    rig_free(&r);
    r = rig_with(FAILING_WITH_A_WORD);
    row = row_of(&r, r.relu);
    cr_assert(!row->canary && row->verdict == ADJ_VERDICT_ERROR, "%s", row->reason);
    expect_text(row->reason, "wrote no result");
    cr_assert_eq(adj_comparison_result_at(r.c, 1).verdict, ADJ_VERDICT_ERROR);
    cr_assert_eq(adj_comparison_result_at(r.c, 1).canary, 0);
    rig_free(&r);
    r = rig_with(FAILING);
    row = row_of(&r, r.relu);
    cr_assert_eq(row->verdict, ADJ_VERDICT_ERROR);
    expect_text(row->reason, "crooked");
    rig_free(&r);
}

/* Every configuration of the issue, on a graph with every kind of node that a model has. */
Test(compare, types_layouts_threads)
{
    static const char *const configs[] = {"naive:f64",   "naive:nchw",       "naive:bf16",
                                          "naive:f16",   "onednn",           "onednn:bf16:nchw",
                                          "onednn:nchw", "onednn:threads=1", "onednn:impl=gemm"};
    for (int exact = 0; exact < 2; exact++) {
        scoped(rig_free) rig r = rig_new();
        rig_compare(&r, 9, configs, (adj_compare_opts){.exec.threads = 2, .exact = exact});
        cr_assert_eq(r.c->n_failed, 0);
        cr_assert_eq(r.c->n_whole_failed, 0);
    }
}

/* Convolutions large enough for Winograd's algorithm, whose errors have bounds of their own. */
static adj_node *wide_network(adj_graph *g)
{
    adj_node *y = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 32}});
    const adj_conv_layer wide = {.filters = 32, .padding = ADJ_SAME};
    y = adj_relu(adj_layer_conv2d(y, "conv1", &wide));
    y = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(y, "conv2", &wide), "bn",
                                      &(adj_norm_layer){.training = 1}));
    y = adj_layer_dense(adj_max_pool(y, &(adj_pool){.ksize = {1, 2, 2, 1}}), "logits", 10, NULL);
    return adj_loss_softmax(y, adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}}), NULL);
}

/* Fused groups are inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
/* The executor's options: more roundings, no groups, other candidates. */
Test(compare, options_of_the_executor)
{
    static const char *const configs[] = {"naive:f64",           "onednn:unfused", "onednn:tune",
                                          "onednn:fast",         "naive:mixed",    "onednn:mixed",
                                          "onednn:mixed:unfused"};
    for (int exact = 0; exact < 2; exact++) {
        scoped(rig_free) rig r = {.g = adj_graph_new()};
        r.loss = wide_network(r.g);
        r.updates = adj_sgd(r.loss, 0);
        rig_compare(&r, 7, configs, (adj_compare_opts){.exec.threads = 1, .exact = exact});
        int grouped = 0, inexact = 0;
        for (int i = 0; i < r.c->n_row; i++) {
            const compare_row *row = adj_comparison_row_at(r.c, i);
            cr_assert_eq(row->verdict, ADJ_VERDICT_PASS, "%s: %s: %s", configs[row->config],
                         adj_compare_row_name(row), row->reason);
            cr_assert(row->group[0] == '\0' || (row->config != 1 && row->config != 6));
            grouped += row->group[0] != '\0';
            inexact += row->config == 5 && !row->exact;
        }
        cr_assert(grouped > 0 && inexact > 0);
        cr_assert_eq(r.c->n_whole_failed, 0);
        cr_assert_eq(adj_comparison_result_at(r.c, 1).differs, 0); /* as when every node is kept */
    }
}

Test(compare, lenet_on_integers_to_the_last_bit)
{
    static const char *const configs[] = {"naive:f64", "naive", "onednn", "onednn:bf16"};
    const adj_model_opts options = {.batch = 2, .training = 1, .size.h = 16, .size.w = 16};
    scoped(rig_free) rig r = {.g = adj_graph_new()};
    adj_node *logits = adj_model_logits(r.g, adj_model_find("lenet", NULL), &options);
    adj_node *labels = adj_input(r.g, "labels", ADJ_I32, (adj_shape){1, {2}});
    r.loss = adj_loss_softmax(logits, labels, NULL);
    r.updates = adj_sgd(r.loss, 0);
    rig_compare(&r, 4, configs, (adj_compare_opts){.exact = 1});
    cr_assert_eq(r.c->n_failed, 0);
    int convolutions = 0;
    for (int i = 0; i < r.c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(r.c, i);
        if (row->group[0] != '\0' || strncmp(adj_node_op(row->node), "conv2d", 6) != 0)
            continue;
        convolutions++;
        cr_assert(row->exact, "%s", adj_node_op(row->node));
        cr_assert_eq(row->isolated.max_abs, 0);
    }
    cr_assert_eq(convolutions, 5 * 3);
}

/* A limit that this oneDNN does not know would be ignored by it. */
Test(compare, isas_that_onednn_does_not_know)
{
    adj_compare_config c;
    adj_error error = {0};
    char version[64] = "";
    cr_assert_eq(adj_backend_describe("onednn", version, sizeof version), ADJ_OK);
    int old = version[0] < '3';
    cr_assert_eq(adj_compare_config_parse("onednn:isa=avx512_core_amx", NULL, &c, NULL), ADJ_OK);
    cr_assert_eq(adj_compare_config_parse("onednn:isa=avx2_vnni_2", NULL, &c, &error),
                 old ? ADJ_EARG : ADJ_OK);
    cr_assert(
        !old || strstr(error.message, "knows no isa \"avx2_vnni_2\" (it knows sse41, avx, avx2, "),
        "%s", error.message);
    if (old)
        cr_assert_eq(adj_compare_config_parse("onednn:isa=avx10_1_512", NULL, &c, NULL), ADJ_EARG);
}

Test(compare, configurations_are_read)
{
    adj_compare_config c;
    adj_error error;
    cr_assert_eq(
        adj_compare_config_parse("onednn:bf16:nchw:isa=avx2:impl=gemm:threads=3", NULL, &c, NULL),
        ADJ_OK);
    cr_assert_str_eq(c.backend, "onednn");
    cr_assert(c.has_dtype && c.dtype == ADJ_BF16 && c.has_format && c.format == ADJ_NCHW);
    cr_assert(strcmp(c.isa, "avx2") == 0 && strcmp(c.impl, "gemm") == 0 && c.threads == 3);
    cr_assert_eq(adj_compare_config_parse("onednn,max_pool=naive,relu=naive:nchw", NULL, &c, NULL),
                 ADJ_OK);
    cr_assert_str_eq(c.backend, "onednn,max_pool=naive,relu=naive");
    cr_assert(c.has_format && !c.has_dtype);
    cr_assert(!c.fast && !c.unfused && !c.tune);
    cr_assert_eq(c.precision, ADJ_PRECISION_AS_BUILT);
    cr_assert_eq(adj_compare_config_parse("onednn:fast:unfused:mixed:tune", NULL, &c, NULL),
                 ADJ_OK);
    cr_assert(c.fast && c.unfused && c.tune && c.precision == ADJ_PRECISION_BF16);
    static const char *const wrong[][2] = {
        {"onednm", "(got \"onednm\", expected one of onednn, direct, naive)"},
        {"onednn,max_pol=naive", "unknown op \"max_pol\" (did you mean max_pool?)"},
        {"onednn,max_pool=naiv",
         "unknown backend (got \"naiv\", expected one of onednn, direct, naive)"},
        {"onednm,max_pool=naive:bf16", "(got \"onednm\", expected one of onednn, direct, naive)"},
        {"onednn,", "unknown backend (got \"\""},
        {"naive:f65", "did you mean f64?"},
        {"onednn:isa=avx3", "did you mean avx"},
        {"onednn:isa=avx99_1_512", "unknown isa \"avx99_1_512\" ("},
        {"onednn:isa=neon", "unknown isa \"neon\" (it knows sse41, avx, avx2, "},
        {"naive:fats", "did you mean fast?"},
        {"naive:perm", "unknown word \"perm\" (expected a type, nhwc,"},
        {"onednn,perm=naive", "unknown op \"perm\""},
        {"naive:thread=2", "did you mean threads=?"},
        {"naive:threads=0", "expected 1 to 1024"},
        {"onednn:unfuse", "did you mean unfused?"},
        {"onednn:fast=1", "did you mean fast?"},
        {"", "its length"},
        {"naive:", "unknown word"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(adj_compare_config_parse(wrong[i][0], NULL, &c, &error), ADJ_EARG);
        expect_text(error.message, wrong[i][1]);
    }
}

Test(compare, wrong_options)
{
    static const char *const one[] = {"naive"}, *const isa[] = {"naive", "onednn:isa=avx2"},
                             *const first[] = {"onednn:isa=avx2", "naive"},
                             *const bad[] = {"naive", "cuda"};
    const adj_compare_opts wrong[] = {
        {.n_config = 2, .config = first},
        {.n_config = 1, .config = one},
        {.n_config = 2, .config = isa},
        {.n_config = 2, .config = bad},
        {.n_config = -1},
        {.runs = -1},
        {.exec.threads = 5000},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        scoped(rig_free) rig r = rig_new();
        cr_assert_eq(rig_compare_with(&r, wrong[i], (adj_trial_opts){0}), ADJ_EARG, "%zu", i);
        cr_assert_eq(strncmp(r.c->message, "adj_compare: ", 13), 0, "%s", r.c->message);
    }
    scoped(rig_free) rig r = rig_new();
    cr_assert_eq(rig_compare_with(&r, (adj_compare_opts){0}, (adj_trial_opts){.guard = 1}),
                 ADJ_EARG);
    adj_comparison_free(r.c);
    cr_assert_eq(adj_compare(r.g, &(adj_compare_opts){0}, &r.c), ADJ_EARG);
    cr_assert_null(adj_comparison_row_at(r.c, 0));
    adj_comparison_free(r.c);
    cr_assert_eq(adj_compare(NULL, NULL, &r.c), ADJ_EARG);
}

/* A value that would not be read is refused. */
Test(compare, values_of_no_leaf)
{
    static const float x[2 * 5 * 4 * 2];
    scoped(rig_free) rig r = rig_new(), other = rig_new();
    const struct {
        adj_leaf_value value;
        const char *says;
    } cases[] = {
        {{NULL, x}, "value[0] has no leaf"},
        {{adj_find(other.g, "x"), x}, "value[0] is of another graph"},
        {{r.relu, x}, "value[0] is of relu \"relu1\" (expected an input, param or state)"},
        {{adj_const(r.g, ADJ_F32, (adj_shape){0}, &(double){1}), x}, "value[0] is of const"},
        {{adj_find(r.g, "x"), NULL}, "value[0] has no data"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const adj_compare_opts o = {.n_value = 1, .value = &cases[i].value};
        cr_expect_eq(rig_compare_with(&r, o, (adj_trial_opts){0}), ADJ_EARG, "%zu", i);
        expect_text(r.c->message, cases[i].says);
        adj_comparison_free(r.c);
    }
    cr_expect_eq(rig_compare_with(&r, (adj_compare_opts){.n_value = 1}, (adj_trial_opts){0}),
                 ADJ_EARG);
    expect_text(r.c->message, "adj_compare: value is wrong (got n_value 1)");
}

/* ---- elsewhere: the same process here, with accidents ---- */

typedef struct {
    int calls, crash_at, cut_at; /* the number of the call; 0: never */
} accidents;

static adj_status elsewhere(void *user, const char *isa, const void *request, size_t bytes,
                            void **response, size_t *response_bytes, adj_error *error)
{
    accidents *a = user;
    (void)isa;
    if (++a->calls == a->crash_at) {
        adj_error_set(error, ADJ_EBACKEND, "SIGSEGV");
        return ADJ_EBACKEND;
    }
    adj_status status = adj_trial_run(request, bytes, NULL, NULL, response, response_bytes);
    if (a->calls == a->cut_at)
        *response_bytes /= 2;
    return status;
}

Test(compare, elsewhere)
{
    for (int at = 0; at < 12; at++) {
        scoped(rig_free) rig r = rig_new();
        accidents a = {.crash_at = at % 2 ? at : 0, .cut_at = at % 2 ? 0 : at};
        rig_compare_elsewhere(&r, "naive:bf16:nchw",
                              (adj_trial_opts){.elsewhere = elsewhere, .user = &a});
        compare_result whole = adj_comparison_result_at(r.c, 1);
        cr_assert_eq(whole.verdict, at == 1 || at == 2 ? ADJ_VERDICT_CRASH : ADJ_VERDICT_PASS);
        cr_assert_eq(r.c->n_whole_failed, at == 1 || at == 2);
        cr_assert_eq(r.c->n_failed, at > 2, "%d: %d", at, r.c->n_failed);
        for (int i = 0; at > 2 && i < r.c->n_row; i++) {
            const compare_row *row = adj_comparison_row_at(r.c, i);
            if (row->verdict == ADJ_VERDICT_PASS)
                continue;
            cr_assert_eq(row->verdict, ADJ_VERDICT_CRASH);
            cr_assert_leq(i, at - 3); /* a node runs several times */
            cr_assert_str_eq(row->reason, at % 2 ? "SIGSEGV" : "the response is cut off");
        }
    }
}

typedef struct {
    int n, n_planning, n_relu;
} told;

static void hear(void *user, const char *stage)
{
    told *t = user;
    cr_expect(t->n++ > 0 || strcmp(stage, "planning") == 0, "%s", stage);
    t->n_planning += strcmp(stage, "planning") == 0;
    t->n_relu += strncmp(stage, "relu by naive naive:f32 (estimated at ", 38) == 0;
}

static adj_status told_elsewhere(void *user, const char *isa, const void *request, size_t bytes,
                                 void **response, size_t *response_bytes, adj_error *error)
{
    (void)isa, (void)error;
    return adj_trial_run(request, bytes, hear, user, response, response_bytes);
}

/* A trial announces planning, and then each kernel before it runs. */
Test(compare, a_trial_tells_what_comes)
{
    scoped(rig_free) rig r = rig_new();
    told t = {0};
    rig_compare_elsewhere(&r, "naive", (adj_trial_opts){.elsewhere = told_elsewhere, .user = &t});
    cr_expect_eq(r.c->n_failed, 0);
    cr_expect_geq(t.n_planning, 2);
    cr_expect_geq(t.n_relu, 3); /* in the whole graph and alone, each at least twice */
}

/* A response whose texts do not end. */
static adj_status endless(void *user, const char *isa, const void *request, size_t bytes,
                          void **response, size_t *response_bytes, adj_error *error)
{
    (void)user, (void)isa, (void)error;
    adj_status status = adj_trial_run(request, bytes, NULL, NULL, response, response_bytes);
    outcome *o = (outcome *)((char *)*response + sizeof(uint64_t));
    fetch_info *info = (fetch_info *)((char *)(o + 1) + sizeof(uint64_t));
    for (int i = 0; status == ADJ_OK && i < o->n; i++) {
        memset(info[i].backend, 'b', sizeof info[i].backend);
        memset(info[i].implementation, 'i', sizeof info[i].implementation);
        memset(info[i].why, 'w', sizeof info[i].why);
    }
    return status;
}

Test(compare, texts_from_elsewhere_end)
{
    scoped(rig_free) rig r = rig_new();
    rig_compare_elsewhere(&r, "naive", (adj_trial_opts){.elsewhere = endless});
    cr_assert_gt(r.c->n_row, 0);
    for (int i = 0; i < r.c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(r.c, i);
        cr_expect_eq(strnlen(row->backend, sizeof row->backend), sizeof row->backend - 1);
        cr_expect_eq(strnlen(row->implementation, sizeof row->implementation),
                     sizeof row->implementation - 1);
        cr_expect_eq(strlen(row->why), ADJ_WHY - 1);
    }
}

/* A request whose texts do not end is one of a backend that does not exist. */
static adj_status endless_request(void *user, const char *isa, const void *request, size_t bytes,
                                  void **response, size_t *response_bytes, adj_error *error)
{
    (void)user, (void)isa, (void)error;
    scoped(release) char *copy = malloc(bytes);
    memcpy(copy, request, bytes);
    memset(copy + sizeof(uint64_t) + offsetof(adj_compare_config, backend), 'b',
           offsetof(adj_compare_config, threads) - offsetof(adj_compare_config, backend));
    adj_status status = adj_trial_run(copy, bytes, NULL, NULL, response, response_bytes);
    return status;
}

Test(compare, texts_of_a_request_end)
{
    scoped(rig_free) rig r = rig_new();
    rig_compare_elsewhere(&r, "naive", (adj_trial_opts){.elsewhere = endless_request});
    compare_result whole = adj_comparison_result_at(r.c, 1);
    cr_expect_eq(whole.verdict, ADJ_VERDICT_ERROR);
    expect_text(whole.reason, "unknown backend (got \"bbb");
}

Test(compare, requests_that_are_none)
{
    unsigned char noise[512];
    void *response;
    size_t bytes;
    adj_draw(ADJ_F64, noise, 64, (adj_init){.kind = ADJ_INIT_NORMAL, .b = 1}, 1, 1);
    for (size_t n = 0; n <= sizeof noise; n += 8)
        cr_assert_eq(adj_trial_run(noise, n, NULL, NULL, &response, &bytes), ADJ_EARG);
    cr_assert_eq(adj_trial_run(NULL, 0, NULL, NULL, &response, &bytes), ADJ_EARG);
}
