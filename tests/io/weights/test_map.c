/* test_map.c - weights under other programs' names and in their layouts: a net of PyTorch's
 * computes what PyTorch computes. */
#include "io/tensors/formats.h"
#include "io/weights/net.h"
#include "io/weights/weights.h"
#include "tests/plan.h"

TestSuite(map, .init = enter_weights, .fini = leave_folder);

static void put_torch(void) { write_weights(DICT + 1, torch.tensor); }

Test(map, pytorch_computes_the_same)
{
    put_torch();
    expect_torch_weights("pytorch", ADJ_NHWC);
    expect_torch_weights("pytorch", ADJ_NCHW);
}

/* bf16, which is the upper half of a float. */
Test(map, halves_are_converted)
{
    static uint16_t half[DICT][MOST];
    adj_error error = {0};
    for (int i = 0; i < DICT; i++) {
        for (int64_t j = 0; j < adj_shape_elems(state_dict[i].shape); j++) {
            uint32_t bits;
            memcpy(&bits, &torch.value[i][j], sizeof bits);
            half[i][j] = (uint16_t)(bits >> 16);
            bits &= 0xffff0000;
            memcpy(&torch.value[i][j], &bits, sizeof bits);
        }
        torch.tensor[i].elem = ADJ_ELEM_BF16;
        torch.tensor[i].data = half[i];
    }
    write_weights(DICT, torch.tensor);
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    cr_assert_eq(load_weights(&n, "pytorch", &error), ADJ_OK, "%s", error.message);
    scoped(release) double *bias = fixture_get(n.e, adj_find(n.g, "fc1/b"));
    for (int i = 0; i < 5; i++)
        cr_expect_eq(bias[i], (double)torch.value[8][i]);
}

/* The built-in map, written by hand. */
static const char by_hand[] =
    "# conv -> bn -> depthwise -> fc1 -> logits\n"
    "\n"
    "conv1/w = conv1.weight, permute 2 3 1 0\r\n"
    "conv1/b=conv1.bias  # a comment\n"
    "bn1/gamma = bn1.weight\n"
    "bn1/beta = bn1.bias\n"
    "bn1/running = bn1.running_mean + bn1.running_var\n"
    "dw/w = dw.weight, reshape 4 2 3 3, permute 2 3 0 1\n"
    "fc1/w = fc1.weight, reshape -1 8 3 2, permute 2 3 1 0, reshape 48 -1\n"
    "fc1/b = fc1.bias\n"
    "logits/w = fc2.weight , permute 1 0\n"
    "logits/b = fc2.bias";

Test(map, a_file)
{
    file_name map = in_folder(&here, "net.map");
    adj_error error = {0};
    put_torch();
    put_file(map.s, by_hand, strlen(by_hand));
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    cr_expect_eq(load_weights(&n, NULL, &error), ADJ_EIO);
    expect_text(error.message, "no tensor conv1/w");
    expect_torch_weights(map.s, ADJ_NHWC);
}

static const struct {
    const char *text, *words;
} bad_files[] = {
    {"", "line 1: the file has no line"},
    {"# nothing\n\n", "the file has no line"},
    {"a\n", "line 1: expected = after a"},
    {"\n= b", "line 2: our name is missing"},
    {"a = ", "line 1: their name is missing"},
    {"a = ,", "line 1: their name is missing"},
    {"a = b +", "line 1: their name is missing"},
    {"a = b + c + d", "line 1: more than 2 tensors"},
    {"a = b c", "line 1: expected a comma (got \"c\")"},
    {"a = b, turn 1 0", "line 1: expected permute or reshape (got \"turn\")"},
    {"a = b,", "line 1: expected permute or reshape (got \"\")"},
    {"a = b, permute 0 0", "line 1: permute: expected each axis"},
    {"a = b, permute 0 2", "line 1: permute: expected each axis"},
    {"a = b, permute 1 -1", "line 1: permute: expected each axis"},
    {"a = b, permute x", "line 1: expected whole numbers (got \"x\")"},
    {"a = b, permute 0 1 2 3 4 5 6", "line 1: more than 6 axes"},
    {"a = b, reshape -1 -1", "line 1: reshape: expected sizes"},
    {"a = b, reshape -2", "line 1: reshape: expected sizes"},
    {"a = b, reshape 9223372036854775807 2", "line 1: reshape: expected sizes"},
    {"a = b, reshape 99999999999999999999", "line 1: expected whole numbers"},
    {"x = b\na = b, reshape 1, reshape 1, reshape 1, reshape 1, reshape 1, reshape 1, reshape 1, "
     "reshape 1, reshape 1",
     "line 2: more than 8 steps"},
    {"a = b\n\na = c", "line 3: a was given in line 1 already"},
};

