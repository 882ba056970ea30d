/* test_op.c - adjoint op: one op on tensors from a file. The numbers were made by PyTorch 1.13.1;
 * where it is installed, op_torch.py compares many more. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

static finished f;

/* x[i] = (i*7 % 11 - 5)/2, w[i] = (i*5 % 7 - 3)/4, dy[i] = (i*3 % 5 - 2)/2: their sums are exact.
 */
static void fill(double *v, int n, int factor, int modulus, int less, double by)
{
    for (int i = 0; i < n; i++)
        v[i] = (i * factor % modulus - less) / by;
}

static void put_conv(const char *path)
{
    static double x[18], w[16], dy[8];
    fill(x, 18, 7, 11, 5, 2);
    fill(w, 16, 5, 7, 3, 4);
    fill(dy, 8, 3, 5, 2, 2);
    const adj_tensor t[] = {{"input", ADJ_ELEM_F64, {4, {1, 3, 3, 2}}, x},
                            {"filter", ADJ_ELEM_F64, {4, {2, 2, 2, 2}}, w},
                            {"dy", ADJ_ELEM_F64, {4, {1, 2, 2, 2}}, dy},
                            {"out_backprop", ADJ_ELEM_F64, {4, {1, 2, 2, 2}}, dy}};
    adj_error error;
    cr_assert_eq(adj_tensors_write(path, 4, t, 0, NULL, &error), ADJ_OK, "%s", error.message);
}

static const double conv_y[] = {-0.125, -2.625, 1.5, -0.5, -2.125, -1.75, 0.875, 1.75};
static const double conv_dx[] = {1.0, -0.25,  0.25,  -0.625, -0.125, -0.625, -1.0,   1.375, -1.5,
                                 3.0, -0.125, 1.125, 0.0,    -0.75,  0.5,    -1.125, 0.25,  -0.625};
static const double conv_dw[] = {2.0,  -3.25, -1.5, 2.25, 0.5, 2.25,  -3.0, -0.5,
                                 0.25, -3.25, -0.5, 2.25, 1.5, -3.25, 0.75, -3.25};

static void expect_tensor(const adj_tensors *t, const char *name, int n, const double want[])
{
    int at = adj_tensors_find(t, name);
    cr_assert_geq(at, 0, "no %s", name);
    adj_tensor got = t->tensor[at];
    cr_assert_eq(got.elem, ADJ_ELEM_F64);
    cr_assert_eq(adj_shape_elems(got.shape), n);
    cr_expect_eq(memcmp(got.data, want, (size_t)n * sizeof *want), 0, "%s", name);
}

static adj_tensors *read_tensors(const char *path)
{
    adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(path, &t), ADJ_OK, "%s", t->message);
    return t;
}

Test(op, convolution_and_its_gradients)
{
    scoped(folder_remove) folder dir = folder_new();
    const file_name in = in_folder(&dir, "in"), out = in_folder(&dir, "out");
    static const char *const backends[] = {"naive", "onednn", "direct"};
    put_conv(in.s);
    for (int i = 0; i < 3; i++) {
        tool(&f, 0, "op conv2d --in %s --out %s --grad --attr padding=VALID --backend %s", in.s,
             out.s, backends[i]);
        scoped(release_tensors) adj_tensors *t = read_tensors(out.s);
        cr_expect_eq(t->n, 3);
        expect_tensor(t, "y", 8, conv_y);
        expect_tensor(t, "dinput", 18, conv_dx);
        expect_tensor(t, "dfilter", 16, conv_dw);
    }
    tool(&f, 0, "op conv2d_backprop_input --in %s --out %s --attr padding=VALID", in.s, out.s);
    scoped(release_tensors) adj_tensors *t = read_tensors(out.s);
    cr_expect_eq(t->n, 1);
    expect_tensor(t, "y", 18, conv_dx);
}

Test(op, half_type)
{
    scoped(folder_remove) folder dir = folder_new();
    const file_name in = in_folder(&dir, "in"), out = in_folder(&dir, "out");
    const uint16_t x[] = {0xbfc0, 0x3dcd, 0x4050}, want[] = {0xbe1a, 0x3dcd, 0x4050};
    adj_error error;
    cr_assert_eq(adj_tensors_write(in.s, 1, &(adj_tensor){"x0", ADJ_ELEM_BF16, {1, {3}}, x}, 0,
                                   NULL, &error),
                 ADJ_OK);
    tool(&f, 0, "op leaky_relu --in %s --out %s --attr 0.1", in.s, out.s);
    scoped(release_tensors) adj_tensors *t = read_tensors(out.s);
    adj_tensor y = t->tensor[0];
    cr_assert_eq(y.elem, ADJ_ELEM_BF16);
    cr_expect_eq(memcmp(y.data, want, sizeof want), 0);
}

