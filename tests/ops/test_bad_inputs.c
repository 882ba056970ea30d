/* test_bad_inputs.c - calls that broke other libraries: each is refused with a status and a message
 * naming the argument, or, if legal, gives exactly zeros on every backend.
 *
 * The rows are those of TensorFlow's security advisories and issues for ops that we have; rows for
 * other ops give the same shapes to ours. */
#include "expect.h"
#include "graph/op.h"

enum op {
    CONV2D,
    BACKPROP_INPUT,
    BACKPROP_FILTER,
    DEPTHWISE,
    DEPTHWISE_INPUT,
    DEPTHWISE_FILTER,
    TRANSPOSE,
    MAX_POOL,
    AVG_POOL,
    MAX_POOL_GRAD,
    AVG_POOL_GRAD
};

typedef struct {
    const char *source;
    enum op op;
    /* input or its sizes; filter, its sizes or orig_output; out_backprop or grad. "": a scalar */
    const char *a, *b, *c;
    /* padding is VALID unless it says else, and comes last; "strides=" is an empty list */
    const char *attrs;
    const char *words; /* words of the refusal, separated by |; NULL: legal, and all zeros */
} row;

static const row rows[] = {
    {"CVE-2021-29524", BACKPROP_FILTER, "0,0,1,0", "1,1,1,1", "0,0,1,1",
     "strides=1,66,18,1 padding=SAME", "input must have channels"},
    {"CVE-2021-29538", BACKPROP_FILTER, "0,0,0,0", "0,0,0,0", "0,0,0,0", "", "filter_sizes"},
    {"CVE-2021-29540", BACKPROP_FILTER, "1,1,1,2", "1,1,1,1", "1,1,1,1", "strides=1,66,49,1",
     "out channels of filter_sizes"},
    {"CVE-2021-29540", BACKPROP_FILTER, "0,1,1,5", "3,8,1,1", "0,1,1,1", "padding=SAME",
     "filter_sizes"},
    {"CVE-2021-29525", BACKPROP_INPUT, "52,1,1,5", "0,1,5,0", "52,1,1,0", "", "filter"},
    {"CVE-2022-35999", BACKPROP_INPUT, "3,1,1,2", "1,3,2,3", "3,1,0,3", "strides=1,1,2,1", NULL},
    {"CVE-2022-35969", BACKPROP_INPUT, "3,1,2", "1,1,2,3", "3,1,1,3", "", "input_sizes"},
    {"CVE-2022-35969", BACKPROP_INPUT, "", "1,1,2,3", "3,1,1,3", "", "input_sizes"},
    {"CVE-2022-35969", DEPTHWISE_INPUT, "4,4", "1,1,2,3", "3,4,4,6", "", "input_sizes"},
    {"CVE-2021-29526", CONV2D, "0,0,0,0", "0,0,0,0", "", "", "filter"},
    {"CVE-2021-37675", DEPTHWISE, "0,0,0,0", "0,0,0,0", "", "", "filter"},
    {"CVE-2021-37675", TRANSPOSE, "0,0,0,0", "0,0,0,0", "0,0,0,0", "", "filter"},
    {"CVE-2021-41209", CONV2D, "1,2,2,1", "0,0,0,0", "", "", "filter"},
    {"CVE-2021-41209", CONV2D, "1,2,2,1", "1,1,1,0", "", "", "filter"},
    {"CVE-2021-41209", DEPTHWISE, "1,2,2,1", "1,1,1,0", "", "", "filter"},
    {"CVE-2022-35996", CONV2D, "1,0,2,1", "1,1,1,1", "",
     "explicit_paddings=0,0,1,1,1,1,0,0 padding=EXPLICIT", NULL},
    {"CVE-2022-21741", DEPTHWISE, "1,4,4,2", "2,2,2,1", "", "strides=1,0,0,1 padding=SAME",
     "strides"},
    {"CVE-2022-21725", CONV2D, "1,4,4,2", "2,2,2,1", "", "strides=0,0,0,0", "strides"},
    {"CVE-2022-41885", CONV2D, "1,1879048192,1879048192,1", "1,1,1,1", "", "", "input"},
    {"CVE-2022-41885", BACKPROP_INPUT, "1,1879048192,1879048192,1", "1,1,1,1", "1,1,1,1",
     "strides=1,1879048192,1879048192,1 padding=SAME", "input_sizes"},
    {"CVE-2022-41885", BACKPROP_INPUT, "1879048192,1879048192", "3,3,2,2", "1,1,1,2",
     "padding=SAME", "out_backprop"},
    {"CVE-2023-27579", CONV2D, "1,2,2,1", "1,1,0,1", "", "", "filter"},
    {"CVE-2021-29520", BACKPROP_INPUT, "2,3,3,2", "2,2,2,3", "2,5,5,3", "strides=1,9,9,1",
     "out_backprop"},
    {"CVE-2021-29520", BACKPROP_FILTER, "2,3,3,2", "5,5,2,3", "2,1,1,3", "strides=1,9,9,1",
     "out_backprop"},
    {"CVE-2021-29522", BACKPROP_INPUT, "0,1,1,0", "1,1,0,1", "0,1,1,1", "", "filter"},
    {"CVE-2021-29522", BACKPROP_FILTER, "0,3,3,2", "2,2,2,3", "0,2,2,3", "", NULL},
    {"CVE-2023-25661", TRANSPOSE, "1,4,4,3", "2,2,3,2", "1,0,4,2", "padding=SAME", "input"},
    {"CVE-2022-29196", BACKPROP_FILTER, "1,3,3,2", "", "1,2,2,3", "", "filter_sizes"},
    {"CVE-2021-29602", DEPTHWISE, "1,4,4,0", "2,2,0,1", "", "", "filter"},
    {"CVE-2021-29527", CONV2D, "1,2,2,1", "1,0,1,1", "", "", "filter"},
    {"CVE-2022-29201", CONV2D, "0", "0", "", "", "input"},
    {"CVE-2021-29570", MAX_POOL_GRAD, "1,1,1,4", "1", "1,1,1,4", "ksize=1,1,1,1", "orig_output"},
    {"CVE-2021-29570", MAX_POOL_GRAD, "1,1,1,4", "1,1,1,4", "1", "ksize=1,1,1,1", "grad"},
    {"CVE-2021-37674", MAX_POOL_GRAD, "1,4,4,1", "1,2,2,1", "1,2,2,0",
     "ksize=1,2,2,1 strides=1,2,2,1", "grad"},
    {"CVE-2021-37674", MAX_POOL_GRAD, "4,4", "1,2,2,1", "1,2,2,1", "ksize=1,2,2,1 strides=1,2,2,1",
     "orig_input"},
    {"tensorflow pull 126484", DEPTHWISE_FILTER, "1,3,4,2", "3,5,2,3", "1,1,0,6", "", NULL},
    {"tensorflow pull 126484", DEPTHWISE_FILTER, "0,3,4,2", "2,2,2,3", "0,3,4,6", "padding=SAME",
     NULL},
    {"tensorflow pull 126484", DEPTHWISE_FILTER, "2,3,4,2", "2,2,2,3", "0,3,4,6", "padding=SAME",
     "out_backprop"},
    {"tensorflow 58180", DEPTHWISE_FILTER, "", "2,2,2,1", "1,1,1,2", "strides=1,128,128,1",
     "input"},
    {"tensorflow 58180", DEPTHWISE_FILTER, "1,4,4,2", "2,2,2,1", "1,1,1,2",
     "strides=1,128,128,1 dilations=1,1,1", "dilations"},
    {"tensorflow 59059", DEPTHWISE_FILTER, "1,4,4,2", "1879048192,1879048192,2,1", "1,4,4,2",
     "padding=SAME", "filter_sizes"},
    {"tensorflow 59059", DEPTHWISE_FILTER, "1,4,4,2", "1879048192,1,2,1", "1,4,4,2", "",
     "filter_sizes"},
    {"tensorflow 85258", DEPTHWISE_FILTER, "", "2,2,2,1", "1,3,3,2", "strides=", "strides"},
    {"tensorflow 118352", DEPTHWISE_FILTER, "1,4,4,2", "2,2,2,1", "1,3,3,2", "strides=1,1,1,1,1",
     "strides"},
    {"tensorflow 60201", DEPTHWISE_INPUT, "1,4,4,2", "2,2,2,1", "1,3,3,2", "strides=1,0,0,1",
     "strides"},
    {"tensorflow 60201", DEPTHWISE_INPUT, "1,4,4,2", "2,2,2,1", "1,3,3,2", "dilations=1,0,0,1,1",
     "dilations"},
    {"tensorflow 60201", DEPTHWISE_INPUT, "-1,4,-2", "2,2,2,1", "0,0,0,0", "", "input_sizes"},
    {"tensorflow 60201", DEPTHWISE_INPUT, "1,-4,4,2", "2,2,2,1", "1,3,3,2", "", "input_sizes"},
    {"tensorflow 60201", DEPTHWISE_INPUT, "1,4,4,2", "2,2,2,1", "0,3,3,2", "", "out_backprop"},
    {"tensorflow 104881", DEPTHWISE_INPUT, "1,4,4,2", "4", "4", "strides=1,1", "strides"},
    {"tensorflow 89853", DEPTHWISE_INPUT, "1,4,4,2", "4", "4", "", "filter"},
    {"tensorflow 118353", DEPTHWISE_INPUT, "1,4,4,2", "2,2,2,1", "4", "", "out_backprop"},
    {"tensorflow 57980", BACKPROP_FILTER, "1,1,1,1,1,1", "2,2,2,3", "", "", "input"},
    {"tensorflow 57980", BACKPROP_FILTER, "1,4,4,2", "-2,2,2,3", "1,3,3,3", "", "filter_sizes"},
    {"tensorflow 57980", BACKPROP_FILTER, "1,4,4,2", "2,2,2,3", "", "", "out_backprop"},
    {"tensorflow 57981", BACKPROP_FILTER, "1,4,4,2,1", "2,2,2,3", "1,3,3,3", "strides=1,1,1",
     "strides"},
    {"tensorflow 57981", BACKPROP_FILTER, "1,4,4,2,1", "2,2,2,3", "1,3,3,3", "", "input"},
    {"tensorflow 85257", BACKPROP_FILTER, "1,4,4,2", "2,2,2,3", "1,1,1,3",
     "strides=1,4538426903074820908,4538426903074820908,1", "strides"},
    {"tensorflow 118348", BACKPROP_FILTER, "1,4,4,2", "2,2,2,3", "1,3,3,3", "strides=1,1",
     "strides"},
    {"tensorflow pull 125946", BACKPROP_INPUT, "1,4,4,2", "", "1,3,3,3", "", "filter"},
    {"tensorflow 57495", BACKPROP_INPUT, "0,4,4,2", "2,2,2,3", "0,3,3,3", "", NULL},
    {"tinygrad pull 14115", CONV2D, "1,4,4,2", "2,2,2,3", "", "dilations=1,0,1,1", "dilations"},
    {"pytorch 5112", TRANSPOSE, "1,8,8,3", "2,2,3,2", "1,4,4,2", "dilations=1,2,2,1", "input"},
    {"empty and tall", BACKPROP_FILTER, "1,1000000000000,0,2", "1,1,2,3", "1,1000000000000,0,3", "",
     NULL},
    {"empty and many", DEPTHWISE_FILTER, "1000000000000,0,1,2", "1,1,2,1", "1000000000000,0,1,2",
     "", NULL},
    {"pools", AVG_POOL_GRAD, "1,-4,4,1", "", "1,2,2,1", "ksize=1,2,2,1", "orig_input_shape"},
    {"pools", AVG_POOL_GRAD, "1,4,4,1", "", "1,3,2,1", "ksize=1,2,2,1", "grad"},
};

