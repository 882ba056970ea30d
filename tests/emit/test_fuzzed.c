/* test_fuzzed.c - random graphs as C: the graph fuzzer's (grow.h), beside the same graphs in f64 on
 * naive.
 *
 *   test_fuzzed [NUMBER [SEED]]     50 nets from seed 1; each further net has the next seed
 *
 * Nets with an op that no C is written for are counted and left out. A result may differ from
 * f64 by a hundred units of its largest element, and by a few times what naive in f32 differs, for
 * sums that cancel. What rounds may also choose otherwise between nearly equal values: a result is
 * not wrong if it is not exact on naive either and leaves that differ by a unit change it as much.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_emit.h"
#include "fuzz/grow.h"
#include "fuzz/must.h"
#include "tests/temporary.h"

enum { USUAL = 50, BATCH = 100, STEPS = 20, REASONS = 200, GRADIENTS = 4, ATTEMPTS = 20 };
enum { UNITS = 128, TIMES_NAIVE = 16, TRIALS = 8 };

/* A graph with the output y of the input x. y is one value, or several one after the other. */
typedef struct {
    adj_graph *g;
    adj_node *x, *y;
    int n_part;
    adj_node *part[MAX_VALUES];
} net;

/* A net that is written as C. */
typedef struct {
    unsigned seed;
    net f32;
    double *want;
    float *naive;
} subject;

/* Reasons why nets are left out, and their numbers. */
typedef struct {
    int n, count[REASONS];
    char why[REASONS][128];
} tally;

static void add_reason(tally *t, const char *why)
{
    int i = 0;
    while (i < t->n && strncmp(t->why[i], why, sizeof t->why[i] - 1) != 0)
        i++;
    if (i == t->n && i < REASONS)
        snprintf(t->why[t->n++], sizeof t->why[0], "%.127s", why);
    if (i < REASONS)
        t->count[i]++;
}

/* ---- the graph ---- */

static int is_kept(const adj_node *n) { return adj_node_is_param(n) || adj_node_is_state(n); }

/* Marks the nodes that depend on one. */
static char *dependents(const adj_graph *g, const adj_node *x)
{
    char *is_dependent = calloc((size_t)adj_graph_node_count(g), 1);
    must(is_dependent != NULL);
    is_dependent[adj_node_id(x)] = 1;
    for (int id = 0; id < adj_graph_node_count(g); id++)
        for (int k = 0; k < adj_node_operand_count(adj_graph_node_at(g, id)); k++)
            is_dependent[id] |=
                is_dependent[adj_node_id(adj_node_operand_at(adj_graph_node_at(g, id), k))];
    return is_dependent;
}

static int has_user(const adj_graph *g, const adj_node *n)
{
    for (int id = adj_node_id(n) + 1; id < adj_graph_node_count(g); id++)
        for (int k = 0; k < adj_node_operand_count(adj_graph_node_at(g, id)); k++)
            if (adj_node_operand_at(adj_graph_node_at(g, id), k) == n)
                return 1;
    return 0;
}

/* Adds the gradients of the sum of a value for the input and some parameters. */
static void add_gradients(garden *t, adj_node *y)
{
    adj_node *leaf[GRADIENTS] = {t->value[0]}, *d[GRADIENTS];
    int n = 1;
    for (int i = 1; i < t->n && n < GRADIENTS; i++)
        if (adj_node_is_param(t->value[i]) && adj_node_type(t->value[i]).dtype == t->dtype)
            leaf[n++] = t->value[i];
    if (adj_node_type(y).shape.rank > 0)
        y = adj_reduce_sum(adj_square(y), (adj_axes){.n = ADJ_ALL});
    if (adj_grad(y, NULL, n, leaf, d) == ADJ_OK)
        for (int i = 0; i < n; i++)
            keep(t, d[i]);
}

