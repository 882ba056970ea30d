/* conformance_case.c - reading one case, running it, judging its results; see conformance.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance.h"
#include "graph/op.h"
#include "ops/attr_lists.h"

enum { MAX_LIST = 64 };

int case_malformed(conformance_case *c, const char *problem, const char *name)
{
    if (!c->malformed)
        snprintf(c->text, sizeof c->text, "malformed case: %s: %s", problem, name);
    c->malformed = 1;
    return 0;
}

static void refuse(conformance_case *c, adj_status status, const char *why)
{
    if (c->refused != ADJ_OK)
        return;
    c->refused = status;
    snprintf(c->text, sizeof c->text, "refused (%s): %s", adj_status_name(status), why);
}

/* A flat list of integers, or one of lists (explicit_paddings are pairs); -1: it is neither. */
static int read_integers(const json_t *json, int64_t list[MAX_LIST], int n)
{
    if (json_is_integer(json)) {
        if (n == MAX_LIST)
            return -1;
        list[n] = json_integer_value(json);
        return n + 1;
    }
    if (!json_is_array(json))
        return -1;
    for (size_t i = 0; i < json_array_size(json) && n >= 0; i++)
        n = read_integers(json_array_get(json, i), list, n);
    return n;
}

static adj_shape read_shape(conformance_case *c, const json_t *json, const char *name)
{
    int64_t list[MAX_LIST];
    adj_shape shape = {0};
    int n = json_is_array(json) ? read_integers(json, list, 0) : -1;
    if (n < 0) {
        case_malformed(c, "no list of integers", name);
        return shape;
    }
    adj_status status = adj_shape_from_list(n, list, &shape);
    if (status != ADJ_OK)
        refuse(c, status, name);
    return shape;
}

adj_node *case_tensor(conformance_case *c, const char *name)
{
    const json_t *json = case_read(c, "inputs", name);
    const json_t *word = json_object_get(json_object_get(c->json, "dtypes"), name);
    adj_dtype dtype;
    if (word == NULL)
        word = json_object_get(c->json, "dtype");
    if (!json_is_object(json) || c->n_tensor == CASE_TENSORS ||
        adj_dtype_from_name(json_string_value(word), &dtype) != ADJ_OK) {
        case_malformed(c, "no tensor", name);
        return NULL;
    }
    adj_shape shape = read_shape(c, json_object_get(json, "shape"), name);
    if (c->malformed || c->refused != ADJ_OK)
        return NULL;
    adj_node *x = adj_input(c->g, name, dtype, shape);
    if (x == NULL)
        return NULL;
    c->tensor[c->n_tensor] = x;
    c->tensor_name[c->n_tensor] = name;
    c->tensor_data[c->n_tensor++] = json_object_get(json, "data");
    return x;
}

adj_shape case_sizes(conformance_case *c, const char *name)
{
    return read_shape(c, case_read(c, "inputs", name), name);
}

typedef struct {
    int64_t ksize[MAX_LIST], strides[MAX_LIST], dilations[MAX_LIST], explicit_paddings[MAX_LIST];
    adj_attr_lists lists;
} case_attrs;

/* An absent list stays NULL. */
static int read_attr(conformance_case *c, const char *name, int64_t numbers[MAX_LIST],
                     const int64_t **list, int *n)
{
    const json_t *json = case_read(c, "attrs", name);
    *list = NULL;
    *n = 0;
    if (json == NULL || json_is_null(json))
        return 1;
    *list = numbers;
    *n = json_is_array(json) ? read_integers(json, numbers, 0) : -1;
    return *n >= 0 ? 1 : case_malformed(c, "no list of integers", name);
}

/* Reads the attributes common to convolutions and pools. */
static int read_attrs(conformance_case *c, case_attrs *a)
{
    adj_attr_lists *l = &a->lists;
    l->padding = json_string_value(case_read(c, "attrs", "padding"));
    l->data_format = json_string_value(case_read(c, "attrs", "data_format"));
    return read_attr(c, "strides", a->strides, &l->strides, &l->n_strides) &&
           read_attr(c, "dilations", a->dilations, &l->dilations, &l->n_dilations) &&
           read_attr(c, "explicit_paddings", a->explicit_paddings, &l->explicit_paddings,
                     &l->n_explicit_paddings);
}

int case_conv(conformance_case *c, adj_conv *a)
{
    case_attrs attrs = {0};
    adj_error error = {0};
    if (!read_attrs(c, &attrs))
        return 0;
    adj_status status = adj_conv_from_attrs(&attrs.lists, a, &error);
    if (status != ADJ_OK)
        refuse(c, status, error.message);
    return status == ADJ_OK;
}