/* Wrong attributes of pools. */
static const struct {
    enum op op;
    const char *input, *attrs, *words;
    adj_status status;
} pools[] = {
    {MAX_POOL, "1,3", "ksize=1,1,1,1", "max_pool|input|rank", ADJ_ESHAPE},
    {AVG_POOL, "1,3", "ksize=1,1,1,1", "avg_pool|input|rank", ADJ_ESHAPE},
    {MAX_POOL, "2,4,4,3", "ksize=1,0,2,1", "ksize|0", ADJ_EARG},
    {MAX_POOL, "2,4,4,3", "ksize=1,-2,2,1", "ksize|-2", ADJ_EARG},
    {MAX_POOL, "2,4,4,3", "ksize=2,2,2,1", "ksize|batch", ADJ_EARG},
    {MAX_POOL, "2,4,4,3", "ksize=1,2,2,1 strides=1,2,0,1", "strides|0", ADJ_EARG},
    {MAX_POOL, "2,4,4,3", "ksize=1,2,2,1 strides=1,1099511627776,1,1", "strides", ADJ_EARG},
    {MAX_POOL, "2,4,4,3", "ksize=1,6,4,1 strides=1,1,1,1", "height|ksize 6", ADJ_ESHAPE},
    {AVG_POOL, "2,4,4,3", "ksize=1,4,5,1 strides=1,1,1,1", "width|ksize 5", ADJ_ESHAPE},
    {MAX_POOL, "1,2,2,4", "ksize=1,1,1,2 strides=1,1,1,1", "depth|2 and 1", ADJ_EARG},
    {MAX_POOL, "1,2,2,4", "ksize=1,1,1,3", "depth|divide", ADJ_ESHAPE},
    {MAX_POOL, "1,2,2,4", "ksize=1,2,1,2", "depth|height and width", ADJ_EARG},
    {AVG_POOL, "1,2,2,4", "ksize=1,1,1,2", "avg_pool|depth", ADJ_EARG},
    {MAX_POOL, "1,3,3,1", "ksize=1,2,2,1 explicit_paddings=0,0,0,1,0,2,0,0 padding=EXPLICIT",
     "explicit_paddings|smaller", ADJ_EARG},
    {MAX_POOL, "1,3,3,1", "ksize=1,2,2,1 explicit_paddings=0,0,-1,1,0,0,0,0 padding=EXPLICIT",
     "explicit_paddings|-1", ADJ_EARG},
    {MAX_POOL, "1,3,3,1", "ksize=1,2,2,1 explicit_paddings=0,0,1,1,0,0,0,0 padding=SAME",
     "explicit_paddings|EXPLICIT", ADJ_EARG},
    {AVG_POOL, "1,3,3,1", "ksize=1,2,2,1 explicit_paddings=0,0,1,1,0,0,0,0 padding=EXPLICIT",
     "avg_pool|EXPLICIT", ADJ_EARG},
    {MAX_POOL, "1,0,3,1", "ksize=1,2,2,1 explicit_paddings=0,0,1,1,0,0,0,0 padding=EXPLICIT",
     "height|without an element", ADJ_ESHAPE},
    {MAX_POOL, "1,4,4,1", "ksize=1,2,2,1,1", "ksize", ADJ_EARG},
    {MAX_POOL, "1,4,4,1", "", "ksize", ADJ_EARG},
    {MAX_POOL, "1,4,4,1", "ksize=1,2,2,1 strides=1,2,2,1,1", "strides", ADJ_EARG},
    {MAX_POOL, "1,4,4,1", "ksize=1,2,2,1 dilations=1,2,1,1", "dilations", ADJ_EARG},
    {MAX_POOL, "1,4,4,1", "ksize=1,2,2,1 padding=EXPLICIT", "explicit_paddings", ADJ_EARG},
    {MAX_POOL, "1,4,4,1", "ksize=1,2,2,1 padding=same", "padding", ADJ_EARG},
    {MAX_POOL, "1,4,4,1", "ksize=1,2,2,1 data_format=NCWH padding=SAME", "data_format", ADJ_EARG},
};

