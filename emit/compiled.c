/* compiled.c - emitted functions as a backend, for the checkers.
 *
 * The backend "emitted" computes each group of nodes by the function that adj_emit writes for it.
 * Functions are compiled by `cc -std=c99 -O2`, all that are new at once, and each call is a process
 * of its own, in which operands and results are allocated with their exact sizes and results begin
 * as NaN. Groups, results in place and scratch are those of adj_emit's plans. A program reads the
 * operands of one call from standard input and writes the result to standard output. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"
#include "process.h"
#include "tool.h"

enum { KERNELS = 2 };

typedef struct emitted emitted;

/* Memory of a call. Operands are those of the group. */
typedef struct {
    size_t operand[EMIT_OPERANDS], result, scratch; /* bytes; 0 if it is no parameter */
} layout;

/* A group's function. */
typedef struct compiled {
    struct compiled *next;
    emitted *owner;
    char *text, *in_place; /* function text after the name; in_place: for a result in an operand's
                              memory; NULL: not allowed */
    layout layout;
    int users;           /* prepared steps */
    int program, number; /* descriptor, -1: it is not compiled yet; number of the function there */
    int is_owner;        /* closes the program */
} compiled;

struct emitted {
    adj_backend backend; /* first: adj_backend_opts.self */
    adj_kernel kernel[KERNELS];
    const adj_kernel *kernels[KERNELS + 1];
    compiled *first;
    streams streams; /* streams of the compiler and of programs */
    int is_checked;  /* the compiler works */
};

/* ---- programs ---- */

static void put_start(FILE *f)
{
    fputs("#define _POSIX_C_SOURCE 200809L\n"
          "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
          "#include <string.h>\n#include <unistd.h>\n\n"
          "static void *kept[64];\nstatic int n_kept;\n\n"
          "static void *room(size_t bytes)\n{\n"
          "    void *p = kept[n_kept++] = malloc(bytes > 0 ? bytes : 1);\n"
          "    if (p == NULL)\n        exit(3);\n"
          "    return memset(p, 255, bytes);\n}\n\n"
          "static void *load(size_t bytes)\n{\n"
          "    void *p = room(bytes);\n"
          "    if (fread(p, 1, bytes, stdin) != bytes)\n        exit(3);\n"
          "    return p;\n}\n\n",
          f);
    put_philox(f);
    put_tanh(f);
}

static void put_end_of(FILE *f, int n)
{
    enum { SECONDS = 100 };
    fputs("int main(int n, char **word)\n{\n    static void (*const call[])(int) = {", f);
    for (int i = 0; i < n; i++)
        fprintf(f, "call%d, ", i);
    fprintf(f,
            "NULL};\n    alarm(%d);\n    if (n > 2)\n        call[atoi(word[1])](atoi(word[2]));\n"
            "    return fflush(stdout) != 0;\n}\n",
            SECONDS);
}

/* Writes a call of function i, the name's prefix before. */
static void put_numbered_call(FILE *f, const layout *l, const char *name, int i)
{
    fprintf(f, "%s%d(", name, i);
    for (int k = 0; k < EMIT_OPERANDS; k++)
        if (l->operand[k] > 0)
            fprintf(f, "in[%d], ", k);
    if (l->scratch > 0)
        fprintf(f, "room(%zu), ", l->scratch);
    fputs("y);\n", f);
}

/* Writes both forms of a function, and the one that reads operands, calls and writes the result. */
static void put_functions(FILE *f, const compiled *c, int i)
{
    const layout *l = &c->layout;
    fprintf(f, "static void f%d%s", i, c->text);
    if (c->in_place != NULL)
        fprintf(f, "static void in_place%d%s", i, c->in_place);
    fprintf(f, "static void call%d(int place)\n{\n    void *in[%d] = {NULL}, *y;\n", i,
            EMIT_OPERANDS);
    for (int k = 0; k < EMIT_OPERANDS; k++)
        if (l->operand[k] > 0)
            fprintf(f, "    in[%d] = load(%zu);\n", k, l->operand[k]);
    fprintf(f, "    y = place < 0 ? room(%zu) : in[place];\n    if (place < 0)\n        ",
            l->result);
    put_numbered_call(f, l, "f", i);
    if (c->in_place != NULL) {
        fputs("    else\n        ", f);
        put_numbered_call(f, l, "in_place", i);
    }
    fprintf(f, "    fwrite(y, 1, %zu, stdout);\n}\n\n", l->result);
}

/* True if the function is the one to compile, or, for NULL, in use and not compiled. */
static int is_chosen(const compiled *c, const compiled *only)
{
    return only != NULL ? c == only : c->program < 0 && c->users > 0;
}

/* Compiles one function, or for NULL all that are in use and not compiled. Returns 0 with the
 * reason if it fails. */
static int compile_functions(emitted *e, compiled *only, char why[ADJ_WHY])
{
    int n = 0, is_owner = 1;
    const int copy = clear_file(e->streams.in) ? dup(e->streams.in) : -1;
    FILE *f = copy >= 0 ? fdopen(copy, "w") : NULL;
    snprintf(why, ADJ_WHY, "the functions cannot be written");
    if (f == NULL)
        return 0;
    put_start(f);
    for (compiled *c = e->first; c != NULL; c = c->next)
        if (is_chosen(c, only))
            put_functions(f, c, c->number = n++);
    put_end_of(f, n);
    const int is_written = fflush(f) == 0 && ferror(f) == 0;
    fclose(f);
    const int program = is_written ? compile_input(&e->streams, why) : -1;
    if (program < 0)
        return 0;
    why[0] = '\0';
    for (compiled *c = e->first; c != NULL; c = c->next)
        if (is_chosen(c, only)) {
            c->program = program;
            c->is_owner = is_owner;
            is_owner = 0;
        }
    if (is_owner)
        close(program);
    return 1;
}

