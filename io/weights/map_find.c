/* map_find.c - finds the tensor in another program's file for each parameter.
 *
 * Wrappers put a prefix before every name: torch.compile "_orig_mod.", DataParallel "module.",
 * a model that owns another "backbone.". The prefix is found by votes, without a list: it is the
 * text that stands before expected names most often. Keras numbers layers without a given name, and
 * HDF5 files nest names: there an expected name stands for the only tensor whose name ends with it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "map.h"

/* A way to join layer and part to a name. */
typedef struct {
    const char *between, *after;
    int is_index; /* the part is a number */
} form;
static const form torch_forms[] = {{".", "", 0}};
static const form keras_forms[] = {{"/", "", 0}, {"/", ":0", 0}, {".", "", 0}, {"/vars/", "", 1}};

typedef struct {
    const adj_tensors *theirs;
    int keras;
    const form *form;
    int n_form;
    char prefix[MAP_NAME]; /* prefix of at least half of the names in the file, or "" */
} search;

/* One of the names of a parameter. */
typedef struct {
    int layer, is_other, form;
} candidate;

static int count_candidates(const search *s, const names *n) { return n->n_layer * 2 * s->n_form; }

/* Sets *c to the i-th candidate. Returns 0 if the parameter has no such candidate. */
static int candidate_at(const search *s, const names *n, int i, candidate *c)
{
    *c = (candidate){i / (2 * s->n_form), i / s->n_form % 2, i % s->n_form};
    return !c->is_other || n->other != NULL;
}

/* Writes the name of source k; a parameter has two sources if they are stacked. */
static void put_name(char name[MAP_NAME], const search *s, const char *prefix, const names *n,
                     const candidate *c, int k)
{
    const form *f = &s->form[c->form];
    const char *layer = n->layer[c->layer], *part = c->is_other ? n->other : n->part[k];
    char number[16];

    snprintf(number, sizeof number, "%d", n->index + k);
    snprintf(name, MAP_NAME, "%.60s%.100s%s%.80s%s", prefix, layer,
             layer[0] != '\0' ? f->between : "", f->is_index ? number : part, f->after);
}

/* Returns the length of what stands before name in full, or -1 if full does not end with it. */
static int length_before(const char *full, const char *name)
{
    const size_t n = strlen(full), end = strlen(name);
    if (n < end || strcmp(full + n - end, name) != 0)
        return -1;
    return n == end || full[n - end - 1] == '.' || full[n - end - 1] == '/' ? (int)(n - end) : -1;
}

/* ---- the prefix ---- */

typedef struct {
    const char *text;
    int length, votes, last; /* last: the parameter that voted last, which votes once */
} prefix;

typedef struct {
    int n;
    prefix *list;
} prefixes;

/* Counts a parameter's vote for a prefix, once. Returns 0 if memory is short. */
static int vote(prefixes *all, const char *text, int length, int parameter)
{
    int i = 0;
    while (i < all->n &&
           (all->list[i].length != length || strncmp(all->list[i].text, text, (size_t)length) != 0))
        i++;
    if (i == all->n) {
        prefix *list = with_room(all->list, all->n, sizeof *list);
        if (list == NULL)
            return 0;
        all->list = list;
        all->list[all->n++] = (prefix){text, length, 0, -1};
    }
    all->list[i].votes += all->list[i].last != parameter;
    all->list[i].last = parameter;
    return 1;
}

/* Votes for all texts that stand before a name of a parameter in the file. Returns 0 if memory is
 * short. */
static int vote_for(prefixes *all, const search *s, const char *name, int parameter)
{
    int ok = 1;
    for (int k = 0; ok && k < s->theirs->n; k++) {
        const char *full = s->theirs->tensor[k].name;
        const int length = length_before(full, name);
        ok = length < 0 || vote(all, full, length, parameter);
    }
    return ok;
}

/* Takes the prefix that stands before the names of at least half of the n parameters, and of more
 * than have none. is_counted: memory sufficed for all votes. */
static adj_status choose_prefix(search *s, int n, const prefixes *p, int is_counted,
                                adj_error *error)
{
    const prefix none = {"", 0, 0, 0}, *best = &none, *equal = NULL;

    if (!is_counted)
        return adj_error_set(error, ADJ_ENOMEM, "map: out of memory");
    for (int i = 0; i < p->n; i++) {
        equal = p->list[i].votes == best->votes ? &p->list[i] : equal;
        if (p->list[i].votes > best->votes) {
            best = &p->list[i];
            equal = NULL;
        }
    }
    if (best->length == 0 || 2 * best->votes < n)
        return ADJ_OK;
    if (equal != NULL)
        return adj_error_set(error, ADJ_EARG,
                             "map: the file has two sets of weights, %.*s* and %.*s* (expected "
                             "one: leave the other out of the file)",
                             best->length, best->text, equal->length, equal->text);
    snprintf(s->prefix, sizeof s->prefix, "%.*s", best->length, best->text);
    return ADJ_OK;
}

static adj_status find_prefix(search *s, int n, const names all[], adj_error *error)
{
    prefixes p = {0};
    candidate c;
    char name[MAP_NAME];
    int ok = vote(&p, "", 0, -1);

    for (int i = 0; i < n; i++)
        for (int k = 0; ok && k < count_candidates(s, &all[i]); k++)
            if (candidate_at(s, &all[i], k, &c)) {
                put_name(name, s, "", &all[i], &c, 0);
                ok = vote_for(&p, s, name, i);
            }
    const adj_status status = choose_prefix(s, n, &p, ok, error);
    free(p.list);
    return status;
}