/* Returns the text after name (with its =) in the attributes, or NULL if it is not there. */
static const char *attribute(const row *r, const char *name)
{
    const char *found = strstr(r->attrs, name);
    return found != NULL ? found + strlen(name) : NULL;
}

static int read_attribute(const row *r, const char *name, int64_t list[8], const int64_t **given)
{
    const char *text = attribute(r, name);
    *given = text != NULL ? list : NULL;
    return text != NULL ? read_list(text, list) : 0;
}

/* An input, with values that are not zero where they will be read. */
static adj_node *operand(fixture *f, const row *r, const char *name, adj_shape shape)
{
    if (r->words == NULL)
        return given_random(f, ADJ_F32, shape, 1, 2);
    return adj_input(f->g, name, ADJ_F32, shape);
}

static adj_node *build_pool(fixture *f, const row *r, const adj_pool *a)
{
    if (r->op == AVG_POOL_GRAD)
        return adj_avg_pool_grad(shape_of(r->a), operand(f, r, "grad", shape_of(r->c)), a);
    adj_node *x = operand(f, r, "input", shape_of(r->a));
    if (r->op == MAX_POOL || r->op == AVG_POOL)
        return r->op == MAX_POOL ? adj_max_pool(x, a) : adj_avg_pool(x, a);
    adj_node *y = operand(f, r, "orig_output", shape_of(r->b)),
             *dy = operand(f, r, "grad", shape_of(r->c));
    return adj_max_pool_grad(x, y, dy, a);
}

