/* conformance.c - runs conformance cases through the public API.
 *
 *   conformance [--backend NAME] [--summary] [--refusals] FILE.json...
 *
 * Prints each failure's id and worst element, with --summary what passed by op, with --refusals
 * what the library said to calls it refused, and ends with "N passed, M failed"; exit status 1 if
 * any failed or a file cannot be read. */
#include <stdio.h>
#include <string.h>

#include "conformance.h"

enum { MAX_OPS = 64 };

typedef struct {
    const char *backend;
    int summary, refusals;
} options;

typedef struct {
    int passed, failed;
    int n_op;
    struct {
        char name[64];
        int passed, failed;
    } op[MAX_OPS];
} tally;

static void count(tally *t, const char *op, int passed)
{
    int i = 0;
    while (i < t->n_op && strcmp(t->op[i].name, op) != 0)
        i++;
    if (i == t->n_op && i < MAX_OPS)
        snprintf(t->op[t->n_op++].name, sizeof t->op[i].name, "%s", op);
    if (i < MAX_OPS) {
        t->op[i].passed += passed;
        t->op[i].failed += !passed;
    }
    t->passed += passed;
    t->failed += !passed;
}

static const char *word(const json_t *json, const char *key)
{
    const char *s = json_string_value(json_object_get(json, key));
    return s != NULL ? s : "?";
}

static void run_file(const char *path, const options *o, tally *t)
{
    json_error_t error;
    json_t *cases = json_load_file(path, 0, &error);
    if (!json_is_array(cases)) {
        printf("FAIL %s: %s\n", path, cases == NULL ? error.text : "no list of cases");
        t->failed++;
        json_decref(cases);
        return;
    }
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *json = json_array_get(cases, i);
        char text[CASE_TEXT];
        int passed = case_run(json, o->backend, text);
        if (!passed)
            printf("FAIL %s (%s, %s): %s\n", word(json, "id"), word(json, "op"),
                   word(json, "dtype"), text);
        else if (o->refusals && text[0] != '\0')
            printf("%s: %s\n", word(json, "id"), text);
        count(t, word(json, "op"), passed);
    }
    json_decref(cases);
}

int main(int argc, char **argv)
{
    options o = {0};
    int n_file = 0;
    tally t = {0};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            o.backend = argv[++i];
        else if (strcmp(argv[i], "--summary") == 0)
            o.summary = 1;
        else if (strcmp(argv[i], "--refusals") == 0)
            o.refusals = 1;
        else if (argv[i][0] == '-') {
            fprintf(stderr,
                    "usage: conformance [--backend NAME] [--summary] [--refusals] FILE.json...\n");
            return 2;
        }
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0)
            i++;
        else if (argv[i][0] != '-') {
            run_file(argv[i], &o, &t);
            n_file++;
        }
    }
    for (int i = 0; o.summary && i < t.n_op; i++)
        printf("%-42s %5d passed %5d failed\n", t.op[i].name, t.op[i].passed, t.op[i].failed);
    printf("%d passed, %d failed\n", t.passed, t.failed);
    return t.failed > 0 || n_file == 0;
}
