/* emitted.h - nets written as C, compiled and loaded; and the same nets in float64 on naive. */
#ifndef TESTS_EMITTED_H
#define TESTS_EMITTED_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_emit.h"
#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "tests/plan.h"
#include "tests/temporary.h"

#define STRICT                                                                                     \
    "-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Wdouble-promotion "                           \
    "-Wunsuffixed-float-constants -Wno-unknown-warning-option -Werror"

/* A net with the output y of the input x. */
typedef struct {
    adj_graph *g;
    adj_node *x, *y;
    adj_exec *e;
} net;

/* Adds a net to a graph: x has the type. */
typedef adj_node *build_net(adj_graph *g, adj_dtype dtype, const void *user);

static inline void net_free(net *n)
{
    adj_exec_free(n->e);
    adj_graph_free(n->g);
}

/* A net on naive whose parameters all differ from 0 and from each other; the same numbers in f64.
 */
static inline net net_new(build_net *build, adj_dtype dtype, const void *user)
{
    net n = {.g = adj_graph_new()};
    n.y = build(n.g, dtype, user);
    cr_assert_not_null(n.y, "%s", adj_graph_message(n.g));
    for (int i = 0; i < adj_graph_node_count(n.g); i++)
        if (strcmp(adj_node_op(adj_graph_node_at(n.g, i)), "input") == 0)
            n.x = adj_graph_node_at(n.g, i);
    n.e = plan_of(n.g, &(adj_exec_opts){.n_fetch = 1, .fetch = &n.y, .backend = "naive"});
    for (int i = 0; i < adj_exec_param_count(n.e); i++) {
        adj_node *p = adj_exec_param_at(n.e, i);
        const adj_type t = adj_node_type(p);
        const int64_t elems = adj_shape_elems(t.shape);
        const double fan = (double)elems / (double)t.shape.dim[t.shape.rank - 1];
        void *data;
        cr_assert_eq(adj_set_in_place(n.e, p, &data), ADJ_OK);
        for (int64_t k = 0; k < elems; k++) {
            const int is_positive = fan <= 2; /* gamma, variance */
            const double spread = (double)((k * 37 + i * 11) % 101) / 101 - 0.4;
            const float v = (float)(is_positive ? 0.7 + 0.5 * spread : 2.5 * spread / sqrt(fan));
            if (dtype == ADJ_F64)
                ((double *)data)[k] = (double)v;
            else
                ((float *)data)[k] = v;
        }
    }
    return n;
}

static inline float input_at(int64_t i, int step)
{
    return (float)((i * 13 + i / 29 + step * 5) % 37) / 16 - 1;
}

/* Returns the output of a net of float64 for the test's input, to be freed; frees the net. */
static inline double *run_once(net *n)
{
    double *x, *y = malloc(adj_type_bytes(adj_node_type(n->y)));
    cr_assert_eq(adj_set_in_place(n->e, n->x, (void **)&x), ADJ_OK);
    for (int64_t i = 0; i < adj_shape_elems(adj_node_type(n->x).shape); i++)
        x[i] = (double)input_at(i, 0);
    cr_assert_eq(adj_run(n->e), ADJ_OK, "%s", adj_exec_message(n->e));
    cr_assert_eq(adj_get(n->e, n->y, y, adj_type_bytes(adj_node_type(n->y))), ADJ_OK);
    net_free(n);
    return y;
}

static inline double *reference_of(build_net *build, const void *user)
{
    net n = net_new(build, ADJ_F64, user);
    return run_once(&n);
}

/* Writes a net to FOLDER/NAME.c. */
static inline void emit_to(const char *folder, const char *name, const net *n,
                           const adj_emit_opts *o)
{
    char path[160];
    adj_error error = {0};
    snprintf(path, sizeof path, "%s/%s.c", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f, "%s", path);
    const adj_status status = adj_emit(n->e, n->y, o, f, &error);
    fclose(f);
    cr_assert_eq(status, ADJ_OK, "%s: %s", name, error.message);
}