static adj_node *build_conv(fixture *f, const row *r, const adj_conv *a)
{
    int has_filter = r->op != BACKPROP_FILTER && r->op != DEPTHWISE_FILTER;
    int has_input = r->op != BACKPROP_INPUT && r->op != DEPTHWISE_INPUT && r->op != TRANSPOSE;
    int has_dy = r->op != CONV2D && r->op != DEPTHWISE;
    adj_node *x = has_input ? operand(f, r, "input", shape_of(r->a)) : NULL;
    adj_node *w = has_filter ? operand(f, r, "filter", shape_of(r->b)) : NULL;
    adj_node *dy = has_dy ? operand(f, r, "out_backprop", shape_of(r->c)) : NULL;
    switch (r->op) {
    case CONV2D: return adj_conv2d(x, w, a);
    case BACKPROP_INPUT: return adj_conv2d_backprop_input(shape_of(r->a), w, dy, a);
    case BACKPROP_FILTER: return adj_conv2d_backprop_filter(x, shape_of(r->b), dy, a);
    case DEPTHWISE: return adj_depthwise_conv2d_native(x, w, a);
    case DEPTHWISE_INPUT:
        return adj_depthwise_conv2d_native_backprop_input(shape_of(r->a), w, dy, a);
    case DEPTHWISE_FILTER:
        return adj_depthwise_conv2d_native_backprop_filter(x, shape_of(r->b), dy, a);
    default: return adj_conv2d_transpose(dy, w, shape_of(r->a), a);
    }
}

