/* key.c - keys of a tune file: text that identifies a group, a machine or an implementation. A key
 * does not depend on the position of a group in its graph. */
#include <string.h>

#include "base/c_locale.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "tune.h"

enum { HASH_DIGITS = 18 }; /* with "#" and the end */

typedef struct {
    char *text;
    size_t used, size; /* size: what may be used, the end left out */
    uint64_t hash;     /* hash of all bytes, also of those that did not fit */
} writer;

static void add_bytes(writer *w, const void *data, size_t n)
{
    w->hash = hash_bytes(w->hash, data, n);
}

static void add_number(writer *w, int number)
{
    unsigned char bytes[sizeof number];
    memcpy(bytes, &number, sizeof number);
    add_bytes(w, bytes, sizeof bytes);
}

/* Appends text that a line of the file may hold: printable characters, no tab. */
__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    char piece[512];
    va_list args;
    va_start(args, format);
    c_vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    add_bytes(w, piece, strlen(piece));
    for (const char *c = piece; *c != '\0' && w->used < w->size; c++)
        w->text[w->used++] = *c >= ' ' && *c < 0x7f ? *c : '_';
    w->text[w->used] = '\0';
}

/* ---- a group ---- */

static void put_type(writer *w, adj_type t)
{
    put(w, "%s[", adj_dtype_name(t.dtype));
    for (int i = 0; i < t.shape.rank; i++)
        put(w, "%s%lld", i > 0 ? "," : "", (long long)t.shape.dim[i]);
    put(w, "]");
}

/* Appends an operand's type, and whether its reorders cost nothing. */
static void put_operand(writer *w, const adj_exec *e, const adj_node *value)
{
    put_type(w, value->type);
    if (is_invariant(e, value))
        put(w, ":invariant");
}

static adj_status put_node(writer *w, const adj_group *g, const adj_node *n)
{
    char shown[160] = "";
    if (n->op->schema != NULL) {
        FILE *f = fmemopen(shown, sizeof shown, "w");
        if (f == NULL)
            return ADJ_ENOMEM;
        adj_show_attrs(n, f);
        fclose(f);
        shown[sizeof shown - 1] = '\0';
    }
    put(w, " %s%s=", n->op->name, shown);
    put_type(w, n->type);
    add_bytes(w, n->attrs, adj_attr_size(n->op));
    for (int i = 0; i < n->n_in; i++) { /* edges of the group */
        add_number(w, adj_position(g->n_in, g->in, n->in[i]));
        add_number(w, adj_position(g->n_node, g->node, n->in[i]));
    }
    add_number(w, adj_position(g->n_out, g->out, n) >= 0);
    return ADJ_OK;
}

adj_status tune_key(const adj_exec *e, const adj_group *g, char key[TUNE_KEY])
{
    writer w = {.text = key, .size = TUNE_KEY - HASH_DIGITS, .hash = HASH_START};
    adj_status status = ADJ_OK;
    put(&w, "threads=%d math=%s", e->opts.threads,
        e->opts.math == ADJ_MATH_FAST ? "fast" : "exact");
    const int first = first_backend(e, g->node[0]->op);
    for (int b = first; b <= e->backends.fallback; b++)
        put(&w, "%s%s", b == first ? " " : ">", e->backends.list[b]->name);
    for (int i = 0; i < g->n_node && status == ADJ_OK; i++)
        status = put_node(&w, g, g->node[i]);
    for (int i = 0; i < g->n_in; i++) {
        put(&w, "%s", i == 0 ? " of " : " ");
        put_operand(&w, e, g->in[i]);
    }
    snprintf(key + w.used, HASH_DIGITS, "#%016llx", (unsigned long long)w.hash);
    return status;
}

/* ---- a machine ---- */

static void end_line(writer *w)
{
    if (w->used < w->size)
        w->text[w->used++] = '\n';
    w->text[w->used] = '\0';
}

void tune_header(const adj_exec *e, char header[TUNE_HEADER])
{
    writer w = {.text = header, .size = TUNE_HEADER - 1};
    const machine_facts machine = machine_look("");
    put(&w, TUNE_BEGIN " 4, library %d", ADJ_VERSION);
    end_line(&w);
    put(&w, "cpu %s", machine.name);
    end_line(&w);
    put(&w, "isa %s", machine.features);
    end_line(&w);
    for (int i = 0; i < e->backends.n; i++) {
        char about[128];
        describe_backend(e->backends.list[i], about, sizeof about);
        put(&w, "backend %s %s", e->backends.list[i]->name, about);
        end_line(&w);
    }
}

/* ---- an implementation ---- */

static void put_layout(writer *w, const adj_backend *b, const char *side, int i,
                       const adj_layout *layout)
{
    if (layout != NULL)
        put(w, " %s%d=%s", side, i, layout_name_of(b, layout));
}

size_t tune_impl(const adj_exec *e, const step *s, char impl[TUNE_IMPL])
{
    writer w = {.text = impl, .size = TUNE_IMPL - 1};
    put(&w, "%s", s->prep.impl);
    const size_t name = w.used;
    for (int i = 0; i < s->group.n_in; i++)
        put_layout(&w, e->backends.list[s->backend], "in", i, s->prep.in[i]);
    for (int i = 0; i < s->group.n_out; i++)
        put_layout(&w, e->backends.list[s->backend], "out", i, s->prep.out[i]);
    return name;
}
