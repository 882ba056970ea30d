/* harness.c - see harness.h. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "harness.h"
#include "graph/op.h"

fixture fixture_new(void)
{
    fixture f = {.g = adj_graph_new()};
    cr_assert_not_null(f.g);
    return f;
}

void fixture_free(fixture *f)
{
    for (int i = 0; i < f->n_in; i++)
        free(f->value[i]);
    adj_graph_free(f->g);
}

void fixture_renew(fixture *f)
{
    fixture_free(f);
    *f = fixture_new();
}

static adj_node *add(fixture *f, adj_dtype dtype, adj_shape shape, double *values)
{
    char name[16];
    cr_assert_lt(f->n_in, FIXTURE_INPUTS);
    snprintf(name, sizeof name, "in%d", f->n_in);
    int64_t n = adj_shape_elems(shape);
    void *rounded = malloc((size_t)n * adj_dtype_size(dtype) + 1); /* as the dtype has it */
    adj_convert(ADJ_F64, values, dtype, rounded, n);
    adj_convert(dtype, rounded, ADJ_F64, values, n);
    free(rounded);
    f->in[f->n_in] = adj_input(f->g, name, dtype, shape);
    f->value[f->n_in] = values;
    cr_assert_not_null(f->in[f->n_in], "%s", adj_graph_message(f->g));
    return f->in[f->n_in++];
}

adj_node *given(fixture *f, adj_dtype dtype, adj_shape shape, const double *values)
{
    int64_t n = adj_shape_elems(shape);
    cr_assert_geq(n, 0);
    double *copy = malloc((size_t)(n > 0 ? n : 1) * sizeof *copy);
    if (n > 0)
        memcpy(copy, values, (size_t)n * sizeof *copy);
    return add(f, dtype, shape, copy);
}

/* The next input's values, malloc'ed. */
static double *draw(const fixture *f, adj_shape shape, double lo, double hi)
{
    int64_t n = adj_shape_elems(shape);
    cr_assert_geq(n, 0);
    double *v = malloc((size_t)(n > 0 ? n : 1) * sizeof *v);
    adj_draw(ADJ_F64, v, n, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = lo, .b = hi}, 1,
             (uint64_t)f->n_in);
    return v;
}

adj_node *given_random(fixture *f, adj_dtype dtype, adj_shape shape, double lo, double hi)
{
    return add(f, dtype, shape, draw(f, shape, lo, hi));
}

adj_node *given_integers(fixture *f, adj_dtype dtype, adj_shape shape, int lo, int hi)
{
    double *v = draw(f, shape, lo, hi + 1);
    for (int64_t i = 0; i < adj_shape_elems(shape); i++)
        v[i] = floor(v[i]);
    return add(f, dtype, shape, v);
}

void set_values(adj_exec *e, const adj_node *leaf, const double *values)
{
    adj_type t = adj_node_type(leaf);
    int64_t n = adj_shape_elems(t.shape);
    size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
    scoped(release) char *data = malloc(bytes + 1);
    adj_convert(ADJ_F64, values, t.dtype, data, n);
    cr_assert_eq(adj_set(e, leaf, data, bytes), ADJ_OK, "%s", adj_exec_message(e));
}

void fixture_set(const fixture *f, adj_exec *e)
{
    for (int i = 0; i < f->n_in; i++)
        set_values(e, f->in[i], f->value[i]);
}

adj_exec *fixture_run(const fixture *f, const adj_exec_opts *o)
{
    adj_exec *e = plan_of(f->g, o);
    fixture_set(f, e);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    return e;
}

double *fixture_get(adj_exec *e, const adj_node *y)
{
    adj_type t = adj_node_type(y);
    int64_t n = adj_shape_elems(t.shape);
    size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
    scoped(release) char *data = malloc(bytes + 1);
    memset(data, 0xff, bytes); /* NaN in every float type */
    cr_assert_eq(adj_get(e, y, data, bytes), ADJ_OK, "%s", adj_exec_message(e));
    double *v = malloc((size_t)(n > 0 ? n : 1) * sizeof *v);
    adj_convert(t.dtype, data, ADJ_F64, v, n);
    return v;
}

double *evaluate_with(fixture *f, adj_node *y, const char *backend, int threads)
{
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = backend, .threads = threads};
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    return fixture_get(e, y);
}

double *evaluate(fixture *f, adj_node *y, const char *backend)
{
    return evaluate_with(f, y, backend, 0);
}

double *evaluate_by(fixture *f, adj_node *y, const char *impl, int threads)
{
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &y,
                             .backend = "direct",
                             .threads = threads,
                             .debug = &(adj_exec_debug){.canaries = 1}};
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    const char *first = adj_exec_step_at(e, 0).impl;
    cr_assert_eq(strncmp(first, impl, strlen(impl)), 0, "it is a %s, not a %s", first, impl);
    return fixture_get(e, y);
}