/* ---- one parameter ---- */

/* Replaces name by the name of the only tensor that ends with it. Returns 0 if there is none or
 * more than one. */
static int find_ending(const search *s, char name[MAP_NAME])
{
    int found = -1;
    for (int k = 0; k < s->theirs->n; k++) {
        if (length_before(s->theirs->tensor[k].name, name) < 0)
            continue;
        if (found >= 0)
            return 0;
        found = k;
    }
    if (found < 0 || strlen(s->theirs->tensor[found].name) >= MAP_NAME)
        return 0;
    snprintf(name, MAP_NAME, "%s", s->theirs->tensor[found].name);
    return 1;
}

/* Writes the name under which the file has source k. Returns 0 if the file does not have it. */
static int find_name(const search *s, const names *n, const candidate *c, int k,
                     char name[MAP_NAME])
{
    put_name(name, s, s->prefix, n, c, k);
    if (adj_tensors_find(s->theirs, name) >= 0)
        return 1;
    put_name(name, s, "", n, c, k);
    return adj_tensors_find(s->theirs, name) >= 0 || (s->keras && find_ending(s, name));
}

/* Gives e the first candidate that the file has, else the first of all. Returns 1 if the file has
 * one. */
static int choose(const search *s, map_entry *e, const names *n)
{
    candidate c = {0};
    int found = 0;

    for (int i = 0; i < count_candidates(s, n) && !found; i++)
        found = candidate_at(s, n, i, &c) && find_name(s, n, &c, 0, e->theirs[0]);
    if (!found) {
        c = (candidate){0};
        put_name(e->theirs[0], s, s->prefix, n, &c, 0);
    }
    e->n_theirs = 1;
    if (n->part[1] != NULL && !find_name(s, n, &c, 1, e->theirs[e->n_theirs++]))
        put_name(e->theirs[1], s, s->prefix, n, &c, 1);
    return found;
}

/* ---- Keras's layers without a name ---- */

/* Returns the number of the layer in a tensor's name, 2 of "sequential/dense_2/kernel", or -1. */
static int64_t number_in(const char *name, const char *kind)
{
    const size_t length = strlen(kind);
    for (const char *at = name; at != NULL; at = strpbrk(at, "/."), at += at != NULL) {
        char *end = (char *)at + length;
        if (strncmp(at, kind, length) != 0)
            continue;
        if (*end == '/' || *end == '.')
            return 0;
        if (*end != '_' || end[1] < '1' || end[1] > '9')
            continue;
        const long number = strtol(end + 1, &end, 10);
        if ((*end == '/' || *end == '.') && number < INT32_MAX)
            return number;
    }
    return -1;
}

/* Returns the smallest number above that of the file's layers of this kind, or -1. */
static int64_t next_number(const search *s, const char *kind, int64_t above)
{
    int64_t next = -1;
    for (int k = 0; k < s->theirs->n; k++) {
        const int64_t number = number_in(s->theirs->tensor[k].name, kind);
        if (number > above && (next < 0 || number < next))
            next = number;
    }
    return next;
}

static void put_numbered(char layer[MAP_NAME], const char *kind, int64_t number)
{
    if (number > 0)
        snprintf(layer, MAP_NAME, "%s_%lld", kind, (long long)number);
    else
        snprintf(layer, MAP_NAME, "%s", kind);
}

/* Adds the file's numbered names of a kind to our layers of that kind that were not found, both in
 * order. Adds none if the numbers of both differ. */
static void name_numbered(const search *s, int n, names all[], const char found[], const char *kind)
{
    const char *layer = NULL;
    int64_t number = -1;

    for (int apply = 0; apply < 2; apply++) {
        number = -1;
        layer = NULL;
        for (int i = 0; i < n; i++) {
            if (found[i] || all[i].kind == NULL || strcmp(all[i].kind, kind) != 0)
                continue;
            if (layer == NULL || strcmp(layer, all[i].own) != 0) {
                layer = all[i].own;
                if ((number = next_number(s, kind, number)) < 0)
                    return;
            }
            if (apply && all[i].n_layer < MAX_LAYERS)
                put_numbered(all[i].layer[all[i].n_layer++], kind, number);
        }
        if (next_number(s, kind, number) >= 0)
            return;
    }
}

adj_status map_find_names(weight_map *m, names all[], int keras, const adj_tensors *theirs,
                          adj_error *error)
{
    static const char *const kinds[] = {"conv2d", "depthwise_conv2d", "separable_conv2d", "dense",
                                        "batch_normalization"};
    search s = {theirs, keras, torch_forms, 1, ""};
    if (keras) {
        s.form = keras_forms;
        s.n_form = sizeof keras_forms / sizeof *keras_forms;
    }
    const adj_status status = find_prefix(&s, m->n, all, error);
    if (status != ADJ_OK)
        return status;
    char *found = calloc((size_t)m->n + 1, 1);
    if (found == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "map: out of memory");
    for (int i = 0; i < m->n; i++)
        found[i] = (char)choose(&s, &m->entry[i], &all[i]);
    for (size_t k = 0; keras && k < sizeof kinds / sizeof *kinds; k++)
        name_numbered(&s, m->n, all, found, kinds[k]);
    for (int i = 0; keras && i < m->n; i++)
        if (!found[i])
            (void)choose(&s, &m->entry[i], &all[i]);
    free(found);
    return ADJ_OK;
}