/* Makes the output: every value that nothing reads, or the last alone. */
static void choose_output(net *n, const garden *t, int is_single)
{
    adj_node *flat[MAX_VALUES];
    char *is_dependent = dependents(n->g, n->x);
    for (int i = t->n - 1; i > 0 && (!is_single || n->n_part == 0); i--) {
        const adj_type type = adj_node_type(t->value[i]);
        int is_twice = 0;
        for (int k = 0; k < n->n_part; k++)
            is_twice |= n->part[k] == t->value[i];
        if (type.dtype == t->dtype && adj_shape_elems(type.shape) > 0 && !is_twice &&
            is_dependent[adj_node_id(t->value[i])] && (is_single || !has_user(n->g, t->value[i])))
            n->part[n->n_part++] = t->value[i];
    }
    free(is_dependent);
    for (int k = 0; k < n->n_part; k++)
        flat[k] = adj_reshape(n->part[k], (adj_shape){1, {-1}});
    if (n->n_part > 0)
        n->y = is_single ? n->part[0] : adj_concat(n->n_part, flat, 0);
}

static net net_grown(unsigned seed, adj_dtype dtype)
{
    net n = {.g = adj_graph_new()};
    garden t = {.in.seed = (seed * 2654435761U) | 1, .uniform = 1, .dtype = dtype, .g = n.g};
    t.updates = adj_updates_new(n.g);
    const adj_shape image = {
        4, {1 + pick(&t.in, 2), 2 + pick(&t.in, 5), 2 + pick(&t.in, 5), 1 + pick(&t.in, 8)}};
    const int steps = 2 + pick(&t.in, STEPS), has_gradients = pick(&t.in, 3) == 0;
    const int is_single = pick(&t.in, 3) == 0;
    n.x = keep(&t, adj_input(n.g, "x", dtype, image));
    for (int i = 0; i < steps && adj_graph_status(n.g) == ADJ_OK; i++)
        grow(&t);
    if (has_gradients && adj_graph_status(n.g) == ADJ_OK)
        add_gradients(&t, value_of(&t, -1, -1));
    if (adj_graph_status(n.g) == ADJ_OK)
        choose_output(&n, &t, is_single);
    return n;
}

static int are_alike(const net *a, const net *b)
{
    int alike = adj_graph_node_count(a->g) == adj_graph_node_count(b->g);
    for (int id = 0; id < adj_graph_node_count(a->g) && alike; id++)
        alike = strcmp(adj_node_op(adj_graph_node_at(a->g, id)),
                       adj_node_op(adj_graph_node_at(b->g, id))) == 0;
    return alike;
}

/* ---- values ---- */

/* Element i of a leaf: small integers, or anything from -1 to 1. */
static float value_at(unsigned seed, int id, int64_t i)
{
    unsigned h = ((unsigned)i + 1) * 2654435761U ^ ((unsigned)id + seed + 1) * 2246822519U;
    h = (h ^ h >> 15) * 2654435761U;
    return seed % 2 ? (float)(h >> 8) / 0x1p23F - 1 : (float)((int)((h >> 24) % 5) - 2);
}

/* trial: 0, or that of f64 whose leaves are up to a unit of f32 away. */
static void set_leaves(adj_exec *e, const net *n, unsigned seed, int trial)
{
    static double data[MAX_ELEMS];
    for (int id = 0; id < adj_graph_node_count(n->g); id++) {
        adj_node *leaf = adj_graph_node_at(n->g, id);
        const adj_type type = adj_node_type(leaf);
        if (!is_kept(leaf) && leaf != n->x)
            continue;
        for (int64_t i = 0; i < adj_shape_elems(type.shape); i++) {
            const float v = value_at(seed, id, i);
            const float noise = trial > 0 ? value_at(2 * (unsigned)trial + 1, id, i) : 0;
            if (type.dtype == ADJ_I32)
                ((int32_t *)data)[i] = (int32_t)(i % 2);
            else if (type.dtype == ADJ_F32)
                ((float *)data)[i] = v;
            else
                data[i] = (double)v * (1 + 0x1p-23 * (double)noise);
        }
        adj_set(e, leaf, data, adj_type_bytes(type)); /* refused if the plan does not need it */
    }
}

/* Runs a net on naive. Returns its output, to be freed, or NULL for labels that are none. */
static void *run_on_naive(const net *n, unsigned seed, int trial, adj_exec **e)
{
    const size_t bytes = adj_type_bytes(adj_node_type(n->y));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &n->y, .backend = "naive", .threads = 1};
    void *y = malloc(bytes);
    must(y != NULL && adj_exec_new(n->g, &o, e) == ADJ_OK);
    set_leaves(*e, n, seed, trial);
    const adj_status status = adj_run(*e);
    must(status == ADJ_OK || status == ADJ_EARG);
    if (status == ADJ_OK && adj_get(*e, n->y, y, bytes) == ADJ_OK)
        return y;
    free(y);
    return NULL;
}