int case_pool(conformance_case *c, adj_pool *a)
{
    case_attrs attrs = {0};
    adj_attr_lists *l = &attrs.lists;
    adj_error error = {0};
    if (!read_attrs(c, &attrs) || !read_attr(c, "ksize", attrs.ksize, &l->ksize, &l->n_ksize))
        return 0;
    adj_status status = adj_pool_from_attrs(&attrs.lists, a, &error);
    if (status != ADJ_OK)
        refuse(c, status, error.message);
    return status == ADJ_OK;
}

/* data_format alone, read by the library as part of a convolution's attributes. */
int case_format(conformance_case *c, adj_format *format)
{
    const json_t *word = case_read(c, "attrs", "data_format");
    adj_attr_lists lists = {.padding = "VALID", .data_format = json_string_value(word)};
    adj_error error = {0};
    adj_conv a;
    adj_status status = adj_conv_from_attrs(&lists, &a, &error);
    if (status != ADJ_OK)
        refuse(c, status, error.message);
    *format = a.format;
    return status == ADJ_OK;
}

void case_add_result(conformance_case *c, adj_node *node, const json_t *want, const char *label)
{
    if (c->n_result < CASE_RESULTS)
        c->result[c->n_result++] = (case_result){.node = node, .want = want, .label = label};
}

/* ---- running ---- */

static double number(const json_t *json)
{
    const char *word = json_string_value(json);
    if (word == NULL)
        return json_number_value(json);
    return strcmp(word, "inf") == 0 ? INFINITY : strcmp(word, "-inf") == 0 ? -INFINITY : NAN;
}

static int set_tensor(conformance_case *c, adj_exec *e, int i)
{
    adj_type t = adj_node_type(c->tensor[i]);
    int64_t n = adj_shape_elems(t.shape);
    size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
    if (!json_is_array(c->tensor_data[i]) || (int64_t)json_array_size(c->tensor_data[i]) != n)
        return case_malformed(c, "data and shape differ", c->tensor_name[i]);
    char *data = malloc(bytes + 1);
    for (int64_t k = 0; k < n; k++)
        adj_store(t.dtype, data, k, number(json_array_get(c->tensor_data[i], (size_t)k)));
    adj_set(e, c->tensor[i], data, bytes);
    free(data);
    return 1;
}

/* Elements of a fetched node, read into memory full of NaN; the caller frees. */
static double *fetch(adj_exec *e, adj_node *y)
{
    adj_type t = adj_node_type(y);
    int64_t n = adj_shape_elems(t.shape);
    size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
    char *data = malloc(bytes + 1);
    double *v = malloc((size_t)(n + 1) * sizeof *v);
    memset(data, 0xff, bytes);
    if (adj_get(e, y, data, bytes) != ADJ_OK)
        memset(data, 0xff, bytes);
    adj_convert(t.dtype, data, ADJ_F64, v, n);
    free(data);
    return v;
}

static int same_shape(adj_shape a, const json_t *shape)
{
    if (!json_is_array(shape) || (int64_t)json_array_size(shape) != a.rank)
        return 0;
    for (int i = 0; i < a.rank; i++)
        if (json_integer_value(json_array_get(shape, (size_t)i)) != a.dim[i])
            return 0;
    return 1;
}

/* How far |got - want| exceeds the tolerance; <= 0: not at all. */
static double excess(const conformance_case *c, double got, double want)
{
    double rtol = json_number_value(json_object_get(c->json, "rtol"));
    double atol = json_number_value(json_object_get(c->json, "atol"));
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    double over = fabs(got - want) - (atol + rtol * fabs(want));
    return isnan(over) ? INFINITY : over;
}

static int compare(conformance_case *c, const case_result *r, const json_t *want, const double *got)
{
    adj_shape shape = adj_node_type(r->node).shape;
    const json_t *data = json_object_get(want, "data");
    int64_t n = adj_shape_elems(shape), worst = -1, wrong = 0;
    double max = 0;

    if (!same_shape(shape, json_object_get(want, "shape")) || (int64_t)json_array_size(data) != n) {
        char *text = json_dumps(json_object_get(want, "shape"), JSON_ENCODE_ANY);
        snprintf(c->text, sizeof c->text, "%s: got shape %s, want %s", r->label,
                 adj_shape_text(shape).s, text != NULL ? text : "none");
        free(text);
        return 0;
    }
    for (int64_t i = 0; i < n; i++) {
        double over = excess(c, got[i], number(json_array_get(data, (size_t)i)));
        wrong += over > 0;
        if (over > max) {
            max = over;
            worst = i;
        }
    }
    if (wrong > 0)
        snprintf(c->text, sizeof c->text, "%s: %ld of %ld wrong, worst at %ld: got %.9g, want %.9g",
                 r->label, (long)wrong, (long)n, (long)worst, got[worst],
                 number(json_array_get(data, (size_t)worst)));
    return wrong == 0;
}

