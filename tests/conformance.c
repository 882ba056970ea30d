/* conformance.c - runs conformance cases through the public API.
 *
 *   conformance [--backend NAME] [--tune] [--summary] [--refusals] FILE...
 *
 * A file is a list of cases in JSON, plain or compressed by gzip. Prints each failure's id and
 * worst element, with --summary the passed cases by op and backend, with --refusals the messages of
 * refused calls, and ends with "N passed, M failed"; exit status 1 if any failed or a file cannot
 * be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "conformance.h"

enum { MAX_OPS = 64 };

typedef struct {
    adj_exec_opts how; /* backend, tune */
    int summary, refusals;
} options;

typedef struct {
    int passed, failed;
    int n_op;
    struct {
        char name[64];
        int passed, failed, steps, naive_steps;
    } op[MAX_OPS];
} tally;

static void count(tally *t, const char *op, const case_verdict *v)
{
    int i = 0;
    while (i < t->n_op && strcmp(t->op[i].name, op) != 0)
        i++;
    if (i == t->n_op && i < MAX_OPS)
        snprintf(t->op[t->n_op++].name, sizeof t->op[i].name, "%s", op);
    if (i < MAX_OPS) {
        t->op[i].passed += v->passed;
        t->op[i].failed += !v->passed;
        t->op[i].steps += v->steps;
        t->op[i].naive_steps += v->naive_steps;
    }
    t->passed += v->passed;
    t->failed += !v->passed;
}

static const char *word(const json_t *json, const char *key)
{
    const char *s = json_string_value(json_object_get(json, key));
    return s != NULL ? s : "?";
}

static size_t read_some(void *to, size_t room, void *file)
{
    const int n = gzread(file, to, (unsigned)room);
    return n < 0 ? (size_t)-1 : (size_t)n;
}

/* Reads a file, compressed or not; NULL with why. */
static json_t *read_cases(const char *path, char why[CASE_TEXT])
{
    json_error_t error;
    int code = Z_OK;
    gzFile f = gzopen(path, "rb");
    snprintf(why, CASE_TEXT, "cannot be opened");
    if (f == NULL)
        return NULL;
    json_t *cases = json_load_callback(read_some, f, JSON_REJECT_DUPLICATES, &error);
    snprintf(why, CASE_TEXT, "%.200s", gzerror(f, &code));
    if (gzclose(f) != Z_OK || code != Z_OK) {
        json_decref(cases);
        return NULL;
    }
    snprintf(why, CASE_TEXT, "%s", cases == NULL ? error.text : "no list of cases");
    return cases;
}

static void run_file(const char *path, const options *o, tally *t)
{
    char why[CASE_TEXT];
    json_t *cases = read_cases(path, why);
    if (!json_is_array(cases)) {
        printf("FAIL %s: %s\n", path, why);
        t->failed++;
        json_decref(cases);
        return;
    }
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *json = json_array_get(cases, i);
        case_verdict v = case_run(json, &o->how);
        if (!v.passed)
            printf("FAIL %s (%s, %s): %s\n", word(json, "id"), word(json, "op"),
                   word(json, "dtype"), v.text);
        else if (o->refusals && v.text[0] != '\0')
            printf("%s: %s\n", word(json, "id"), v.text);
        count(t, word(json, "op"), &v);
    }
    json_decref(cases);
}

/* A name that the library does not know would fail every case. */
static int is_known(const char *backend)
{
    adj_graph *g = adj_graph_new();
    adj_exec *e = NULL;
    adj_node *one = adj_fill(g, ADJ_F32, (adj_shape){0}, 1);
    adj_exec_opts opts = {.n_fetch = 1, .fetch = &one, .backend = backend};
    adj_status status = adj_exec_new(g, &opts, &e);
    if (status != ADJ_OK)
        printf("FAIL %s\n", adj_exec_message(e));
    adj_exec_free(e);
    adj_graph_free(g);
    return status == ADJ_OK;
}

static void print_summary(const tally *t)
{
    for (int i = 0; i < t->n_op; i++)
        printf("%-42s %5d passed %5d failed %6d steps, %d of them naive\n", t->op[i].name,
               t->op[i].passed, t->op[i].failed, t->op[i].steps, t->op[i].naive_steps);
}

int main(int argc, char **argv)
{
    options o = {0};
    int n_file = 0;
    tally t = {0};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            o.how.backend = argv[++i];
        else if (strcmp(argv[i], "--tune") == 0)
            o.how.tune = 1;
        else if (strcmp(argv[i], "--summary") == 0)
            o.summary = 1;
        else if (strcmp(argv[i], "--refusals") == 0)
            o.refusals = 1;
        else if (argv[i][0] == '-') {
            fprintf(stderr, "usage: conformance [--backend NAME] [--tune] [--summary] [--refusals] "
                            "FILE...\n");
            return 2;
        }
    }
    if (!is_known(o.how.backend)) {
        printf("0 passed, 1 failed\n");
        return 1;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0)
            i++;
        else if (argv[i][0] != '-') {
            run_file(argv[i], &o, &t);
            n_file++;
        }
    }
    if (o.summary)
        print_summary(&t);
    printf("%d passed, %d failed\n", t.passed, t.failed);
    return t.failed > 0 || n_file == 0;
}