/* ---- as C ---- */

static void subject_free(subject *s)
{
    free(s->want);
    free(s->naive);
    adj_graph_free(s->f32.g);
}

/* Writes FOLDER/netK.c; returns why not, or NULL: an op without C, or no value that is computed
 * from the input, as in a view. */
static const char *write_net(const subject *s, adj_exec *e, const char *folder, int k)
{
    static adj_error error;
    char path[128], prefix[16];
    snprintf(prefix, sizeof prefix, "net%d", k);
    snprintf(path, sizeof path, "%s/%s.c", folder, prefix);
    FILE *f = fopen(path, "w");
    must(f != NULL);
    const adj_status status = adj_emit(e, s->f32.y, &(adj_emit_opts){.prefix = prefix}, f, &error);
    fclose(f);
    if (status == ADJ_OK)
        return NULL;
    unlink(path);
    if (status != ADJ_ENOKERNEL && status != ADJ_EARG)
        fprintf(stderr, "net %u: %s\n", s->seed, error.message);
    must(status == ADJ_ENOKERNEL || status == ADJ_EARG);
    memmove(error.message, error.message + 10, strlen(error.message + 10) + 1); /* "adj_emit: " */
    char *name = strchr(error.message, '"'), *end = strrchr(error.message, '"');
    if (name != NULL && end != NULL)
        memmove(name, end + 2, strlen(end + 2) + 1);
    return error.message;
}

/* Makes a net and writes it. Returns why it is left out, or NULL. */
static const char *make(subject *s, unsigned seed, const char *folder, int k)
{
    *s = (subject){.seed = seed, .f32 = net_grown(seed, ADJ_F32)};
    net f64 = net_grown(seed, ADJ_F64);
    adj_exec *e = NULL, *wide = NULL;
    const char *why = adj_graph_status(s->f32.g) != ADJ_OK ? "the graph fails"
                      : s->f32.y == NULL                   ? "nothing depends on the input"
                      : !are_alike(&s->f32, &f64)          ? "the graph is another one in f64"
                                                           : NULL;
    if (why == NULL) {
        s->naive = run_on_naive(&s->f32, seed, 0, &e);
        s->want = run_on_naive(&f64, seed, 0, &wide);
        why = s->naive == NULL ? "a label is no class" : write_net(s, e, folder, k);
    }
    adj_exec_free(e);
    adj_exec_free(wide);
    adj_graph_free(f64.g);
    if (why != NULL)
        subject_free(s);
    return why;
}

/* True if element i of the output in f64 changes by more than the bound with leaves that are a unit
 * away. */
static int is_choice(const subject *s, int64_t i, double bound)
{
    int jumps = 0;
    for (int trial = 1; trial <= TRIALS && !jumps; trial++) {
        net f64 = net_grown(s->seed, ADJ_F64);
        adj_exec *e = NULL;
        double *y = run_on_naive(&f64, s->seed, trial, &e);
        must(y != NULL);
        jumps = !(fabs(y[i] - s->want[i]) <= bound);
        free(y);
        adj_exec_free(e);
        adj_graph_free(f64.g);
    }
    return jumps;
}

/* True if one part of the output is as in f64. */
static int is_part_right(const subject *s, const adj_node *part, int64_t first, const float *got,
                         tally *t)
{
    const int64_t n = adj_shape_elems(adj_node_type(part).shape);
    double largest = 0, of_naive = 0;
    for (int64_t i = first; i < first + n; i++)
        if (isfinite(s->want[i]) && isfinite(s->naive[i])) {
            largest = fmax(largest, fabs(s->want[i]));
            of_naive = fmax(of_naive, fabs((double)s->naive[i] - s->want[i]));
        }
    const double bound = UNITS * 0x1p-24 * largest + TIMES_NAIVE * of_naive;
    for (int64_t i = first; i < first + n; i++) {
        const double want = s->want[i], y = (double)got[i], naive = (double)s->naive[i];
        const int is_right = isfinite(naive) ? fabs(y - want) <= bound || !isfinite(want)
                             : isnan(naive)  ? isnan(y)
                                             : y == naive;
        if (is_right)
            continue;
        if (of_naive > 0 && is_choice(s, i, bound)) {
            add_reason(t, "it chooses between nearly equal values");
            return 1;
        }
        fprintf(stderr, "net %u: node %d %s[%lld] is %.9g, in f64 %.9g, by naive %.9g\n", s->seed,
                adj_node_id(part), adj_node_op(part), (long long)(i - first), y, want, naive);
        return 0;
    }
    return 1;
}