Test(map, files_that_are_none)
{
    file_name map = in_folder(&here, "net.map");
    adj_error error;
    put_torch();
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        put_file(map.s, bad_files[i].text, strlen(bad_files[i].text));
        cr_expect_eq(load_weights(&n, map.s, &error), ADJ_EIO, "case %zu", i);
        cr_expect_not_null(strstr(error.message, bad_files[i].words), "case %zu: %s", i,
                           error.message);
        expect_text(error.message, map.s);
    }
    put_file(map.s, "a = b\0c", 7);
    cr_expect_eq(load_weights(&n, map.s, &error), ADJ_EIO);
    expect_text(error.message, "is not text");
    cr_expect_eq(load_weights(&n, "/nowhere/map", &error), ADJ_EIO);
    expect_text(error.message, "expected pytorch, keras or a file");
}

/* Entries that do not fit the tensors: nothing is loaded. */
static const struct {
    const char *line, *words;
    adj_status status;
} unfit[] = {
    {"conv1/w = nothing", "the file has no tensor nothing (for conv1/w)", ADJ_EIO},
    {"conv1/w = conv1.weight, permute 1 0", "permute [1, 0] does not fit tensor conv1.weight",
     ADJ_ESHAPE},
    {"conv1/w = conv1.weight, reshape 7 -1", "reshape [7, -1] does not fit", ADJ_ESHAPE},
    {"conv1/w = conv1.weight", "got f32 [4, 2, 3, 3], expected f32 [3, 3, 2, 4]", ADJ_ESHAPE},
    {"conv1/w = conv1.weight, permute 1 0 2 3",
     "conv1.weight has the wrong type or shape (got f32 [4, 2, 3, 3], [2, 4, 3, 3] mapped, "
     "expected f32 [3, 3, 2, 4])",
     ADJ_ESHAPE},
    {"conv1/w = conv1.weight + conv1.bias", "have different types", ADJ_ESHAPE},
    {"conv1/b = bn1.num_batches_tracked", "got i64 [], expected f32 [4]", ADJ_ESHAPE},
};

Test(map, what_does_not_fit)
{
    file_name map = in_folder(&here, "net.map");
    adj_error error;
    put_torch();
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    for (size_t i = 0; i < sizeof unfit / sizeof unfit[0]; i++) {
        char text[2 * sizeof by_hand] = "", name[16];
        sscanf(unfit[i].line, "%15s", name);
        for (const char *line = by_hand; line != NULL && *line != '\0';) {
            const char *end = strchr(line, '\n');
            int bytes = (int)(end != NULL ? end + 1 - line : (long)strlen(line));
            if (strncmp(line, name, strlen(name)) != 0)
                snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s", bytes, line);
            line = end != NULL ? end + 1 : NULL;
        }
        snprintf(text + strlen(text), sizeof text - strlen(text), "\n%s\n", unfit[i].line);
        put_file(map.s, text, strlen(text));
        cr_expect_eq(load_weights(&n, map.s, &error), unfit[i].status, "case %zu: %s", i,
                     error.message);
        cr_expect_not_null(strstr(error.message, unfit[i].words), "case %zu: %s", i, error.message);
    }
}

static char *print_of(const char *model, const char *map)
{
    char *text = NULL;
    size_t bytes;
    scoped(release_graph) adj_graph *g = adj_graph_new();
    FILE *f = open_memstream(&text, &bytes);
    adj_error error = {0};
    adj_model_opts o = {0};
    const adj_model *m = adj_model_find(model, &o);
    cr_assert_not_null(adj_model_logits(g, m, &o));
    cr_assert_eq(adj_weights_print_map(f, g, map, &error), ADJ_OK, "%s", error.message);
    fclose(f);
    return text;
}