/* The file itself through two pipes. */
Test(op, standard_input_and_output)
{
    scoped(folder_remove) folder dir = folder_new();
    const file_name in = in_folder(&dir, "in"), out = in_folder(&dir, "out");
    const char *build = getenv("BUILD");
    char line[1024];
    put_conv(in.s);
    snprintf(line, sizeof line,
             "cat %s | %s/adjoint op conv2d --in - --out - --attr padding=VALID | cat >%s", in.s,
             build != NULL ? build : "build", out.s);
    cr_assert_eq(system(line), 0); // NOLINT(cert-env33-c): the test's own words
    scoped(release_tensors) adj_tensors *t = read_tensors(out.s);
    expect_tensor(t, "y", 8, conv_y);
}

Test(op, wrong_usage)
{
    scoped(folder_remove) folder dir = folder_new();
    const file_name in = in_folder(&dir, "in"), out = in_folder(&dir, "out");
    const struct {
        int status;
        const char *says, *arguments[8];
    } calls[] = {
        {3, "the op's NAME is missing", {"--in", in.s, "--out", out.s}},
        {3, "--in FILE is missing", {"relu", "--out", out.s}},
        {3, "--out FILE is missing", {"relu", "--in", in.s}},
        {3, "unknown op conv2 (did you mean conv2d?)", {"conv2", "--in", in.s, "--out", out.s}},
        {3, "conv2d_transpose is composed of conv2d_backprop_input", {"conv2d_transpose"}},
        {3, "unexpected argument \"tanh\"", {"relu", "tanh"}},
        {3, "--dtype: not available; the tensors in the file have", {"relu", "--dtype", "f16"}},
        {3, "--backend: unknown", {"relu", "--in", in.s, "--out", out.s, "--backend", "cuda"}},
        {1, "relu: operand x0 is missing", {"relu", "--in", in.s, "--out", out.s}},
        {1, "fill: a leaf has no operands", {"fill", "--in", in.s, "--out", out.s}},
        {1, "/nowhere/x: ", {"relu", "--in", "/nowhere/x", "--out", out.s}},
        {1, "/nowhere/x: No such file", {"relu", "--in", in.s, "--out", "/nowhere/x"}},
        {3,
         "op: --attr strides: got \"1,x\", expected whole numbers",
         {"conv2d", "--in", in.s, "--out", out.s, "--attr", "strides=1,x"}},
        {1, "dilation", {"conv2d", "--in", in.s, "--out", out.s, "--attr", "dilations=1,0,1,1"}},
    };
    put_conv(in.s);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const char *words[10] = {"op"};
        memcpy(words + 1, calls[i].arguments, sizeof calls[i].arguments);
        run_tool(words, &f);
        cr_expect_eq(f.status, calls[i].status, "%zu: %d %s", i, f.status, f.err);
        cr_expect_not_null(strstr(f.err, calls[i].says), "%zu: %s", i, f.err);
        cr_expect_null(strstr(f.err, "adj_"), "%zu: %s", i, f.err);
        cr_expect_neq(access(out.s, F_OK), 0, "%zu wrote a file", i);
    }
    tool(&f, 1, "op elu --in %s --out %s", in.s, out.s);
}

Test(op, an_attribute_is_not_guessed)
{
    scoped(folder_remove) folder dir = folder_new();
    const file_name in = in_folder(&dir, "in"), out = in_folder(&dir, "out");
    const double x[] = {1, 2, 3, 4};
    const adj_tensor t[] = {{"x0", ADJ_ELEM_F64, {0}, x},
                            {"x", ADJ_ELEM_F64, {4, {1, 1, 1, 4}}, x},
                            {"gamma", ADJ_ELEM_F64, {1, {4}}, x},
                            {"beta", ADJ_ELEM_F64, {1, {4}}, x}};
    adj_error error;
    cr_assert_eq(adj_tensors_write(in.s, 4, t, 0, NULL, &error), ADJ_OK);
    tool(&f, 3, "op elu --in %s --out %s", in.s, out.s);
    expect_text(f.err, "op: --attr: alpha is missing (adjoint ops elu");
    tool(&f, 3, "op group_norm --in %s --out %s --attr groups=4", in.s, out.s);
    expect_text(f.err, "op: --attr: epsilon is missing");
}

Test(op, beside_pytorch)
{
    const char *build = getenv("BUILD");
    char line[256];
    snprintf(line, sizeof line,
             "p=/usr/bin/python3; [ -x $p ] || p=python3; $p tests/cli/op_torch.py %s/adjoint",
             build != NULL ? build : "build");
    int status = exit_status(system(line)); // NOLINT(cert-env33-c): the test's own words
    if (status == 77 || status == 127)
        printf("[SKIP] op::beside_pytorch: there is no PyTorch\n");
    else
        cr_expect_eq(status, 0);
}
