/* run_cases.c - runs ONNX models on given inputs and writes their outputs, for tests/onnx/nodes.py.
 *
 * Each line of standard input is MODEL INPUTS OUTPUTS, the last two safetensors files. A line of
 * standard output says for each "ok" with the number of inputs that had to be known while loading,
 * or the message.
 *
 * With the argument --gradients the models are imported in f64 instead. The gradient of a weighted
 * sum of the outputs is compared with differences at the given inputs, element by element, and the
 * nodes are checked by adj_gradcheck, whose verdict the line then has after "ok". For each float
 * input follows NAME:ELEMENTS:KINKS:WRONG:ERROR: numbers of elements, of those where the one-sided
 * slopes differ, and of those that are wrong; and the largest error. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "adjoint_ext.h"
#include "adjoint_onnx.h"

enum { MAX_TENSORS = 64, MAX_ELEMS = 128 /* a leaf's; beyond it every nth is compared */ };

typedef struct {
    int gradients; /* 1: by --gradients */
    adj_graph *g;
    adj_onnx_net *net;
    adj_exec *e;
    adj_error error;
} running;

static int is_integer(const adj_tensor *t)
{
    return t->elem != ADJ_ELEM_F32 && t->elem != ADJ_ELEM_F64 && t->elem != ADJ_ELEM_F16 &&
           t->elem != ADJ_ELEM_BF16 && t->elem != ADJ_ELEM_BOOL;
}

/* Loads with the inputs known that level asks for: 0 none, 1 integers, 2 all (for gradients
 * integers and float lists, such as scales), 3 all but the first, for training. */
static int load(running *r, const char *path, const adj_tensors *inputs, int level, int *n_known)
{
    adj_tensor known[MAX_TENSORS];
    *n_known = 0;
    for (int i = 0; i < inputs->n && i < MAX_TENSORS; i++) {
        const adj_tensor t = inputs->tensor[i];
        if ((level == 1 && is_integer(&t)) || (level == 3 && i > 0) ||
            (level == 2 && (!r->gradients || is_integer(&t) || t.shape.rank <= 1)))
            known[(*n_known)++] = t;
    }
    const adj_onnx_opts o = {.known = known,
                             .n_known = *n_known,
                             .dtype = r->gradients ? ADJ_F64 : ADJ_F32,
                             .training = level == 3};
    r->g = adj_graph_new();
    return adj_onnx_load(r->g, path, &o, &r->net, &r->error) == ADJ_OK;
}

static int set_input(running *r, const adj_tensors *inputs, adj_node *leaf)
{
    const int found = adj_tensors_find(inputs, adj_node_name(leaf));
    const adj_type type = adj_node_type(leaf);
    const int64_t n = adj_shape_elems(type.shape);
    if (found < 0 || adj_shape_elems(inputs->tensor[found].shape) != n)
        return 0;
    void *data = malloc(adj_type_bytes(type) + 1);
    for (int64_t i = 0; i < n; i++)
        adj_store(type.dtype, data, i, adj_tensor_value(&inputs->tensor[found], i));
    const int ok = adj_set(r->e, leaf, data, adj_type_bytes(type)) == ADJ_OK;
    free(data);
    return ok;
}

static int start(running *r, const adj_tensors *inputs, int n_fetch, adj_node *const fetch[])
{
    const adj_exec_opts o = {.n_fetch = n_fetch, .fetch = fetch, .threads = 1};
    if (adj_exec_new(r->g, &o, &r->e) != ADJ_OK)
        return 0;
    for (int i = 0; i < r->net->n_input; i++)
        if (!set_input(r, inputs, r->net->input[i])) {
            snprintf(r->error.message, sizeof r->error.message, "input %s does not fit",
                     adj_node_name(r->net->input[i]));
            return 0;
        }
    return adj_run(r->e) == ADJ_OK;
}

static int run(running *r, const adj_tensors *inputs)
{
    return start(r, inputs, r->net->n_output, r->net->output);
}

