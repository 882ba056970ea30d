/* test_prefix.c - weights whose names stand in another program's wrappers: prefixes, Keras's own
 * spelling and numbering and its files' nesting. The logits are PyTorch's, and Keras's layouts are
 * ours. */
#include "io/tensors/formats.h"
#include "io/weights/net.h"
#include "io/weights/weights.h"
#include "tests/plan.h"

TestSuite(prefix, .init = enter_weights, .fini = leave_folder);

enum { OTHERS = 300, ROOM = OTHERS + DICT };

/* Tensors to be written, none when a test begins. */
static struct {
    adj_tensor tensor[ROOM];
    char name[ROOM][96];
    int n;
} all;

static const float zeros[MOST];

static void add(const char *prefix, const adj_tensor *t)
{
    char *name = all.name[all.n];
    snprintf(name, sizeof all.name[0], "%s%s", prefix, t->name);
    all.tensor[all.n] = *t;
    all.tensor[all.n++].name = name;
}

static void add_torch(const char *prefix)
{
    for (int k = 0; k < DICT; k++)
        add(prefix, &torch.tensor[k]);
}

/* Writes the file, and forgets what was added. */
static void put_all(void)
{
    write_weights(all.n, all.tensor);
    all.n = 0;
}

/* torch.compile, DataParallel, both, a model that owns this one, and a head beside it. */
Test(prefix, pytorch)
{
    static const char *const prefixes[][2] = {{"_orig_mod.", "_orig_mod."},
                                              {"module.", "module."},
                                              {"module._orig_mod.", "module._orig_mod."},
                                              {"model.", "model."},
                                              {"net.encoder.", "net.encoder."},
                                              {"backbone.", ""},
                                              {"", ""}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        for (int k = 0; k < DICT; k++)
            add(prefixes[i][strncmp(torch.tensor[k].name, "fc2.", 4) == 0], &torch.tensor[k]);
        put_all();
        expect_torch_weights("pytorch", ADJ_NHWC);
    }
}

/* If names occur twice, those without a prefix are used; two prefixes are refused. */
Test(prefix, two_sets)
{
    for (int has_prefix = 0; has_prefix < 2; has_prefix++) {
        for (int k = 0; k < DICT; k++) {
            adj_tensor other = torch.tensor[k];
            other.data = zeros;
            add("teacher.", &other);
            add(has_prefix ? "student." : "", &torch.tensor[k]);
        }
        put_all();
        if (!has_prefix)
            expect_torch_weights("pytorch", ADJ_NHWC);
    }
    adj_error error = {0};
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    cr_expect_eq(load_weights(&n, "pytorch", &error), ADJ_EARG, "%s", error.message);
    expect_text(error.message, "two sets of weights");
    cr_expect(strstr(error.message, "student.*") && strstr(error.message, "teacher.*"));
}

/* A prefix is found behind any number of others, each of one name. */
Test(prefix, behind_many_others)
{
    adj_tensor other = torch.tensor[0];
    other.data = zeros;
    for (int i = 0; i < OTHERS; i++) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "block%d.", i);
        add(prefix, &other);
    }
    add_torch("module.");
    put_all();
    expect_torch_weights("pytorch", ADJ_NHWC);
}

/* A dictionary in an .npz, and PyTorch's names without a map. */
Test(prefix, npz_and_a_missing_map)
{
    path = in_folder(&here, "w.npz");
    adj_error error = {0};
    add_torch("module.");
    cr_assert_eq(adj_tensors_write_npz(path.s, all.n, all.tensor, &error), ADJ_OK);
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    cr_expect_eq(load_weights(&n, NULL, &error), ADJ_EIO);
    expect_text(error.message, "w.npz: weights: the file has no tensor conv1/w (expected adjoint's "
                               "names; for the file's, use --map pytorch");
    expect_torch_weights("pytorch", ADJ_NHWC);
}

/* ---- Keras ---- */

enum { PARTS = 11 };
static const char *const ours[PARTS] = {"conv1/w",     "conv1/b",     "bn1/gamma", "bn1/beta",
                                        "bn1/running", "bn1/running", "dw/w",      "fc1/w",
                                        "fc1/b",       "logits/w",    "logits/b"};

/* Three spellings of v.path, and names as Keras 3.15 writes them: h5py's of save_weights, of a
 * model that was given names for some layers, of the older .h5; v.path of a second model in a
 * process. */