/* The node, or NULL and why in error; the status of the refusal. */
static adj_status call(fixture *f, const row *r, adj_node **y, adj_error *error)
{
    int64_t numbers[4][8];
    const char *padding = attribute(r, "padding="), *format = attribute(r, "data_format=");
    char word[8];
    adj_attr_lists lists = {.padding = padding != NULL ? padding : "VALID"};
    if (format != NULL) {
        snprintf(word, sizeof word, "%.4s", format);
        lists.data_format = word;
    }
    lists.n_ksize = read_attribute(r, "ksize=", numbers[0], &lists.ksize);
    lists.n_strides = read_attribute(r, "strides=", numbers[1], &lists.strides);
    lists.n_dilations = read_attribute(r, "dilations=", numbers[2], &lists.dilations);
    lists.n_explicit_paddings =
        read_attribute(r, "explicit_paddings=", numbers[3], &lists.explicit_paddings);
    adj_conv conv;
    adj_pool pool;
    int is_pool = r->op >= MAX_POOL;
    adj_status status = is_pool ? adj_pool_from_attrs(&lists, &pool, error)
                                : adj_conv_from_attrs(&lists, &conv, error);
    *y = NULL;
    if (status != ADJ_OK)
        return status;
    *y = is_pool ? build_pool(f, r, &pool) : build_conv(f, r, &conv);
    adj_error_set(error, adj_graph_status(f->g), "%s", adj_graph_message(f->g));
    return adj_graph_status(f->g);
}

