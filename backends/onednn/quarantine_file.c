/* quarantine_file.c - quarantine rows from a text file, as adjoint selftest writes them.
 *
 * One row a line, seven words and then the reason; # begins a comment, * means any:
 *   version isa task dtype implementation geometry reason...
 *   2.6.3 avx512_core backward_weights f32 brgconv:avx512_core gic=9..15,kh=1,kw=1,sh=2.. SIGSEGV
 * A row holds for this very version, for CPUs that have the isa, for implementations whose name
 * contains the word, and for geometries that have all the values named: a number, a range, or all
 * from a number on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn.h"

enum { MAX_ROWS = 100000 };

typedef struct {
    const char *name;
    int value;
} named;

static const named tasks[] = {{"forward", TASK_FORWARD},
                              {"backward_data", TASK_BACKWARD_DATA},
                              {"backward_weights", TASK_BACKWARD_WEIGHTS},
                              {"avg_pool", TASK_AVG_POOL},
                              {"avg_pool_backward", TASK_AVG_POOL_BACKWARD}};
static const named dtypes[] = {{"f32", ADJ_F32}, {"bf16", ADJ_BF16}, {"f16", ADJ_F16}};

/* In the order of geometry_of. gic, goc: the channels of one group; a depthwise convolution has gic
 * 1 and the multiplier as goc. */
static const char *const keys[N_KEY] = {"n",  "ih",     "iw",  "ic",  "oh",  "ow", "oc",
                                        "kh", "kw",     "sh",  "sw",  "dh",  "dw", "pt",
                                        "pl", "groups", "gic", "goc", "nhwc"};

static int64_t geometry_of(const implementation *im, int key)
{
    const adj_conv_geom *g = im->geom;
    const int64_t gic = g->ic / g->groups, goc = g->oc / g->groups, nhwc = im->channels_last;
    const int64_t all[N_KEY] = {g->n,  g->ih,     g->iw, g->ic, g->oh, g->ow, g->oc,
                                g->kh, g->kw,     g->sh, g->sw, g->dh, g->dw, g->pt,
                                g->pl, g->groups, gic,   goc,   nhwc};
    return all[key];
}

/* ---- a line ---- */

typedef struct {
    char *word[6], *reason;
} fields;

static const char *split(char *line, fields *f)
{
    char *p = line;
    for (int i = 0; i < 6; i++) {
        p += strspn(p, " \t");
        if (*p == '\0')
            return "too few words (expected 6 and a reason)";
        f->word[i] = p;
        p += strcspn(p, " \t");
        if (*p != '\0')
            *p++ = '\0';
    }
    f->reason = p + strspn(p, " \t");
    return *f->reason == '\0' ? "the reason is missing" : NULL;
}

/* -1: any; -2: unknown */
static int look_up(const char *word, const named *list, size_t n)
{
    if (strcmp(word, "*") == 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, list[i].name) == 0)
            return list[i].value;
    return -2;
}

static const char *read_version(const char *word, quarantine_row *r)
{
    long n[3];
    if (strcmp(word, "*") == 0)
        return NULL;
    for (int i = 0; i < 3; i++) {
        char *end;
        n[i] = strtol(word, &end, 10);
        if (end == word || n[i] < 0 || n[i] > 99 || *end != (i < 2 ? '.' : '\0'))
            return "the version is wrong (expected a.b.c or *)";
        word = end + 1;
    }
    r->version = (int)(n[0] * 10000 + n[1] * 100 + n[2]);
    return NULL;
}

/* "7", "7..9" or "7..". 0: it is none of these. */
static int read_range(const char *text, int64_t *min, int64_t *max)
{
    char *end;
    errno = 0;
    *min = *max = strtoll(text, &end, 10);
    if (end == text || errno != 0 || *min < 0)
        return 0;
    if (strncmp(end, "..", 2) != 0)
        return *end == '\0';
    *max = INT64_MAX;
    if (end[2] == '\0')
        return 1;
    text = end + 2;
    *max = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *min <= *max;
}

static const char *read_geometry(char *word, quarantine_row *r)
{
    for (int k = 0; k < N_KEY; k++)
        r->max[k] = INT64_MAX;
    if (strcmp(word, "*") == 0)
        return NULL;
    for (char *p = word; p != NULL;) {
        char *comma = strchr(p, ','), *equals;
        int k = 0;
        if (comma != NULL)
            *comma = '\0';
        if ((equals = strchr(p, '=')) == NULL)
            return "the geometry is wrong (expected key=number,...)";
        *equals = '\0';
        while (k < N_KEY && strcmp(p, keys[k]) != 0)
            k++;
        if (k == N_KEY)
            return "the geometry has an unknown key";
        if (!read_range(equals + 1, &r->min[k], &r->max[k]))
            return "the geometry has a wrong number";
        p = comma != NULL ? comma + 1 : NULL;
    }
    return NULL;
}