static const char *const theirs[][PARTS] = {
    {"conv1/kernel", "conv1/bias", "bn1/gamma", "bn1/beta", "bn1/moving_mean",
     "bn1/moving_variance", "dw/kernel", "fc1/kernel", "fc1/bias", "dense/kernel", "dense/bias"},
    {"conv1/kernel:0", "conv1/bias:0", "bn1/gamma:0", "bn1/beta:0", "bn1/moving_mean:0",
     "bn1/moving_variance:0", "dw/kernel:0", "fc1/kernel:0", "fc1/bias:0", "dense/kernel:0",
     "dense/bias:0"},
    {"conv1.kernel", "conv1.bias", "bn1.gamma", "bn1.beta", "bn1.moving_mean",
     "bn1.moving_variance", "dw.kernel", "fc1.kernel", "fc1.bias", "dense.kernel", "dense.bias"},
    {"layers/conv2d/vars/0", "layers/conv2d/vars/1", "layers/batch_normalization/vars/0",
     "layers/batch_normalization/vars/1", "layers/batch_normalization/vars/2",
     "layers/batch_normalization/vars/3", "layers/depthwise_conv2d/vars/0", "layers/dense/vars/0",
     "layers/dense/vars/1", "layers/dense_1/vars/0", "layers/dense_1/vars/1"},
    {"conv1/vars/0", "conv1/vars/1", "bn1/vars/0", "bn1/vars/1", "bn1/vars/2", "bn1/vars/3",
     "dw/vars/0", "fc1/vars/0", "fc1/vars/1", "fc/vars/0", "fc/vars/1"},
    {"model_weights/conv2d/sequential/conv2d/kernel", "model_weights/conv2d/sequential/conv2d/bias",
     "model_weights/batch_normalization/sequential/batch_normalization/gamma",
     "model_weights/batch_normalization/sequential/batch_normalization/beta",
     "model_weights/batch_normalization/sequential/batch_normalization/moving_mean",
     "model_weights/batch_normalization/sequential/batch_normalization/moving_variance",
     "model_weights/depthwise_conv2d/sequential/depthwise_conv2d/kernel",
     "model_weights/dense/sequential/dense/kernel", "model_weights/dense/sequential/dense/bias",
     "model_weights/dense_1/sequential/dense_1/kernel",
     "model_weights/dense_1/sequential/dense_1/bias"},
    {"sequential_1/conv2d_7/kernel", "sequential_1/conv2d_7/bias",
     "sequential_1/batch_normalization_2/gamma", "sequential_1/batch_normalization_2/beta",
     "sequential_1/batch_normalization_2/moving_mean",
     "sequential_1/batch_normalization_2/moving_variance", "sequential_1/depthwise_conv2d/kernel",
     "sequential_1/dense_9/kernel", "sequential_1/dense_9/bias", "sequential_1/dense_10/kernel",
     "sequential_1/dense_10/bias"},
    {"m/conv2d/kernel:0", "m/conv2d/bias:0", "m/bn1/gamma:0", "m/bn1/beta:0", "m/bn1/moving_mean:0",
     "m/bn1/moving_variance:0", "m/dw/depthwise_kernel:0", "m/dense/kernel:0", "m/dense/bias:0",
     "m/predictions/kernel:0", "m/predictions/bias:0"},
};

/* The net's parameters under these names; running statistics are two tensors. */
static void put_keras(const small_net *from, const char *const names[PARTS], int n)
{
    adj_tensor t[PARTS];
    for (int i = 0; i < n; i++) {
        const adj_node *p = adj_find(from->g, ours[i]);
        t[i] = adj_tensor_of(names[i], adj_node_type(p), adj_data(from->e, p));
        if (i == 4 || i == 5)
            t[i] = (adj_tensor){
                names[i], ADJ_ELEM_F32, {1, {4}}, (const float *)t[i].data + 4 * (i - 4)};
    }
    write_weights(n, t);
}

Test(prefix, keras)
{
    scoped(net_free) small_net from = net_of(ADJ_NHWC, ADJ_F32);
    set_values(from.e, adj_find(from.g, "bn1/running"),
               (double[]){0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8});
    scoped(release) double *want = run_net(&from);
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        adj_error error = {0};
        put_keras(&from, theirs[i], PARTS);
        scoped(net_free) small_net to = net_of(ADJ_NHWC, ADJ_F32);
        for (int k = 0; k < PARTS; k++) {
            const adj_node *p = adj_find(to.g, ours[k]);
            cr_assert_eq(adj_set(to.e, p, zeros, adj_type_bytes(adj_node_type(p))), ADJ_OK);
        }
        cr_expect_eq(load_weights(&to, "keras", &error), ADJ_OK, "case %zu: %s", i, error.message);
        scoped(release) double *got = run_net(&to);
        expect_close(got, want, BATCH * CLASSES, 0, 0, theirs[i][0]);
    }
    /* one layer of two is ambiguous */
    adj_error error = {0};
    put_keras(&from, theirs[3], PARTS - 2);
    scoped(net_free) small_net to = net_of(ADJ_NHWC, ADJ_F32);
    cr_expect_eq(load_weights(&to, "keras", &error), ADJ_EIO);
    expect_text(error.message, "no tensor ");
}
