/* test_fuzzed.c - random graphs as C: the graph fuzzer's (grow.h), beside the same graphs in f64 on
 * naive; every fourth one with a training step, of which all parameters are compared after three.
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

#include "adjoint_emit.h"
#include "emit/fuzzed_net.h"
#include "tests/temporary.h"
#include "tests/plan.h"

enum { USUAL = 50, BATCH = 100, REASONS = 200, ATTEMPTS = 20, HEAD = 16 };
enum { UNITS = 128, TIMES_NAIVE = 16, TRIALS = 8 };

/* A net that is written as C. */
typedef struct {
    unsigned seed;
    net f32;
    double *want;
    float *naive;
} subject;

/* Reasons why nets are left out, and their numbers; the number of nets that are trained. */
typedef struct {
    int n, trained, count[REASONS];
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
    const adj_emit_opts o = {.prefix = prefix, .updates = s->f32.updates, .loss = s->f32.loss};
    const adj_status status = adj_emit(e, s->f32.y, &o, f, &error);
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
        e = plan_on_naive(&s->f32, seed, 0);
        wide = plan_on_naive(&f64, seed, 0);
        why = write_net(s, e, folder, k);
    }
    if (why == NULL) {
        s->naive = run_on_naive(e, &s->f32);
        s->want = run_on_naive(wide, &f64);
        why = s->naive == NULL ? "a label is no class" : NULL;
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
        adj_exec *e = plan_on_naive(&f64, s->seed, trial);
        double *y = run_on_naive(e, &f64);
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

/* Returns a function of net K. */
static void *function_of(void *library, int k, const char *what)
{
    char name[32];
    snprintf(name, sizeof name, "net%d_%s", k, what);
    void *f = dlsym(library, name);
    must(f != NULL);
    return f;
}

/* Runs the compiled net twice: what the first run leaves in the arena changes nothing. Then y has
 * its output. */
static int predicts(void *library, int k, const net *n, unsigned seed, float *x, float *y)
{
    int right = 1, (*predict)(const float *, float *);
    *(void **)&predict = function_of(library, k, "predict");
    for (int run = 0; run < 2; run++) {
        for (int64_t i = 0; i < adj_shape_elems(adj_node_type(n->x).shape); i++)
            x[i] = run == 0 ? 3 : value_at(seed, adj_node_id(n->x), i);
        right &= predict(x, y) == 0;
    }
    return right;
}

/* Copies the parts from a saved state, whose arrays are listed in the C file with their names. */
static void copy_parts(const net *n, const char *folder, int k, const uint8_t *state, float *y)
{
    char text[256], name[160];
    snprintf(text, sizeof text, "%s/net%d.c", folder, k);
    FILE *f = fopen(text, "r");
    int bytes, found = 0;
    must(f != NULL);
    for (state += HEAD; fgets(text, sizeof text, f) != NULL;) {
        if (sscanf(text, "    {%*[^,], %d}, /* %159[^*] */", &bytes, name) != 2)
            continue;
        name[strlen(name) - 1] = '\0';
        float *to = y;
        for (int i = 0; i < n->n_part; i++) {
            const size_t size = adj_type_bytes(adj_node_type(n->part[i]));
            if (strcmp(adj_node_name(n->part[i]), name) == 0) {
                must(size == (size_t)bytes);
                memcpy(to, state, size);
                found++;
            }
            to += size / sizeof *to;
        }
        state += bytes;
    }
    fclose(f);
    must(found == n->n_part);
}

/* Trains the compiled net after it has predicted; y: all its parts. */
static int trains(void *library, int k, const net *n, const char *folder, const float *x, float *y)
{
    int right = 1, (*step)(const float *, const int32_t *, float, float *);
    void (*save)(uint8_t *);
    float loss;
    *(void **)&step = function_of(library, k, "train_step");
    *(void **)&save = function_of(library, k, "save");
    for (int32_t label = 0; label < TRAINING_STEPS; label++)
        right &= step(x, &label, TRAINING_RATE, &loss) == 0;
    uint8_t *state = malloc(HEAD + sizeof(float) * (size_t)(count_elements(n) + MAX_VALUES));
    must(state != NULL);
    save(state);
    copy_parts(n, folder, k, state, y);
    free(state);
    return right;
}

static int is_right(const subject *s, void *library, int k, const char *folder, tally *t)
{
    const net *n = &s->f32;
    const int64_t outputs = adj_shape_elems(adj_node_type(n->y).shape);
    scoped(release) float *x = malloc(adj_type_bytes(adj_node_type(n->x)));
    scoped(release) float *y = malloc(sizeof *y * (size_t)(count_elements(n) + outputs));
    int64_t first = 0;
    must(x != NULL && y != NULL);
    int right = predicts(library, k, n, s->seed, x, y);
    if (n->loss != NULL) {
        t->trained++;
        right &= trains(library, k, n, folder, x, y);
    }
    for (int i = 0; i < n->n_part; i++) {
        right &= is_part_right(s, n->part[i], first, y, t);
        first += adj_shape_elems(adj_node_type(n->part[i]).shape);
    }
    return right;
}

/* Compiles the nets of a folder and runs them. Returns how many are wrong. */
static int check(const subject s[], int n, const char *folder, tally *t)
{
    char text[512];
    int wrong = 0;
    snprintf(text, sizeof text,
             "cd %s && { ls net*.c | xargs -P 2 -n 13 cc -c -std=c99 -Wall -Wextra -Wpedantic "
             "-Wconversion -Wdouble-promotion -Wunsuffixed-float-constants -Werror -O1 -fPIC && cc "
             "-shared net*.o -o nets.so -lm; } >log 2>&1 || "
             "{ head -c 3000 log >&2; exit 1; }",
             folder);
    if (system(text) != 0) /* NOLINT(cert-env33-c) */
        return n;
    snprintf(text, sizeof text, "%s/nets.so", folder);
    void *library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
    must(library != NULL);
    for (int k = 0; k < n; k++)
        wrong += !is_right(&s[k], library, k, folder, t);
    dlclose(library);
    return wrong;
}

/* Makes and checks nets from a seed on; returns how many are wrong. */
static int check_nets(int number, unsigned *seed, tally *t)
{
    static subject s[BATCH];
    const temporary folder = temporary_folder();
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
    else
        temporary_remove(&folder);
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
    printf("%6d trained\n", t.trained);
    printf("%d passed, %d failed\n", number - wrong, wrong);
    return wrong > 0;
}
