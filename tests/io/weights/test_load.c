/* test_load.c - loading in part, what is reported of it, and training executors. */
#include "io/weights/net.h"
#include "tests/plan.h"

enum { REPORTS = 64 };

typedef struct {
    int n;
    struct {
        adj_weight_fate fate;
        char name[32], tensor[32], why[200];
    } of[REPORTS];
} reports;

static void keep(void *user, const adj_weight_report *r)
{
    reports *all = user;
    cr_assert_lt(all->n, REPORTS);
    all->of[all->n].fate = r->fate;
    snprintf(all->of[all->n].name, 32, "%s", r->name != NULL ? r->name : "");
    snprintf(all->of[all->n].tensor, 32, "%s", r->tensor);
    snprintf(all->of[all->n].why, 200, "%s", r->why);
    all->n++;
}

/* The report of that parameter, or of that tensor if it is not used. */
static int find(const reports *all, const char *name)
{
    for (int i = 0; i < all->n; i++)
        if (strcmp(all->of[i].name, name) == 0 ||
            (all->of[i].fate == ADJ_WEIGHT_UNUSED && strcmp(all->of[i].tensor, name) == 0))
            return i;
    cr_assert_fail("no report of %s", name);
    return -1;
}

/* PyTorch's file with a head of four classes, without dw.weight. */
Test(load, in_part)
{
    static torch_weights w;
    static reports all;
    scoped(folder_remove) folder f = folder_new();
    file_name path = in_folder(&f, "w.safetensors");
    adj_error error = {0};
    fill_torch(&w);
    w.tensor[9].shape = (adj_shape){2, {4, 5}};
    w.tensor[10].shape = (adj_shape){1, {4}};
    w.tensor[6].name = "other.weight";
    cr_assert_eq(adj_tensors_write(path.s, DICT + 1, w.tensor, 0, NULL, &error), ADJ_OK);
    small_net n = net_of(ADJ_NHWC, ADJ_F32);
    float before[15], after[15], conv[72];
    const adj_node *head = adj_find(n.g, "logits/w");
    cr_assert_eq(adj_get(n.e, head, before, sizeof before), ADJ_OK);
    adj_weights_opts o = {.map = "pytorch", .report = keep, .user = &all};
    cr_expect_eq(adj_weights_load(n.e, path.s, &o, &error), ADJ_EIO);
    cr_expect_not_null(strstr(error.message, "no tensor dw.weight (for dw/w)"), "%s",
                       error.message);
    cr_expect_eq(all.n, 0);

    o.partial = 1;
    o.fresh = "fc1/b,nothing/*";
    cr_assert_eq(adj_weights_load(n.e, path.s, &o, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_get(n.e, head, after, sizeof after), ADJ_OK);
    cr_expect_arr_eq(before, after, sizeof before);
    cr_assert_eq(adj_get(n.e, adj_find(n.g, "conv1/w"), conv, sizeof conv), ADJ_OK);
    cr_expect_eq(conv[1], w.value[0][18]); /* [0][0][0][1] is [1][0][0][0] of theirs */
    static const struct {
        const char *name, *tensor, *why;
        adj_weight_fate fate;
    } want[] = {
        {"conv1/w", "conv1.weight", "", ADJ_WEIGHT_LOADED},
        {"bn1/running", "bn1.running_mean", "", ADJ_WEIGHT_LOADED},
        {"dw/w", "dw.weight", "the file has no tensor dw.weight", ADJ_WEIGHT_MISSING},
        {"fc1/b", "fc1/b", "", ADJ_WEIGHT_FRESH},
        {"logits/w", "fc2.weight", "got f32 [4, 5], [5, 4] mapped, expected f32 [5, 3]",
         ADJ_WEIGHT_UNFIT},
        {"logits/b", "fc2.bias", "got f32 [4], expected f32 [3]", ADJ_WEIGHT_UNFIT},
        {"other.weight", "other.weight", "", ADJ_WEIGHT_UNUSED},
        {"bn1.num_batches_tracked", "bn1.num_batches_tracked", "", ADJ_WEIGHT_UNUSED},
        {"fc1.bias", "fc1.bias", "", ADJ_WEIGHT_UNUSED},
    };
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        int k = find(&all, want[i].name);
        cr_expect_eq(all.of[k].fate, want[i].fate, "%s", want[i].name);
        cr_expect_str_eq(all.of[k].tensor, want[i].tensor);
        cr_expect_not_null(strstr(all.of[k].why, want[i].why), "%s", all.of[k].why);
    }
    cr_expect_eq(all.n, 10 + 3);

    o = (adj_weights_opts){.partial = 1}; /* their names, no map */
    cr_expect_eq(adj_weights_load(n.e, path.s, &o, &error), ADJ_EIO);
    cr_expect_not_null(
        strstr(error.message, "expected adjoint's names; for the file's, use --map pytorch"), "%s",
        error.message);
    net_free(&n);
}