static int write(running *r, const char *path)
{
    adj_tensor out[MAX_TENSORS];
    char name[MAX_TENSORS][8];
    const int n = r->net->n_output;
    for (int i = 0; i < n && i < MAX_TENSORS; i++) {
        const adj_type t = adj_node_type(r->net->output[i]);
        snprintf(name[i], sizeof name[i], "%d", i);
        out[i] =
            (adj_tensor){name[i], (adj_elem)t.dtype, t.shape, adj_data(r->e, r->net->output[i])};
        if (out[i].data == NULL)
            return 0;
    }
    return adj_tensors_write(path, n, out, 0, NULL, &r->error) == ADJ_OK;
}

static void close_run(running *r)
{
    adj_exec_free(r->e);
    adj_onnx_free(r->net);
    adj_graph_free(r->g);
    r->e = NULL;
    r->net = NULL;
    r->g = NULL;
}

/* ---- gradients ---- */

typedef struct {
    int64_t elems, kinks, wrong;
    double worst;
} slopes;

/* Returns the sum of all float outputs, each element with a weight of its own; NULL if there is
 * none. */
static adj_node *weighted_sum(running *r)
{
    const adj_axes all = {.n = ADJ_ALL};
    adj_node *sum = NULL;
    for (int i = 0; i < r->net->n_output; i++) {
        adj_node *y = r->net->output[i];
        const adj_type t = adj_node_type(y);
        const int64_t n = adj_shape_elems(t.shape);
        if (t.dtype != ADJ_F64)
            continue;
        double *w = malloc((size_t)(n + 1) * sizeof *w);
        for (int64_t k = 0; k < n; k++)
            w[k] = cos((double)(k + 1));
        adj_node *part = adj_reduce_sum(adj_mul(y, adj_const(r->g, ADJ_F64, t.shape, w)), all);
        sum = sum != NULL ? adj_add(sum, part) : part;
        free(w);
    }
    return sum;
}

/* Lists the float inputs and parameters. */
static int leaves_of(const running *r, adj_node *leaf[])
{
    int n = 0;
    for (int i = 0; i < r->net->n_input + r->net->n_param; i++) {
        adj_node *x = i < r->net->n_input ? r->net->input[i] : r->net->param[i - r->net->n_input];
        if (adj_node_type(x).dtype == ADJ_F64 && !adj_node_is_state(x) && n < MAX_TENSORS)
            leaf[n++] = x;
    }
    return n;
}

/* Returns the sum with element k of x moved by h. */
static double moved(running *r, adj_node *sum, adj_node *leaf, double *x, int64_t k, double h)
{
    const double before = x[k];
    double y = NAN;
    x[k] += h;
    if (adj_set(r->e, leaf, x, adj_type_bytes(adj_node_type(leaf))) == ADJ_OK &&
        adj_run(r->e) == ADJ_OK)
        (void)adj_get(r->e, sum, &y, sizeof y);
    x[k] = before;
    return y;
}

/* Compares a leaf's gradient with differences. Where the one-sided slopes differ it has to lie
 * between them. */
static int compare_slopes(running *r, adj_node *sum, adj_node *leaf, adj_node *grad, slopes *s)
{
    const adj_type t = adj_node_type(leaf);
    const int64_t n = adj_shape_elems(t.shape), step = n / MAX_ELEMS + 1;
    const size_t bytes = adj_type_bytes(t);
    double *x = malloc(bytes + 1), *g = malloc(bytes + 1), middle;
    int ok = adj_get(r->e, leaf, x, bytes) == ADJ_OK && adj_get(r->e, grad, g, bytes) == ADJ_OK &&
             adj_get(r->e, sum, &middle, sizeof middle) == ADJ_OK;
    for (int64_t k = 0; ok && isfinite(middle) && k < n; k += step) {
        const double h = x[k] + 1e-6 * fmin(10, fmax(1, fabs(x[k]))) - x[k]; /* without rounding */
        const double right = (moved(r, sum, leaf, x, k, h) - middle) / h;
        const double left = (middle - moved(r, sum, leaf, x, k, -h)) / h;
        const double size = fmax(1, fmax(fabs(left), fabs(right)));
        const double tolerance = 1e-6 * size + 1e-15 * fabs(middle) / h;
        const int is_kink = fabs(right - left) > 1e-3 * size;
        const double low = fmin(left, right), high = fmax(left, right);
        const double error =
            !is_kink ? fabs(g[k] - (left + right) / 2) : fmax(0, fmax(low - g[k], g[k] - high));
        s->elems++;
        s->kinks +=
            is_kink || !isfinite(left) || !isfinite(right); /* or an end of the op's domain */
        if (!isfinite(left) || !isfinite(right))
            continue;
        s->wrong += !(error <= tolerance);
        s->worst = fmax(s->worst, error / size);
    }
    ok = ok && adj_set(r->e, leaf, x, bytes) == ADJ_OK && adj_run(r->e) == ADJ_OK;
    free(x);
    free(g);
    return ok;
}

