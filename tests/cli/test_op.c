/* test_op.c - adjoint op: one op on tensors from a file. The numbers were made by PyTorch 1.13.1;
 * where it is installed, op_torch.py compares many more. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_io.h"
#include "cli/rows.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

/* x[i] = (i*7 % 11 - 5)/2, w[i] = (i*5 % 7 - 3)/4, dy[i] = (i*3 % 5 - 2)/2: their sums are exact.
 */
static void fill(double *v, int n, int factor, int modulus, int less, double by)
{
    for (int i = 0; i < n; i++)
        v[i] = (i * factor % modulus - less) / by;
}

/* Writes the file "in". */
static void put_conv(void)
{
    static double x[18], w[16], dy[8];
    fill(x, 18, 7, 11, 5, 2);
    fill(w, 16, 5, 7, 3, 4);
    fill(dy, 8, 3, 5, 2, 2);
    const adj_tensor t[] = {{"input", ADJ_ELEM_F64, {4, {1, 3, 3, 2}}, x},
                            {"filter", ADJ_ELEM_F64, {4, {2, 2, 2, 2}}, w},
                            {"dy", ADJ_ELEM_F64, {4, {1, 2, 2, 2}}, dy},
                            {"out_backprop", ADJ_ELEM_F64, {4, {1, 2, 2, 2}}, dy}};
    cr_assert_eq(adj_tensors_write("in", 4, t, 0, NULL, NULL), ADJ_OK);
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

static void set_up(void)
{
    enter_empty();
    put_conv();
}

TestSuite(op, .init = set_up, .fini = leave);

Test(op, convolution_and_its_gradients)
{
    static const char *const backends[] = {"naive", "onednn", "direct"};
    for (int i = 0; i < 3; i++) {
        tool(0, "op conv2d --in in --out out --grad --attr padding=VALID --backend %s",
             backends[i]);
        scoped(release_tensors) adj_tensors *t = tensors_of("out");
        cr_expect_eq(t->n, 3);
        expect_tensor(t, "y", 8, conv_y);
        expect_tensor(t, "dinput", 18, conv_dx);
        expect_tensor(t, "dfilter", 16, conv_dw);
    }
    tool(0, "op conv2d_backprop_input --in in --out out --attr padding=VALID");
    scoped(release_tensors) adj_tensors *t = tensors_of("out");
    cr_expect_eq(t->n, 1);
    expect_tensor(t, "y", 18, conv_dx);
}

Test(op, half_type)
{
    const uint16_t x[] = {0xbfc0, 0x3dcd, 0x4050}, want[] = {0xbe1a, 0x3dcd, 0x4050};
    cr_assert_eq(
        adj_tensors_write("in", 1, &(adj_tensor){"x0", ADJ_ELEM_BF16, {1, {3}}, x}, 0, NULL, NULL),
        ADJ_OK);
    tool(0, "op leaky_relu --in in --out out --attr 0.1");
    scoped(release_tensors) adj_tensors *t = tensors_of("out");
    adj_tensor y = t->tensor[0];
    cr_assert_eq(y.elem, ADJ_ELEM_BF16);
    cr_expect_eq(memcmp(y.data, want, sizeof want), 0);
}

/* The file itself through two pipes. */
Test(op, standard_input_and_output)
{
    cr_assert_eq(shell("cat in | adjoint op conv2d --in - --out - --attr padding=VALID | "
                       "cat >out"),
                 0);
    scoped(release_tensors) adj_tensors *t = tensors_of("out");
    expect_tensor(t, "y", 8, conv_y);
}

Test(op, wrong_usage)
{
    expect_rows("wrong usage");
    cr_expect_eq(files_in(&here), 1, "a file was written");
}

/* The default of adjoint ops is used; what follows from the operands elsewhere is not guessed. */
Test(op, defaults_of_attributes)
{
    const double x[] = {1, 2, 3, 4};
    const adj_tensor t[] = {{"x0", ADJ_ELEM_F64, {0}, x},
                            {"x", ADJ_ELEM_F64, {4, {1, 1, 1, 4}}, x},
                            {"gamma", ADJ_ELEM_F64, {1, {4}}, x},
                            {"beta", ADJ_ELEM_F64, {1, {4}}, x}};
    cr_assert_eq(adj_tensors_write("in", 4, t, 0, NULL, NULL), ADJ_OK);
    expect_rows("defaults of attributes");
}

Test(op_numbers, beside_pytorch)
{
    int status = shell("p=/usr/bin/python3; [ -x $p ] || p=python3; "
                       "$p tests/cli/op_torch.py \"$(command -v adjoint)\"");
    if (status == 77 || status == 127)
        printf("[SKIP] op_numbers::beside_pytorch: there is no PyTorch\n");
    else
        cr_expect_eq(status, 0, "%s%s", ran.out, ran.err);
}