/* y = x w + b trained by momentum. */
static adj_exec *trainer(adj_graph *g, uint64_t seed)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {1, 3}});
    adj_node *lr = adj_input(g, "learning_rate", ADJ_F32, (adj_shape){0});
    adj_node *loss =
        adj_reduce_sum(adj_square(adj_layer_dense(x, "fc", 2, NULL)), (adj_axes){.n = ADJ_ALL});
    adj_updates *u = adj_training_updates(loss, &(adj_optimizer_opts){.momentum = 0.9});
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &loss, .updates = u, .backend = "naive", .seed = seed};
    const float ones[3] = {1, 1, 1}, rate = 0.01F;
    adj_exec *e = plan_of(g, &o);
    adj_set(e, x, ones, sizeof ones);
    adj_set(e, lr, &rate, sizeof rate);
    cr_assert_eq(adj_run(e), ADJ_OK);
    return e;
}

Test(load, a_training_executor_from_weights_alone)
{
    scoped(folder_remove) folder f = folder_new();
    file_name path = in_folder(&f, "w.safetensors"), all = in_folder(&f, "all.safetensors"),
              some = in_folder(&f, "some.safetensors");
    const float w[6] = {1, 2, 3, 4, 5, 6}, b[2] = {7, 8};
    const adj_tensor t[3] = {{"fc/w", ADJ_ELEM_F32, {2, {3, 2}}, w},
                             {"fc/b", ADJ_ELEM_F32, {1, {2}}, b},
                             {"fc/w/momentum", ADJ_ELEM_F32, {2, {3, 2}}, w}};
    adj_error error = {0};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = trainer(g, 1);
    float got[6], zero[6] = {0};
    cr_assert_eq(adj_weights_save(e, all.s, 0, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_tensors_write(path.s, 2, t, 0, NULL, &error), ADJ_OK);
    cr_assert_eq(adj_tensors_write(some.s, 3, t, 0, NULL, &error), ADJ_OK);

    cr_assert_eq(adj_get(e, adj_find(g, "fc/w/momentum"), got, sizeof got), ADJ_OK);
    cr_assert_neq(memcmp(got, zero, sizeof got), 0);
    cr_assert_eq(adj_weights_load(e, path.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_get(e, adj_find(g, "fc/w"), got, sizeof got), ADJ_OK);
    cr_expect_arr_eq(got, w, sizeof w);
    cr_assert_eq(adj_get(e, adj_find(g, "fc/w/momentum"), got, sizeof got), ADJ_OK);
    cr_expect_arr_eq(got, zero, sizeof zero);

    /* one state of two is a damaged checkpoint; and a checkpoint has to have them */
    cr_expect_eq(adj_weights_load(e, some.s, NULL, &error), ADJ_EIO);
    cr_expect_not_null(strstr(error.message, "no tensor fc/b/momentum"), "%s", error.message);
    const adj_weights_opts exact = {.exact = 1};
    cr_expect_eq(adj_weights_load(e, path.s, &exact, &error), ADJ_EIO);
    cr_expect_eq(adj_weights_load(e, all.s, &exact, &error), ADJ_OK, "%s", error.message);
}

Test(load, elements_that_cannot_be_had)
{
    scoped(folder_remove) folder f = folder_new();
    file_name path = in_folder(&f, "w.safetensors");
    const double w[6] = {1, 2, 3, 4, 5, 0.1};
    const int64_t b[2] = {7, 8};
    adj_tensor t[2] = {{"fc/w", ADJ_ELEM_F64, {2, {3, 2}}, w}, {"fc/b", ADJ_ELEM_F64, {1, {2}}, w}};
    adj_error error = {0};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = trainer(g, 1);
    float got[6];
    cr_assert_eq(adj_tensors_write(path.s, 2, t, 0, NULL, &error), ADJ_OK);
    cr_assert_eq(adj_weights_load(e, path.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_get(e, adj_find(g, "fc/w"), got, sizeof got), ADJ_OK);
    cr_expect_eq(got[5], 0.1F);
    const adj_weights_opts exact = {.exact = 1};
    cr_expect_eq(adj_weights_load(e, path.s, &exact, &error), ADJ_ESHAPE);
    cr_expect_not_null(strstr(error.message, "got f64 [3, 2], expected f32 [3, 2]"), "%s",
                       error.message);
    t[1] = (adj_tensor){"fc/b", ADJ_ELEM_I64, {1, {2}}, b};
    cr_assert_eq(adj_tensors_write(path.s, 2, t, 0, NULL, &error), ADJ_OK);
    cr_expect_eq(adj_weights_load(e, path.s, NULL, &error), ADJ_ESHAPE);
    cr_expect_not_null(strstr(error.message, "got i64 [2], expected f32 [2]"), "%s", error.message);
}