/* Checks the gradients of a net that has run; its line is in text. */
static int check_gradients(running *r, const adj_tensors *inputs, char text[])
{
    adj_node *leaf[MAX_TENSORS], *fetch[MAX_TENSORS + 1] = {NULL};
    const int n = leaves_of(r, leaf);
    adj_node *sum = weighted_sum(r);
    if (n == 0 || sum == NULL) {
        snprintf(text, ADJ_MESSAGE, "none");
        return adj_graph_status(r->g) == ADJ_OK;
    }
    adj_exec_free(r->e);
    r->e = NULL;
    if (adj_grad(sum, NULL, n, leaf, fetch + 1) != ADJ_OK)
        return 0;
    fetch[0] = sum;
    int ok = start(r, inputs, n + 1, fetch);
    const adj_gradcheck_report *report = NULL;
    const adj_gradcheck_opts one = {.exec = {.threads = 1}};
    if (ok && adj_gradcheck(sum, &one, &report) != ADJ_OK)
        ok = !snprintf(r->error.message, sizeof r->error.message, "%s", report->message);
    if (ok)
        snprintf(text, ADJ_MESSAGE, "%s", adj_gradcheck_result_name(report->verdict));
    adj_gradcheck_free(report);
    for (int i = 0; ok && i < n; i++) {
        slopes s = {0};
        const size_t used = strlen(text);
        ok = compare_slopes(r, sum, leaf[i], fetch[i + 1], &s);
        snprintf(text + used, ADJ_MESSAGE - used, " %s:%lld:%lld:%lld:%.1e", adj_node_name(leaf[i]),
                 (long long)s.elems, (long long)s.kinks, (long long)s.wrong, s.worst);
    }
    return ok;
}

/* ---- cases ---- */

static void run_case(const char *model, const char *in, const char *out, int gradients)
{
    adj_tensors *inputs = NULL;
    char first[ADJ_MESSAGE] = "", text[ADJ_MESSAGE] = "";
    if (adj_tensors_read(in, &inputs) != ADJ_OK) {
        printf("inputs: %s\n", inputs->message);
        return;
    }
    for (int level = 0; level < (gradients ? 3 : 4); level++) {
        running r = {.gradients = gradients};
        int known = 0;
        const int ok = load(&r, model, inputs, level, &known) && run(&r, inputs) &&
                       (gradients ? check_gradients(&r, inputs, text) : write(&r, out));
        if (!ok && first[0] == '\0')
            snprintf(first, sizeof first, "%s",
                     r.error.message[0] != '\0' ? r.error.message
                     : r.e != NULL              ? adj_exec_message(r.e)
                                                : adj_graph_message(r.g));
        close_run(&r);
        if (ok) {
            printf("ok %d %d %s\n", level, known, text);
            first[0] = '\0';
            break;
        }
    }
    for (char *c = first; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    if (first[0] != '\0')
        printf("failed %s\n", first);
    adj_tensors_free(inputs);
}

int main(int n, char **args)
{
    const int gradients = n > 1 && strcmp(args[1], "--gradients") == 0;
    char model[1024], in[1024], out[1024];
    while (scanf("%1023s %1023s %1023s", model, in, out) == 3) {
        run_case(model, in, out, gradients);
        fflush(stdout);
    }
    return 0;
}