void expect_close(const double *got, const double *want, int64_t n, double rtol, double atol,
                  const char *label)
{
    int64_t worst = -1, wrong = 0;
    double excess = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((isnan(got[i]) && isnan(want[i])) || got[i] == want[i])
            continue;
        double over = fabs(got[i] - want[i]) - (atol + rtol * fabs(want[i]));
        if (over <= 0)
            continue;
        wrong++;
        if (worst < 0 || !(over <= excess)) {
            worst = i;
            excess = over;
        }
    }
    cr_assert_eq(wrong, 0, "%s: %ld of %ld wrong, worst at %ld: got %.9g, want %.9g", label,
                 (long)wrong, (long)n, (long)worst, got[worst < 0 ? 0 : worst],
                 want[worst < 0 ? 0 : worst]);
}

void expect_same_bits(const double *got, const double *want, int64_t n, const char *label)
{
    for (int64_t i = 0; i < n; i++)
        cr_assert((isnan(got[i]) && isnan(want[i])) || memcmp(&got[i], &want[i], sizeof *got) == 0,
                  "%s: [%ld] is %a, not %a", label, (long)i, got[i], want[i]);
}

double as_stored(adj_dtype dtype, double v)
{
    char stored[8];
    adj_store(dtype, stored, 0, v);
    return adj_load(dtype, stored, 0);
}

void expect_values(fixture *f, adj_node *y, const char *backend, const double *want, double rtol,
                   double atol)
{
    scoped(release) double *got = evaluate(f, y, backend);
    expect_close(got, want, adj_shape_elems(adj_node_type(y).shape), rtol, atol, adj_node_op(y));
}

void expect_exact(fixture *f, adj_node *y, const double *want)
{
    expect_values(f, y, "naive", want, 0, 0);
}

adj_node *gradient_of(adj_node *y, adj_node *dy, adj_node *x)
{
    adj_node *dx;
    cr_assert_eq(adj_grad(y, dy, 1, &x, &dx), ADJ_OK, "%s", adj_graph_message(adj_node_graph(x)));
    return dx;
}

/* <dy, y> with input i's element k moved by delta. */
static double moved(adj_exec *e, fixture *f, adj_node *y, const double *dy, int i, int64_t k,
                    double delta)
{
    double kept = f->value[i][k];
    f->value[i][k] = kept + delta;
    set_values(e, f->in[i], f->value[i]);
    f->value[i][k] = kept;
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    double *v = fixture_get(e, y), sum = 0;
    for (int64_t j = 0; j < adj_shape_elems(adj_node_type(y).shape); j++)
        sum += dy[j] * v[j];
    free(v);
    set_values(e, f->in[i], f->value[i]);
    return sum;
}

void expect_gradient(fixture *f, adj_node *y, double step, double rtol, double atol)
{
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    int n_x = f->n_in;
    adj_node *dy = given_random(f, ADJ_F64, adj_node_type(y).shape, -1, 1), *dx[FIXTURE_INPUTS];
    const double *seed = f->value[n_x];
    cr_assert_eq(adj_grad(y, dy, n_x, f->in, dx), ADJ_OK, "%s", adj_graph_message(f->g));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "naive"};
    scoped(release_exec) adj_exec *forward = fixture_run(f, &o);
    for (int i = 0; i < n_x; i++) {
        adj_type t = adj_node_type(f->in[i]);
        if (t.dtype == ADJ_I32)
            continue;
        int64_t n = adj_shape_elems(t.shape);
        scoped(release) double *numeric = malloc((size_t)(n > 0 ? n : 1) * sizeof *numeric);
        for (int64_t k = 0; k < n; k++)
            numeric[k] =
                (moved(forward, f, y, seed, i, k, step) - moved(forward, f, y, seed, i, k, -step)) /
                (2 * step);
        scoped(release) double *got = evaluate(f, dx[i], "naive");
        char label[64];
        snprintf(label, sizeof label, "gradient of %s wrt input %d", adj_node_op(y), i);
        expect_close(got, numeric, n, rtol, atol, label);
    }
}

void expect_words(const char *message, const char *words)
{
    char text[300], *rest = NULL;
    snprintf(text, sizeof text, "%s", words);
    for (const char *w = strtok_r(text, "|", &rest); w != NULL; w = strtok_r(NULL, "|", &rest))
        cr_assert_not_null(strstr(message, w), "\"%s\" is not in: %s", w, message);
}

void expect_error(const adj_graph *g, adj_status status, const char *words)
{
    cr_assert_eq(adj_graph_status(g), status, "got %s: %s", adj_status_name(adj_graph_status(g)),
                 adj_graph_message(g));
    expect_words(adj_graph_message(g), words);
}

void expect_refusal(fixture *f, const adj_node *y, adj_status status, const char *words, ...)
{
    char text[300];
    va_list args;
    va_start(args, words);
    vsnprintf(text, sizeof text, words, args);
    va_end(args);
    cr_assert_null(y, "\"%s\" is accepted", text);
    expect_error(f->g, status, text);
    fixture_renew(f);
}