/* Any of expected and alt_expected will do; without them, having run is enough. */
static int judge_result(conformance_case *c, const case_result *r, adj_exec *e)
{
    const json_t *other = json_object_get(c->json, "alt_expected");
    double *got = fetch(e, r->node);
    int passed = r->want == NULL && other == NULL;
    if (!passed && r->want != NULL)
        passed = compare(c, r, r->want, got);
    if (!passed && json_is_object(other))
        passed = compare(c, r, other, got);
    free(got);
    if (!passed && r->other != NULL) {
        got = fetch(e, r->other);
        passed = compare(c, r, r->want, got);
        free(got);
    }
    return passed;
}

/* Runs what was built; 1: every result is right. A refusal is noted in c. */
static int execute(conformance_case *c, const adj_exec_opts *how)
{
    adj_exec *e = NULL;
    adj_node *fetches[2 * CASE_RESULTS];
    adj_exec_opts opts = *how;
    opts.n_fetch = 0;
    opts.fetch = fetches;
    for (int i = 0; i < c->n_result; i++) {
        fetches[opts.n_fetch++] = c->result[i].node;
        if (c->result[i].other != NULL)
            fetches[opts.n_fetch++] = c->result[i].other;
    }
    adj_status status = adj_exec_new(c->g, &opts, &e);
    int passed = status == ADJ_OK;
    if (passed) {
        adj_exec_info info = adj_exec_stats(e);
        c->steps = info.steps;
        c->naive_steps = info.naive_steps;
    }
    for (int i = 0; i < c->n_tensor && passed; i++)
        passed = set_tensor(c, e, i);
    if (passed) {
        status = adj_run(e);
        passed = status == ADJ_OK;
    }
    for (int i = 0; i < c->n_result && passed; i++)
        passed = judge_result(c, &c->result[i], e);
    if (status == ADJ_EARG || status == ADJ_ESHAPE || status == ADJ_EDTYPE)
        refuse(c, status, adj_exec_message(e));
    else if (status != ADJ_OK)
        snprintf(c->text, sizeof c->text, "%s: %s", adj_status_name(status), adj_exec_message(e));
    adj_exec_free(e);
    return passed;
}

/* TensorFlow refuses it, but a library need not. */
static int may_be_accepted(const json_t *json)
{
    const char *scope = json_string_value(json_object_get(json, "scope"));
    return scope != NULL && (strcmp(scope, "kernel-limit") == 0 || strcmp(scope, "cpu-only") == 0);
}

case_verdict case_run(const json_t *json, const adj_exec_opts *how)
{
    conformance_case c = {.json = json,
                          .id = json_string_value(json_object_get(json, "id")),
                          .op = json_string_value(json_object_get(json, "op")),
                          .g = adj_graph_new()};
    const json_t *error = json_object_get(json, "expected_error");
    int passed = 0;

    if (c.op != NULL)
        case_build(&c);
    else
        case_malformed(&c, "no op", "");
    case_check_keys(&c);
    if (adj_graph_status(c.g) != ADJ_OK)
        refuse(&c, adj_graph_status(c.g), adj_graph_message(c.g));
    if (c.n_result == 0 && c.refused == ADJ_OK)
        case_malformed(&c, "nothing expected", "");
    for (int i = 0; i < c.n_result && c.refused == ADJ_OK; i++)
        if (c.result[i].node == NULL)
            case_malformed(&c, "NULL without an error", c.result[i].label);
        else if (!json_is_object(c.result[i].want) && error == NULL &&
                 !json_is_object(json_object_get(json, "alt_expected")))
            case_malformed(&c, "no tensor is expected", c.result[i].label);
    if (!c.malformed && c.refused == ADJ_OK)
        passed = execute(&c, how);
    if (c.refused == ADJ_EARG || c.refused == ADJ_ESHAPE || c.refused == ADJ_EDTYPE)
        passed = error != NULL || json_object_get(json, "alt_expected_error") != NULL;
    else if (error != NULL && !may_be_accepted(json)) {
        if (!c.malformed && c.refused == ADJ_OK)
            snprintf(c.text, sizeof c.text, "accepted (expected an error: %s)",
                     json_string_value(error));
        passed = 0;
    }
    case_verdict v = {passed && !c.malformed, c.steps, c.naive_steps, ""};
    snprintf(v.text, sizeof v.text, "%s", c.text);
    adj_graph_free(c.g);
    return v;
}
