/* test_pool_refused.c - wrong calls of the pools and their gradients: a status and a message that
 * names the argument. */
#include <criterion/criterion.h>
#include <string.h>

#include "harness.h"
#include "graph/op.h"
#include "ops/attr_lists.h"
#include "ops/grad.h"

typedef struct {
    adj_shape x;
    adj_pool a;
    int average;
    adj_status status;
    const char *words[4];
} refused;

static const refused bad[] = {
    {{2, {1, 3}}, {.ksize = {1, 1, 1, 1}}, 0, ADJ_ESHAPE, {"max_pool", "input", "rank"}},
    {{2, {1, 3}}, {.ksize = {1, 1, 1, 1}}, 1, ADJ_ESHAPE, {"avg_pool", "input", "rank"}},
    {{4, {2, 4, 4, 3}}, {.ksize = {0}}, 0, ADJ_EARG, {"ksize", "missing"}},
    {{4, {2, 4, 4, 3}}, {.ksize = {1, 0, 2, 1}}, 0, ADJ_EARG, {"ksize", "0"}},
    {{4, {2, 4, 4, 3}}, {.ksize = {1, -2, 2, 1}}, 0, ADJ_EARG, {"ksize", "-2"}},
    {{4, {2, 4, 4, 3}}, {.ksize = {2, 2, 2, 1}}, 0, ADJ_EARG, {"ksize", "batch"}},
    {{4, {2, 4, 4, 3}},
     {.ksize = {1, 2, 2, 1}, .stride = {1, 2, 0, 1}},
     0,
     ADJ_EARG,
     {"strides", "0"}},
    {{4, {2, 4, 4, 3}},
     {.ksize = {1, 2, 2, 1}, .stride = {1, (int64_t)1 << 40, 1, 1}},
     0,
     ADJ_EARG,
     {"strides"}},
    {{4, {2, 4, 4, 3}},
     {.ksize = {1, 6, 4, 1}, .stride = {1, 1, 1, 1}},
     0,
     ADJ_ESHAPE,
     {"height", "ksize 6"}},
    {{4, {2, 4, 4, 3}},
     {.ksize = {1, 4, 5, 1}, .stride = {1, 1, 1, 1}},
     1,
     ADJ_ESHAPE,
     {"width", "ksize 5"}},
    {{4, {1, 2, 2, 4}},
     {.ksize = {1, 1, 1, 2}, .stride = {1, 1, 1, 1}},
     0,
     ADJ_EARG,
     {"depth", "2 and 1"}},
    {{4, {1, 2, 2, 4}}, {.ksize = {1, 1, 1, 3}}, 0, ADJ_ESHAPE, {"depth", "divide"}},
    {{4, {1, 2, 2, 4}}, {.ksize = {1, 2, 1, 2}}, 0, ADJ_EARG, {"depth", "height and width"}},
    {{4, {1, 2, 2, 4}}, {.ksize = {1, 1, 1, 2}}, 1, ADJ_EARG, {"avg_pool", "depth"}},
    {{4, {1, 3, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .pad = {{0}, {0, 1}, {0, 2}}, .padding = ADJ_EXPLICIT},
     0,
     ADJ_EARG,
     {"explicit_paddings", "smaller"}},
    {{4, {1, 3, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .pad = {{0}, {-1, 1}}, .padding = ADJ_EXPLICIT},
     0,
     ADJ_EARG,
     {"explicit_paddings", "-1"}},
    {{4, {1, 3, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .pad = {{0}, {1, 1}}, .padding = ADJ_SAME},
     0,
     ADJ_EARG,
     {"explicit_paddings", "EXPLICIT"}},
    {{4, {1, 3, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .pad = {{0}, {1, 1}}, .padding = ADJ_EXPLICIT},
     1,
     ADJ_EARG,
     {"avg_pool", "EXPLICIT"}},
    {{4, {1, 0, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .pad = {{0}, {1, 1}}, .padding = ADJ_EXPLICIT},
     0,
     ADJ_ESHAPE,
     {"height", "without an element"}},
    {{4, {1, 3, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .padding = (adj_padding)9},
     0,
     ADJ_EARG,
     {"padding", "9"}},
    {{4, {1, 3, 3, 1}},
     {.ksize = {1, 2, 2, 1}, .format = (adj_format)9},
     0,
     ADJ_EARG,
     {"data_format", "9"}},
};

Test(pool_refused, pools)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = adj_input(f.g, "x", ADJ_F32, bad[i].x);
        adj_node *y = bad[i].average ? adj_avg_pool(x, &bad[i].a) : adj_max_pool(x, &bad[i].a);
        cr_assert_null(y, "case %zu", i);
        expect_error(f.g, bad[i].status, bad[i].words);
    }
}

/* Gradients: every operand's shape and type is checked against what the attributes give. */
Test(pool_refused, gradients)
{
    const adj_pool a = {.ksize = {1, 2, 2, 1}};
    const adj_shape x_size = {4, {1, 4, 4, 2}}, y_size = {4, {1, 2, 2, 2}},
                    other = {4, {1, 1, 2, 4}};
    for (int i = 0; i < 9; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = adj_input(f.g, "x", ADJ_F32, x_size),
                 *y = adj_input(f.g, "y", ADJ_F32, y_size);
        adj_node *wrong = adj_input(f.g, "wrong", ADJ_F32, other);
        adj_node *half = adj_input(f.g, "half", ADJ_F16, y_size);
        adj_node *r = NULL;
        const char *word = "grad";
        adj_status status = ADJ_ESHAPE;
        switch (i) {
        case 0: r = adj_max_pool_grad(x, wrong, y, &a), word = "orig_output"; break;
        case 1: r = adj_max_pool_grad(x, y, wrong, &a); break;
        case 2: r = adj_max_pool_grad_grad(x, wrong, x, &a), word = "orig_output"; break;
        case 3: r = adj_max_pool_grad_grad(x, y, y, &a); break;
        case 4: r = adj_avg_pool_grad(x_size, wrong, &a); break;
        case 5:
            r = adj_avg_pool_grad((adj_shape){2, {4, 4}}, y, &a), word = "orig_input_shape";
            break;
        case 6:
            r = adj_avg_pool_grad((adj_shape){4, {1, -4, 4, 2}}, y, &a), word = "orig_input_shape";
            break;
        case 7: r = adj_max_pool_grad(x, half, y, &a), word = "f16", status = ADJ_EDTYPE; break;
        default: r = adj_avg_pool_grad(x_size, y, NULL), word = "ksize", status = ADJ_EARG; break;
        }
        cr_assert_null(r, "case %d", i);
        expect_error(f.g, status, (const char *[]){word, NULL});
    }
    cr_assert_null(adj_max_pool(NULL, &a));
    cr_assert_null(adj_avg_pool_grad(x_size, NULL, &a));
    cr_assert_null(adj_global_avg_pool(NULL, ADJ_NHWC));
}

Test(pool_refused, attribute_lists)
{
    const int64_t k[] = {1, 2, 2, 1}, five[] = {1, 2, 2, 1, 1}, ones[] = {1, 1, 1, 1},
                  two[] = {1, 2, 1, 1};
    const int64_t pads[] = {0, 0, 1, 0, 0, 1, 0, 0};
    adj_pool a;
    adj_error error;
    adj_attr_lists lists = {.n_ksize = 4,
                            .ksize = k,
                            .n_strides = 4,
                            .strides = k,
                            .n_dilations = 4,
                            .dilations = ones,
                            .padding = "EXPLICIT",
                            .data_format = "NHWC",
                            .n_explicit_paddings = 8,
                            .explicit_paddings = pads};
    cr_assert_eq(adj_pool_from_attrs(&lists, &a, &error), ADJ_OK);
    cr_assert(a.padding == ADJ_EXPLICIT && a.pad[1][0] == 1 && a.pad[2][1] == 1 && a.ksize[2] == 2);

    const struct {
        adj_attr_lists lists;
        const char *word;
    } wrong[] = {
        {{.n_ksize = 5, .ksize = five, .padding = "SAME"}, "ksize"},
        {{.padding = "SAME"}, "ksize"},
        {{.n_ksize = 4, .ksize = k, .n_strides = 5, .strides = five, .padding = "SAME"}, "strides"},
        {{.n_ksize = 4, .ksize = k, .n_dilations = 4, .dilations = two, .padding = "SAME"},
         "dilations"},
        {{.n_ksize = 4, .ksize = k, .padding = "EXPLICIT"}, "explicit_paddings"},
        {{.n_ksize = 4, .ksize = k, .padding = "same"}, "padding"},
        {{.n_ksize = 4, .ksize = k, .padding = "SAME", .data_format = "NCWH"}, "data_format"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_assert_eq(adj_pool_from_attrs(&wrong[i].lists, &a, &error), ADJ_EARG);
        cr_assert_eq(error.status, ADJ_EARG);
        cr_assert_not_null(strstr(error.message, wrong[i].word), "%s", error.message);
        cr_assert_eq(adj_pool_from_attrs(&wrong[i].lists, &a, NULL), ADJ_EARG);
    }
}
