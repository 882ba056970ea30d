/* fuzz_tune.c - a tune file of arbitrary bytes: it is ignored with one line, or decides which
 * kernels compute a small convolution and its gradients. The values are naive's to the last bit in
 * every case (sums of integers), and the file that is written instead of a bad one is a good one.
 *
 * A file holds for one machine, and inputs should reach far on every machine. So the target first
 * makes a file of this machine, and an input may refer to it: @h stands for its header, @o for
 * another machine's, @e for its last line; and, with n from 0 to 9, @ln for its entry n; @bn, @kn,
 * @cn, @un, @in, @yn for that entry's backend, kernel, candidate, microseconds, implementation and
 * key; @@ for "@". */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "adjoint.h"
#include "exec/report.h"
#include "fuzz/memory_file.h"
#include "fuzz/must.h"
#include "tests/temporary.h"

enum { FETCHES = 4, ELEMS = 2048, MAX_TEXT = 1 << 16, FIELDS = 6, NAMED = 10 };

typedef struct {
    adj_graph *g;
    adj_node *fetch[FETCHES];
    float wanted[FETCHES][ELEMS]; /* naive's */
    char *good;                   /* this machine's file */
    size_t header;                /* its bytes that come before the entries */
    int n_entry;
    const char *entry[NAMED], *end; /* lines */
    char folder[64], path[80], partial[96];
} subject;

static subject s;

/* ---- the graph, and its values ---- */

static adj_node *integers(adj_graph *g, const char *name, adj_shape shape)
{
    static float data[ELEMS];
    int64_t n = adj_shape_elems(shape);
    uint32_t seed = (uint32_t)name[0];
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525U + 1013904223U;
        data[i] = (float)(seed >> 29) - 3;
    }
    return adj_label(adj_const(g, ADJ_F32, shape, data), name);
}

static void build(void)
{
    const adj_conv same = {.padding = ADJ_SAME};
    adj_graph *g = s.g = adj_graph_new();
    adj_node *x = integers(g, "x", (adj_shape){4, {1, 5, 6, 16}});
    adj_node *w = integers(g, "w", (adj_shape){4, {3, 3, 16, 8}});
    adj_node *b = integers(g, "b", (adj_shape){1, {8}});
    adj_node *d = integers(g, "d", (adj_shape){4, {3, 3, 8, 1}});
    adj_node *h = adj_relu(adj_bias_add(adj_conv2d(x, w, &same), b, ADJ_NHWC));
    adj_node *y = adj_depthwise_conv2d_native(h, d, &same);
    adj_node *dh = integers(g, "e", adj_node_type(h).shape), *of[] = {w, b};
    s.fetch[0] = y;
    s.fetch[1] = h;
    must(adj_grad(h, dh, 2, of, s.fetch + 2) == ADJ_OK);
}

static adj_exec *plan(adj_exec_opts o)
{
    adj_exec *e = NULL;
    o.n_fetch = FETCHES;
    o.fetch = s.fetch;
    o.threads = 1;
    must(adj_exec_new(s.g, &o, &e) == ADJ_OK);
    must(adj_run(e) == ADJ_OK);
    return e;
}

static size_t fetch_bytes(int i)
{
    return (size_t)adj_shape_elems(adj_node_type(s.fetch[i]).shape) * sizeof(float);
}

static void must_be_exact(adj_exec *e)
{
    static float got[ELEMS];
    for (int i = 0; i < FETCHES; i++) {
        must(adj_get(e, s.fetch[i], got, fetch_bytes(i)) == ADJ_OK);
        for (size_t k = 0; k < fetch_bytes(i) / sizeof(float); k++)
            must(got[k] == s.wanted[i][k]);
    }
}

/* ---- files ---- */

/* Where files live in memory, if there is such a place. */
static void remove_folder(void)
{
    unlink(s.partial);
    unlink(s.path);
    rmdir(s.folder);
}

static void make_folder(void)
{
    strcpy(s.folder, "/dev/shm/adjoint-fuzz-XXXXXX");
    if (mkdtemp(s.folder) == NULL) {
        memcpy(s.folder, temporary_folder().s, sizeof s.folder);
        must(s.folder[0] != '\0');
    }
    snprintf(s.path, sizeof s.path, "%s/tune", s.folder);
    snprintf(s.partial, sizeof s.partial, "%s.partial", s.path);
    atexit(remove_folder);
}

static size_t read_file(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f != NULL ? fread(text, 1, size - 1, f) : 0;
    text[n] = '\0';
    if (f != NULL)
        fclose(f);
    return n;
}

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    must(f != NULL && fwrite(text, 1, n, f) == n && fclose(f) == 0);
}

/* The entries are the lines with tabs; the header has none. */
static void read_good_file(void)
{
    s.good = calloc(1, MAX_TEXT);
    must(s.good != NULL && read_file(s.path, s.good, MAX_TEXT) > 0);
    for (char *line = s.good, *next; (next = strchr(line, '\n')) != NULL; line = next + 1) {
        const int is_entry = memchr(line, '\t', (size_t)(next - line)) != NULL;
        if (is_entry && s.header == 0)
            s.header = (size_t)(line - s.good);
        if (is_entry && s.n_entry < NAMED)
            s.entry[s.n_entry] = line;
        s.n_entry += is_entry;
        s.end = line;
    }
    must(s.n_entry > 0 && strncmp(s.end, "end ", 4) == 0);
}