static void expect_zeros(fixture *f, const row *r, adj_node *y)
{
    int64_t n = adj_shape_elems(adj_node_type(y).shape);
    for (int b = 0; adj_backends[b] != NULL; b++) {
        scoped(release) double *v = evaluate(f, y, adj_backends[b]->name); /* read into NaN */
        for (int64_t i = 0; i < n; i++)
            cr_assert_eq(v[i], 0, "%s on %s: element %d is %g", r->source, adj_backends[b]->name,
                         (int)i, v[i]);
    }
}

/* expected 0: ADJ_EARG or ADJ_ESHAPE. */
static void expect_row(const row *r, adj_status expected)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_error error = {0};
    adj_node *y;
    const adj_status status = call(&f, r, &y, &error);
    if (r->words == NULL) {
        cr_assert_not_null(y, "%s: %s", r->source, error.message);
        expect_zeros(&f, r, y);
        return;
    }
    cr_assert_null(y, "%s was accepted", r->source);
    cr_assert(expected != ADJ_OK ? status == expected : status == ADJ_EARG || status == ADJ_ESHAPE,
              "%s: %s", r->source, adj_status_name(status));
    expect_words(error.message, r->words);
}

Test(bad_inputs, rows)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(&rows[i], ADJ_OK);
}

Test(bad_inputs, pools)
{
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        expect_row(&(row){pools[i].attrs, pools[i].op, pools[i].input, "", "", pools[i].attrs,
                          pools[i].words},
                   pools[i].status);
}

/* Operands that are not there: nothing is dereferenced, nothing recorded. */
Test(bad_inputs, null_operands)
{
    adj_shape four = {4, {1, 1, 1, 1}};
    adj_pool pool = {.ksize = {1, 1, 1, 1}};
    cr_assert_null(adj_conv2d(NULL, NULL, NULL));
    cr_assert_null(adj_conv2d_backprop_input(four, NULL, NULL, NULL));
    cr_assert_null(adj_conv2d_backprop_filter(NULL, four, NULL, NULL));
    cr_assert_null(adj_depthwise_conv2d_native(NULL, NULL, NULL));
    cr_assert_null(adj_depthwise_conv2d_native_backprop_input(four, NULL, NULL, NULL));
    cr_assert_null(adj_depthwise_conv2d_native_backprop_filter(NULL, four, NULL, NULL));
    cr_assert_null(adj_conv2d_transpose(NULL, NULL, four, NULL));
    cr_assert_null(adj_separable_conv2d(NULL, NULL, NULL, NULL));
    cr_assert_null(adj_max_pool(NULL, &pool));
    cr_assert_null(adj_max_pool_grad(NULL, NULL, NULL, &pool));
    cr_assert_null(adj_avg_pool_grad(four, NULL, &pool));
}