/* Runs a command in the folder; fails the test unless its exit status is 0. */
static inline void shell(const char *folder, const char *command)
{
    char text[1024];
    snprintf(text, sizeof text, "cd %s && { %s; } >log 2>&1 || { head -c 3000 log >&2; exit 1; }",
             folder, command);
    cr_assert_eq(system(text), 0, "%s", command); /* NOLINT(cert-env33-c) */
}

/* Returns what is behind a text in a file of the folder, until the next call, or NULL. */
static inline const char *behind_text(const char *folder, const char *name, const char *text)
{
    static char line[512];
    const char *found = NULL;
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    while (found == NULL && fgets(line, sizeof line, f) != NULL)
        found = strstr(line, text);
    fclose(f);
    return found != NULL ? found + strlen(text) : NULL;
}

/* The number behind a text in a file of the folder; 0 if it is not there. */
static inline size_t number_in(const char *folder, const char *name, const char *text)
{
    const char *number = behind_text(folder, name, text);
    return number != NULL ? strtoul(number, NULL, 10) : 0;
}

/* True if a line of the folder's net.c contains the text. */
static inline int has_text(const temporary *folder, const char *text)
{
    return behind_text(folder->s, "net.c", text) != NULL;
}

/* Loads FOLDER/NAME.so. */
static inline void *library_of(const char *folder, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    return library;
}

/* Returns a function or an array of the library. */
static inline void *symbol_of(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    cr_assert_not_null(symbol, "%s", name);
    return symbol;
}

/* A net as C in a folder of its own, net.c, which is compiled and loaded. */
typedef struct {
    temporary folder;
    void *library;
    int (*predict)(const float *, float *);
} compiled;

static inline compiled compile_net(const net *n, const adj_emit_opts *o, const char *flags)
{
    char command[256];
    compiled c = {.folder = temporary_folder()};
    emit_to(c.folder.s, "net", n, o);
    snprintf(command, sizeof command, "cc " STRICT " %s -shared -fPIC net.c -o net.so -lm", flags);
    shell(c.folder.s, command);
    c.library = library_of(c.folder.s, "net");
    *(void **)&c.predict = symbol_of(c.library, "net_predict");
    return c;
}

static inline void compiled_free(compiled *c)
{
    dlclose(c->library);
    temporary_remove(&c->folder);
}

/* The largest difference of n results, relative to the largest expected one; NaN stays. */
static inline double error_of(int64_t n, const float y[], const double want[])
{
    double error = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double e = fabs((double)y[i] - want[i]);
        error = e <= error || isnan(error) ? error : e;
        largest = fmax(largest, fabs(want[i]));
    }
    cr_assert_gt(largest, 1e-6, "all results are 0");
    return error / largest;
}

/* Compares the compiled net's output with the reference, both relative to the largest result. */
static inline void expect_output(const compiled *c, const char *name, const net *n,
                                 const double want[], double tolerance)
{
    const int64_t n_x = adj_shape_elems(adj_node_type(n->x).shape);
    const int64_t n_y = adj_shape_elems(adj_node_type(n->y).shape);
    scoped(release) float *x = malloc((size_t)n_x * sizeof *x);
    scoped(release) float *y = malloc((size_t)n_y * sizeof *y);
    for (int64_t i = 0; i < n_x; i++)
        x[i] = input_at(i, 0);
    cr_assert_eq(c->predict(x, y), 0);
    const double error = error_of(n_y, y, want);
    cr_assert_leq(error, tolerance, "%s: error %.3g", name, error);
}

/* A built-in model, named by user, for two images. */
static inline adj_node *build_pair(adj_graph *g, adj_dtype dtype, const void *user)
{
    adj_model_opts o = {.batch = 2, .dtype = dtype};
    return adj_model_logits(g, adj_model_find(user, &o), &o);
}

#endif