/* Torchvision's and Keras's names of the built-in models. */
static const struct {
    const char *model, *map, *line;
} lines[] = {
    {"resnet20", "pytorch", "conv1/w = conv1.weight, permute 2 3 1 0\n"},
    {"resnet20", "pytorch", "bn1/running = bn1.running_mean + bn1.running_var\n"},
    {"resnet20", "pytorch", "stage1/block1/conv1/w = layer1.0.conv1.weight, permute 2 3 1 0\n"},
    {"resnet20", "pytorch", "stage3/block3/bn2/gamma = layer3.2.bn2.weight\n"},
    {"resnet20", "pytorch",
     "stage2/block1/shortcut/w = layer2.0.downsample.0.weight, permute 2 3 1 0\n"},
    {"resnet20", "pytorch", "stage2/block1/shortcut_bn/beta = layer2.0.downsample.1.bias\n"},
    {"resnet20", "pytorch", "logits/w = fc.weight, permute 1 0\n"},
    {"resnet8", "pytorch", "block2/conv2/b = layer2.0.conv2.bias\n"},
    {"resnet8", "pytorch", "block3/shortcut/b = layer3.0.downsample.0.bias\n"},
    {"mobilenet_v1", "pytorch",
     "block3/depthwise/w = block3.depthwise.weight, reshape 32 1 3 3, reshape 32 1 3 3, permute 2 "
     "3 0 1\n"},
    {"mobilenet_v1", "pytorch",
     "block3/bn1/running = block3.bn1.running_mean + block3.bn1.running_var\n"},
    {"lenet", "pytorch",
     "fc1/w = fc1.weight, reshape 128 3136, reshape 128 64 7 7, permute 2 3 1 0, reshape 3136 "
     "128\n"},
    {"lenet", "pytorch", "logits/b = fc2.bias\n"},
    {"lenet5", "pytorch", "logits/w = fc3.weight, permute 1 0\n"},
    {"lenet", "keras", "fc1/w = fc1/kernel\n"},
    {"resnet20", "keras",
     "stage1/block1/bn1/running = stage1/block1/bn1/moving_mean + stage1/block1/bn1/"
     "moving_variance\n"},
    {"ds_cnn", "keras", "block1/depthwise/w = block1/depthwise/depthwise_kernel\n"},
};

Test(map, names_of_models)
{
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        scoped(release) char *text = print_of(lines[i].model, lines[i].map);
        cr_expect_not_null(strstr(text, lines[i].line), "%s is not in\n%s", lines[i].line, text);
    }
}

/* To theirs and back is the identity, and to theirs is PyTorch's file, for every model. */
Test(map, there_and_back)
{
    adj_tensors *theirs = NULL, *ours = NULL, *again = NULL;
    adj_error error = {0};
    put_torch();
    scoped(net_free) small_net n = net_of(ADJ_NHWC, ADJ_F32);
    cr_assert_eq(adj_tensors_read(path.s, &theirs), ADJ_OK);
    cr_assert_eq(adj_weights_convert(theirs, n.g, "pytorch", 0, &ours, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect_eq(adj_tensors_find(ours, "bn1.num_batches_tracked"), -1);
    cr_assert_eq(adj_weights_convert(ours, n.g, "pytorch", 1, &again, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect_eq(again->n, DICT);
    for (int i = 0; i < again->n; i++) {
        adj_tensor t = again->tensor[i];
        int k = 0;
        while (k < DICT && strcmp(state_dict[k].name, t.name) != 0)
            k++;
        /* without a file to look at, the last layer after fc1 is fc2 */
        cr_assert_lt(k, DICT, "%s", t.name);
        cr_expect_eq(memcmp(&t.shape, &state_dict[k].shape, sizeof t.shape), 0, "%s", t.name);
        cr_expect_eq(memcmp(t.data, torch.value[k], (size_t)adj_tensor_bytes(&t)), 0, "%s", t.name);
    }
    adj_tensors_free(again);

    file_name map = in_folder(&here, "net.map");
    put_file(map.s, by_hand, strlen(by_hand)); /* its first reshapes say the shapes of theirs */
    cr_assert_eq(adj_weights_convert(ours, NULL, map.s, 1, &again, &error), ADJ_OK, "%s",
                 error.message);
    adj_tensor dw = again->tensor[adj_tensors_find(again, "dw.weight")];
    cr_expect(dw.shape.rank == 4 && dw.shape.dim[0] == 4 && dw.shape.dim[1] == 2);
    cr_expect_eq(memcmp(dw.data, torch.value[6], (size_t)adj_tensor_bytes(&dw)), 0);
    adj_tensors_free(again);
    static const char one_way[] = "conv1/w = x, permute 1 0, reshape 3 3 2 4";
    put_file(map.s, one_way, strlen(one_way));
    cr_expect_eq(adj_weights_convert(ours, NULL, map.s, 1, &again, &error), ADJ_ESHAPE);
    expect_text(error.message, "cannot be reversed");
    cr_expect_null(again);
    cr_expect_eq(adj_weights_convert(ours, NULL, "pytorch", 1, &again, &error), ADJ_EARG);
    adj_tensors_free(ours);
    adj_tensors_free(theirs);
}