/* ---- the backend ---- */

static void free_compiled(compiled *c)
{
    if (c == NULL)
        return;
    if (c->is_owner)
        close(c->program);
    free(c->text);
    free(c->in_place);
    free(c);
}

/* Returns the function of a group; NULL: out of memory. */
static compiled *new_compiled(const adj_group *g, const adj_prep *p)
{
    function f = {0};
    const int may_share = p->alias[0].operands != 0;
    compiled *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->program = -1;
    if (may_share)
        c->in_place = function_text(&f, g, 1, 0, 0, "");
    c->text = function_text(&f, g, 0, 0, 0, "");
    for (int i = 0; i < g->n_in; i++)
        c->layout.operand[i] = f.is_used[i] ? adj_type_bytes(g->in[i]->type) : 0;
    c->layout.result = adj_type_bytes(g->out[0]->type);
    c->layout.scratch = f.has_scratch ? p->scratch : 0;
    if (c->text != NULL && (c->in_place != NULL || !may_share))
        return c;
    free_compiled(c);
    return NULL;
}

static int is_same(const compiled *a, const compiled *b)
{
    return memcmp(&a->layout, &b->layout, sizeof a->layout) == 0 &&
           (a->in_place == NULL) == (b->in_place == NULL) && strcmp(a->text, b->text) == 0;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    emitted *e = backend;
    const adj_status status = emit_backend.kernels[0]->prepare(NULL, g, candidate, p);
    if (status != ADJ_OK)
        return status;
    compiled *c = new_compiled(g, p), *known = e->first;
    if (c == NULL)
        return ADJ_ENOMEM;
    while (known != NULL && !is_same(known, c))
        known = known->next;
    if (known != NULL) {
        free_compiled(c);
        c = known;
    } else {
        c->owner = e;
        c->next = e->first;
        e->first = c;
    }
    c->users++;
    p->state = c;
    return ADJ_OK;
}

static void drop(void *backend, void *state)
{
    (void)backend;
    ((compiled *)state)->users--;
}

/* Writes the operands of a call to the input file. */
static int write_operands(const emitted *e, const adj_call *c)
{
    const compiled *f = c->state;
    int ok = clear_file(e->streams.in);
    for (int i = 0; i < c->group->n_in && ok; i++)
        ok = write_all(e->streams.in, c->in[i], f->layout.operand[i]);
    return ok;
}

/* Returns the number of the operand whose memory holds the result; -1: none. */
static int place_of_result(const adj_call *c)
{
    const compiled *f = c->state;
    for (int i = 0; i < c->group->n_in; i++)
        if (f->layout.operand[i] > 0 && c->in[i] == c->out[0])
            return i;
    return -1;
}

static adj_status run(const adj_call *c)
{
    compiled *f = c->state;
    emitted *e = f->owner;
    char path[40], number[16], place[16];
    if (f->program < 0 && !compile_functions(e, NULL, c->message) &&
        !compile_functions(e, f, c->message)) /* another function may be at fault */
        return ADJ_EBACKEND;
    snprintf(path, sizeof path, "/proc/self/fd/%d", f->program);
    snprintf(number, sizeof number, "%d", f->number);
    snprintf(place, sizeof place, "%d", place_of_result(c));
    char *const words[] = {(char *)"emitted", number, place, NULL};
    const int status = write_operands(e, c) ? run_program(&e->streams, path, words) : -1;
    if (status == 0 && read_all(e->streams.out, c->out[0], f->layout.result))
        return ADJ_OK;
    describe_failure(&e->streams, status, "the emitted function", c->message);
    return ADJ_EBACKEND;
}

static adj_status open_emitted(const adj_backend_opts *opts, void **backend)
{
    emitted *e = (emitted *)opts->self;
    *backend = e;
    if (!e->is_checked && !compile_functions(e, NULL, opts->message))
        return ADJ_EBACKEND;
    e->is_checked = 1;
    return ADJ_OK;
}

static void close_emitted(void *backend) { (void)backend; }

adj_backend *adj_emitted_new(void)
{
    emitted *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->backend = (adj_backend){.version = ADJ_VERSION,
                               .name = "emitted",
                               .open = open_emitted,
                               .close = close_emitted,
                               .kernels = e->kernels};
    for (int i = 0; i < KERNELS; i++) {
        e->kernel[i] = (adj_kernel){.name = "emitted",
                                    .match = emit_backend.kernels[i]->match,
                                    .prepare = prepare,
                                    .run = run,
                                    .drop = drop};
        e->kernels[i] = &e->kernel[i];
    }
    if (streams_open(&e->streams))
        return &e->backend;
    adj_emitted_free(&e->backend);
    return NULL;
}

void adj_emitted_free(adj_backend *b)
{
    emitted *e = (emitted *)b;
    if (e == NULL)
        return;
    for (compiled *c = e->first, *next; c != NULL; c = next) {
        next = c->next;
        free_compiled(c);
    }
    streams_close(&e->streams);
    free(e);
}