static void start(void)
{
    build();
    adj_exec *e = plan((adj_exec_opts){.backend = "naive"});
    for (int i = 0; i < FETCHES; i++) {
        must(fetch_bytes(i) <= sizeof s.wanted[i]);
        must(adj_get(e, s.fetch[i], s.wanted[i], fetch_bytes(i)) == ADJ_OK);
    }
    adj_exec_free(e);
    make_folder();
    e = plan((adj_exec_opts){.tune = 1, .tune_file = s.path, .tune_seconds = 60});
    must_be_exact(e);
    adj_exec_free(e);
    read_good_file();
}

/* ---- an input as a file's text ---- */

typedef struct {
    char text[MAX_TEXT];
    size_t n;
} text;

static void put(text *t, const char *piece, size_t n)
{
    if (n > sizeof t->text - t->n)
        n = sizeof t->text - t->n;
    memcpy(t->text + t->n, piece, n);
    t->n += n;
}

static void put_header(text *t, int of_another)
{
    put(t, s.good, s.header);
    if (of_another && t->n > 1)
        t->text[t->n - 2] ^= 1; /* before the end of its last line */
}

static void put_line(text *t, const char *line) { put(t, line, strcspn(line, "\n") + 1); }

static void put_entry(text *t, char kind, int i)
{
    static const char fields[] = "bkcuiy";
    const char *at = s.entry[i % (s.n_entry < NAMED ? s.n_entry : NAMED)];
    if (kind == 'l') {
        put_line(t, at);
        return;
    }
    for (const char *f = fields; *f != kind; f++)
        at += strcspn(at, "\t") + 1;
    put(t, at, strcspn(at, "\t\n"));
}

static void expand(text *t, const uint8_t *data, size_t size)
{
    t->n = 0;
    for (size_t i = 0; i < size; i++) {
        int left = (int)(size - i > 2 ? 2 : size - i - 1);
        char kind = data[i] == '@' && left >= 1 ? (char)data[i + 1] : '\0';
        int digit = left >= 2 && data[i + 2] >= '0' && data[i + 2] <= '9';
        if (kind == 'h' || kind == 'o')
            put_header(t, kind == 'o');
        else if (kind == 'e')
            put_line(t, s.end);
        else if (kind == '@')
            put(t, "@", 1);
        else if (kind != '\0' && strchr("lbkcuiy", kind) != NULL && digit)
            put_entry(t, kind, data[i + 2] - '0');
        else {
            put(t, (const char *)&data[i], 1);
            continue;
        }
        i += strchr("hoe@", kind) != NULL ? 1 : 2;
    }
}

/* ---- what must hold ---- */

/* One line of printable characters. */
static void must_be_one_line(const char *note)
{
    for (; *note != '\0'; note++)
        must((unsigned char)*note >= ' ' && *note != 0x7f);
}

static int is_ignored(const adj_exec *e)
{
    return strstr(adj_exec_warning(e), "is ignored") != NULL;
}

static void must_be_sound(const adj_exec *e)
{
    must_be_one_line(adj_exec_warning(e));
    must(!is_ignored(e) || adj_exec_details(e).cached == 0);
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        adj_step_info step = adj_exec_step_at(e, i);
        must(isfinite(step.tuned_seconds) && step.tuned_seconds >= 0);
        must_be_one_line(step.impl);
    }
}

/* With hardly any time to tune, so that kernels that the file lacks are untuned. */
static void read_only(const text *t)
{
    memory_file f = memory_file_new(t->text, t->n);
    adj_exec *e = plan((adj_exec_opts){.tune = 1, .tune_file = f.path, .tune_seconds = 1e-9});
    must_be_exact(e);
    must_be_sound(e);
    if (t->n < s.header || memcmp(t->text, s.good, s.header) != 0)
        must(is_ignored(e));
    if (t->n == strlen(s.good) && memcmp(t->text, s.good, t->n) == 0)
        must(!is_ignored(e) && adj_exec_details(e).cached > 0);
    adj_exec_free(e);
    memory_file_free(&f);
}

/* With time for some: whatever is there afterwards, if a winner was found, is a file that holds. */
static void read_and_write(const text *t)
{
    write_file(s.path, t->text, t->n);
    adj_exec *e = plan((adj_exec_opts){.tune = 1, .tune_file = s.path, .tune_seconds = 0.003});
    int found = adj_exec_details(e).timed > 0 && adj_exec_warning(e)[0] == '\0';
    must_be_exact(e);
    must_be_sound(e);
    must(access(s.partial, F_OK) != 0);
    adj_exec_free(e);
    e = plan((adj_exec_opts){.tune = 1, .tune_file = s.path, .tune_seconds = 1e-9});
    must_be_exact(e);
    must_be_sound(e);
    if (found)
        must(!is_ignored(e) && adj_exec_details(e).cached > 0);
    adj_exec_free(e);
}

/* Expects an entry of the input to be used by the plan. */
static void must_be_taken(const char *input)
{
    static text t;
    expand(&t, (const uint8_t *)input, strlen(input));
    memory_file f = memory_file_new(t.text, t.n);
    adj_exec *e = plan((adj_exec_opts){.tune = 1, .tune_file = f.path, .tune_seconds = 1e-9});
    must(!is_ignored(e) && adj_exec_details(e).cached > 0);
    adj_exec_free(e);
    memory_file_free(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static text t;
    if (s.g == NULL) {
        start();
        must_be_taken("@h@l0end 1\n");
        must_be_taken("@h@b0\t@k0\t@c0\t@u0\t@i0\t@y0\nend 1\n");
    }
    expand(&t, data, size);
    read_only(&t);
    if (size % 16 == 0)
        read_and_write(&t);
    return 0;
}