/* The struct's own ways to be wrong, which no list can express. */
Test(bad_inputs, attributes)
{
    static const struct {
        adj_conv a;
        const char *word;
    } wrong[] = {
        {{.stride = {1, 0, 1, 1}}, "strides"},
        {{.stride = {1, 2, 2, 0}}, "strides"},
        {{.dilation = {1, 1, 0, 1}}, "dilations"},
        {{.dilation = {2, 1, 1, 1}}, "dilations"},
        {{.stride = {1, (int64_t)INT32_MAX + 1, 1, 1}}, "strides"},
        {{.padding = (adj_padding)7}, "padding"},
        {{.format = (adj_format)-1}, "data_format"},
        {{.pad = {{0, 0}, {1, 0}}, .padding = ADJ_SAME}, "explicit_paddings"},
        {{.pad = {{0, 0}, {-1, 0}}, .padding = ADJ_EXPLICIT}, "explicit_paddings"},
        {{.pad = {{0, 1}}, .padding = ADJ_EXPLICIT}, "explicit_paddings"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int depthwise = 0; depthwise < 2; depthwise++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = adj_input(f.g, "x", ADJ_F32, (adj_shape){4, {1, 4, 4, 2}});
            adj_node *w = adj_input(f.g, "w", ADJ_F32, (adj_shape){4, {2, 2, 2, 2}});
            if (depthwise)
                expect_refusal(&f, adj_depthwise_conv2d_native(x, w, &wrong[i].a), ADJ_EARG,
                               "depthwise_conv2d_native:|%s", wrong[i].word);
            else
                expect_refusal(&f, adj_conv2d(x, w, &wrong[i].a), ADJ_EARG, "conv2d:|%s",
                               wrong[i].word);
        }
}

Test(bad_inputs, dtypes)
{
    for (int first = ADJ_F32; first <= ADJ_I32; first++)
        for (int second = ADJ_F32; second <= ADJ_I32; second++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = adj_input(f.g, "x", (adj_dtype)first, (adj_shape){4, {1, 4, 4, 2}});
            adj_node *w = adj_input(f.g, "w", (adj_dtype)second, (adj_shape){4, {2, 2, 2, 2}});
            adj_node *y = adj_conv2d(x, w, NULL);
            if (first == second && first != ADJ_I32)
                cr_assert_not_null(y);
            else
                expect_refusal(&f, y, ADJ_EDTYPE, "conv2d:");
        }
}

Test(bad_inputs, long_lists)
{
    adj_shape shape;
    int64_t seven[7] = {1, 1, 1, 1, 1, 1, 1};
    cr_assert_eq(adj_shape_from_list(7, seven, &shape), ADJ_ESHAPE);
    cr_assert_eq(adj_shape_from_list(-1, seven, &shape), ADJ_EARG);
    cr_assert_eq(adj_shape_from_list(1, NULL, &shape), ADJ_EARG);
    cr_assert_eq(adj_shape_from_list(1, seven, NULL), ADJ_EARG);
    cr_assert_eq(adj_shape_from_list(6, seven, &shape), ADJ_OK);
    cr_assert_eq(shape.rank, 6);
}

/* Attribute lists, or the struct to fill, that are not there. */
Test(bad_inputs, null_lists)
{
    adj_error error;
    const adj_attr_lists lists = {.padding = "VALID"};
    adj_conv conv;
    adj_pool pool;
    cr_assert_eq(adj_conv_from_attrs(NULL, &conv, &error), ADJ_EARG);
    cr_assert_str_eq(error.message, "adj_conv_from_attrs: lists is NULL");
    cr_assert_eq(adj_conv_from_attrs(&lists, NULL, NULL), ADJ_EARG);
    cr_assert_eq(adj_pool_from_attrs(NULL, &pool, NULL), ADJ_EARG);
    cr_assert_eq(adj_pool_from_attrs(&lists, NULL, &error), ADJ_EARG);
    cr_assert_str_eq(error.message, "adj_pool_from_attrs: a is NULL");
}