/* Runs the compiled net twice: what the first run leaves in the arena changes nothing. */
static int is_right(const subject *s, void *library, int k, tally *t)
{
    int (*predict)(const float *, float *);
    char name[32];
    snprintf(name, sizeof name, "net%d_predict", k);
    *(void **)&predict = dlsym(library, name);
    must(predict != NULL);
    const int64_t n_x = adj_shape_elems(adj_node_type(s->f32.x).shape);
    float *x = malloc((size_t)n_x * sizeof *x);
    float *y = malloc(adj_type_bytes(adj_node_type(s->f32.y)));
    int64_t first = 0;
    int right = 1;
    must(x != NULL && y != NULL);
    for (int run = 0; run < 2; run++) {
        for (int64_t i = 0; i < n_x; i++)
            x[i] = run == 0 ? 3 : value_at(s->seed, adj_node_id(s->f32.x), i);
        right &= predict(x, y) == 0;
    }
    for (int i = 0; i < s->f32.n_part; i++) {
        right &= is_part_right(s, s->f32.part[i], first, y, t);
        first += adj_shape_elems(adj_node_type(s->f32.part[i]).shape);
    }
    free(x);
    free(y);
    return right;
}

/* Compiles the nets of a folder and runs them. Returns how many are wrong. */
static int check(const subject s[], int n, const char *folder, tally *t)
{
    char text[512];
    int wrong = 0;
    snprintf(text, sizeof text,
             "cd %s && { ls net*.c | xargs -P 2 -n 13 cc -c -std=c99 -Wall -Wextra -Wpedantic "
             "-Wconversion -Werror -O1 -fPIC && cc -shared net*.o -o nets.so -lm; } >log 2>&1 || "
             "{ head -c 3000 log >&2; exit 1; }",
             folder);
    if (system(text) != 0) /* NOLINT(cert-env33-c) */
        return n;
    snprintf(text, sizeof text, "%s/nets.so", folder);
    void *library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
    must(library != NULL);
    for (int k = 0; k < n; k++)
        wrong += !is_right(&s[k], library, k, t);
    dlclose(library);
    return wrong;
}

/* Makes and checks nets from a seed on; returns how many are wrong. */
static int check_nets(int number, unsigned *seed, tally *t)
{
    static subject s[BATCH];
    const temporary folder = temporary_folder();
    char text[128];
    int n = 0;
    for (int tries = 0; n < number && tries < ATTEMPTS * number; tries++) {
        const char *why = make(&s[n], (*seed)++, folder.s, n);
        if (why != NULL)
            add_reason(t, why);
        else
            n++;
    }
    const int wrong = n < number ? number : check(s, n, folder.s, t);
    for (int k = 0; k < n; k++)
        subject_free(&s[k]);
    if (wrong > 0)
        fprintf(stderr, "the C files are in %s\n", folder.s);
    snprintf(text, sizeof text, "rm -rf %s", folder.s);
    if (wrong == 0)
        (void)!system(text); /* NOLINT(cert-env33-c) */
    return wrong;
}

int main(int argc, char **argv)
{
    static tally t;
    const int number = argc > 1 ? atoi(argv[1]) : USUAL;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    int wrong = 0;
    for (int done = 0; done < number; done += BATCH)
        wrong += check_nets(number - done < BATCH ? number - done : BATCH, &seed, &t);
    for (int i = 0; i < t.n; i++)
        printf("%6d left out: %s\n", t.count[i], t.why[i]);
    printf("%d passed, %d failed\n", number - wrong, wrong);
    return wrong > 0;
}