/* What is wrong with the line, NULL: nothing. */
static const char *read_row(char *line, quarantine_row *r)
{
    fields f;
    const char *wrong = split(line, &f);
    if (wrong == NULL)
        wrong = read_version(f.word[0], r);
    if (wrong != NULL)
        return wrong;
    r->isa = strcmp(f.word[1], "*") == 0 ? 0 : isa_of(f.word[1]);
    r->task = look_up(f.word[2], tasks, sizeof tasks / sizeof *tasks);
    r->dtype = look_up(f.word[3], dtypes, sizeof dtypes / sizeof *dtypes);
    if (r->isa == ISA_UNKNOWN)
        return "unknown isa";
    if (r->task == -2)
        return "unknown task (expected forward, backward_data, backward_weights, "
               "avg_pool[_backward] or *)";
    if (r->dtype == -2)
        return "unknown dtype (expected f32, bf16, f16 or *)";
    if (strlen(f.word[4]) >= sizeof r->name)
        return "the implementation's name is too long";
    snprintf(r->name, sizeof r->name, "%s", strcmp(f.word[4], "*") == 0 ? "" : f.word[4]);
    snprintf(r->reason, sizeof r->reason, "%.*s", (int)sizeof r->reason - 1, f.reason);
    return read_geometry(f.word[5], r);
}

/* ---- the file ---- */

static quarantine_row *new_row(onednn *o)
{
    if (o->n_row == o->max_row) {
        int more = o->max_row > 0 ? 2 * o->max_row : 16;
        quarantine_row *bigger = adj_alloc(&o->allocator, (size_t)more * sizeof *bigger);
        if (bigger == NULL)
            return NULL;
        if (o->n_row > 0)
            memcpy(bigger, o->row, (size_t)o->n_row * sizeof *bigger);
        adj_release(&o->allocator, o->row);
        o->row = bigger;
        o->max_row = more;
    }
    return memset(&o->row[o->n_row++], 0, sizeof(quarantine_row));
}

static adj_status read_rows(onednn *o, FILE *f, const char *path, char *message)
{
    char line[LINE];
    int more, number = 1;
    for (; (more = next_line(f, line)) > 0; number++) {
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t")] == '\0')
            continue;
        quarantine_row *r = number <= MAX_ROWS ? new_row(o) : NULL;
        if (r == NULL) {
            snprintf(message, ADJ_WHY, "quarantine file %.80s: too many lines", path);
            return number <= MAX_ROWS ? ADJ_ENOMEM : ADJ_EIO;
        }
        const char *wrong = read_row(line, r);
        if (wrong != NULL) {
            snprintf(message, ADJ_WHY, "quarantine file %.30s, line %d: %s", path, number, wrong);
            return ADJ_EIO;
        }
    }
    if (more < 0)
        snprintf(message, ADJ_WHY,
                 "quarantine file %.60s, line %d: too long, not text, or cut off in the middle",
                 path, number);
    else if (ferror(f))
        snprintf(message, ADJ_WHY, "quarantine file %.80s: cannot be read", path);
    return more < 0 || ferror(f) ? ADJ_EIO : ADJ_OK;
}

adj_status quarantine_read(onednn *o, const char *path, char *message)
{
    const char *why;
    FILE *f = open_regular(path, &why);
    if (f == NULL) {
        snprintf(message, ADJ_WHY, "quarantine file %.60s: %s", path, why);
        return ADJ_EIO;
    }
    adj_status status = read_rows(o, f, path, message);
    fclose(f);
    return status;
}

int quarantine_holds(const quarantine_row *r, const implementation *i, machine m)
{
    if ((r->version > 0 && r->version != m.version) || (m.isa & r->isa) != r->isa ||
        (r->task >= 0 && r->task != (int)i->task) || (r->dtype >= 0 && r->dtype != (int)i->dtype) ||
        strstr(i->name, r->name) == NULL)
        return 0;
    for (int k = 0; k < N_KEY; k++)
        if (geometry_of(i, k) < r->min[k] || geometry_of(i, k) > r->max[k])
            return 0;
    return 1;
}

void quarantine_describe(char *text, size_t size)
{
    machine m = this_machine();
    char isa[ISA_NAME];
    isa_spell(m.isa, isa);
    snprintf(text, size, "%d.%d.%d %s", m.version / 10000, m.version / 100 % 100, m.version % 100,
             isa);
}
