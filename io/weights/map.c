/* map.c - maps as text; and conversion of files between both kinds of names. A map has a line for
 * each of ours,
 *
 *     fc1/w = fc1.weight, reshape 128 64 7 7, permute 2 3 1 0, reshape 3136 128    # comment
 *     bn1/running = bn1.running_mean + bn1.running_var
 *
 * Names have no spaces and none of , = #. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/room.h"
#include "io/tensors/formats.h"
#include "map.h"
#include "weights.h"

void map_clear(weight_map *m)
{
    free(m->entry);
    *m = (weight_map){0};
}

map_entry *map_add(weight_map *m, adj_error *error)
{
    map_entry *list = with_room(m->entry, m->n, sizeof *list);
    if (list == NULL) {
        adj_error_set(error, ADJ_ENOMEM, "map: out of memory");
        return NULL;
    }
    m->entry = list;
    m->entry[m->n] = (map_entry){0};
    return &m->entry[m->n++];
}

const map_entry *map_find(const weight_map *m, const char *ours)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->entry[i].ours, ours) == 0)
            return &m->entry[i];
    return NULL;
}

/* ---- text ---- */

enum { MAX_FILE = 1 << 22 };

/* A line that is being read. */
typedef struct {
    const char *path;
    int line;
    adj_error *error;
} reader;

__attribute__((format(printf, 2, 3))) static adj_status fail(const reader *r, const char *format,
                                                             ...)
{
    char sentence[300];
    va_list args;
    va_start(args, format);
    c_vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return adj_error_set(r->error, ADJ_EIO, "map %.120s: line %d: %s", r->path, r->line, sentence);
}

/* Returns the next word of the line, NUL-terminated; "" at the end. A comma or = is a word. */
static char *next_word(char **at, int *mark)
{
    *at += strspn(*at, " \t\r");
    char *word = *at;
    *mark = word[0] == ',' || word[0] == '=';
    size_t n = *mark ? 1 : strcspn(word, " \t\r,=");
    *at += n;
    return word;
}

/* Copies the next word, which is a name. */
static adj_status read_name(const reader *r, char **at, char name[MAP_NAME], const char *label)
{
    int mark;
    const char *word = next_word(at, &mark);
    size_t n = (size_t)(*at - word);
    if (n == 0 || mark || (n == 1 && *word == '+'))
        return fail(r, "%s is missing (expected ours = theirs, or ours = theirs + theirs)", label);
    if (n >= MAP_NAME)
        return fail(r, "%s is too long (got %zu characters, expected at most %d)", label, n,
                    MAP_NAME - 1);
    memcpy(name, word, n);
    name[n] = '\0';
    return ADJ_OK;
}

/* Skips the next word if it is this character; returns whether it is. */
static int passes(char **at, char wanted)
{
    char *before = *at;
    int mark;
    const char *word = next_word(at, &mark);
    if (*at - word == 1 && *word == wanted)
        return 1;
    *at = before;
    return 0;
}

/* True if the list has each axis once. */
static int is_permutation(adj_shape list)
{
    unsigned seen = 0;
    for (int64_t i = 0; i < list.rank; i++) {
        if (list.dim[i] < 0 || list.dim[i] >= list.rank)
            return 0;
        seen |= 1U << list.dim[i];
    }
    return seen == (1U << list.rank) - 1;
}

/* True if the list has at most one -1 and else sizes. */
static int is_shape(adj_shape list)
{
    int unknown = 0;
    for (int64_t i = 0; i < list.rank; i++)
        if (list.dim[i] == -1) {
            unknown++;
            list.dim[i] = 1;
        }
    return unknown <= 1 && adj_shape_elems(list) >= 0;
}

static adj_status read_numbers(const reader *r, char **at, adj_shape *list)
{
    char *end;
    int mark;

    for (*list = (adj_shape){0};; list->rank++) {
        char *word = next_word(at, &mark);
        if (*at == word || mark)
            return *at -= mark, ADJ_OK;
        errno = 0;
        long long number = strtoll(word, &end, 10);
        if (end != *at || errno != 0)
            return fail(r, "expected whole numbers (got \"%.*s\")", (int)(*at - word), word);
        if (list->rank == ADJ_MAX_RANK)
            return fail(r, "more than %d axes", ADJ_MAX_RANK);
        list->dim[list->rank] = number;
    }
}

static adj_status read_step(const reader *r, char **at, map_entry *e)
{
    int mark;
    const char *word = next_word(at, &mark);
    int n = (int)(*at - word);
    map_step *s = &e->step[e->n_step];

    if (e->n_step == MAP_STEPS)
        return fail(r, "more than %d steps", MAP_STEPS);
    s->is_reshape = n == 7 && memcmp(word, "reshape", 7) == 0;
    if (!s->is_reshape && !(n == 7 && memcmp(word, "permute", 7) == 0))
        return fail(r, "expected permute or reshape (got \"%.*s\")", n < 80 ? n : 80, word);
    adj_status status = read_numbers(r, at, &s->list);
    if (status != ADJ_OK)
        return status;
    if (!(s->is_reshape ? is_shape(s->list) : is_permutation(s->list)))
        return fail(r, s->is_reshape ? "reshape: expected sizes, of which one may be -1"
                                     : "permute: expected each axis from 0 on once");
    e->n_step++;
    return ADJ_OK;
}

static adj_status read_entry(const reader *r, char *at, map_entry *e)
{
    e->line = r->line;
    adj_status status = read_name(r, &at, e->ours, "our name");
    if (status == ADJ_OK && !passes(&at, '='))
        return fail(r, "expected = after %.80s", e->ours);
    do {
        if (status == ADJ_OK && e->n_theirs == MAP_SOURCES)
            return fail(r, "more than %d tensors for one", MAP_SOURCES);
        if (status == ADJ_OK)
            status = read_name(r, &at, e->theirs[e->n_theirs++], "their name");
    } while (status == ADJ_OK && passes(&at, '+'));
    while (status == ADJ_OK && passes(&at, ','))
        status = read_step(r, &at, e);
    if (status == ADJ_OK && at[strspn(at, " \t\r")] != '\0')
        return fail(r, "expected a comma (got \"%.80s\")", at + strspn(at, " \t\r"));
    return status;
}

static adj_status read_line(weight_map *m, const reader *r, char *line)
{
    line[strcspn(line, "#")] = '\0';
    if (line[strspn(line, " \t\r")] == '\0')
        return ADJ_OK;
    map_entry *e = map_add(m, r->error);
    if (e == NULL)
        return ADJ_ENOMEM;
    adj_status status = read_entry(r, line, e);
    const map_entry *first = status == ADJ_OK ? map_find(m, e->ours) : e;
    return first == NULL || first == e
               ? status
               : fail(r, "%.80s was given in line %d already", e->ours, first->line);
}

static adj_status read_text(weight_map *m, const char *path, char *text, int64_t bytes,
                            adj_error *error)
{
    reader r = {path, 1, error};
    adj_status status = ADJ_OK;

    if (memchr(text, 0, (size_t)bytes) != NULL)
        return fail(&r, "the file is not text");
    for (char *end; *text != '\0' && status == ADJ_OK; text = end, r.line++) {
        end = text + strcspn(text, "\n");
        if (*end == '\n')
            *end++ = '\0';
        status = read_line(m, &r, text);
    }
    if (status == ADJ_OK && m->n == 0)
        return fail(&r, "the file has no line ours = theirs");
    return status;
}

static adj_status map_read(weight_map *m, const char *path, adj_error *error)
{
    const char *why;
    char *text;
    int64_t bytes;
    adj_status status = io_load(path, MAX_FILE + 1, &text, &bytes, &why);
    if (status != ADJ_OK)
        adj_error_set(error, status, "map %.200s: %s (expected pytorch, keras or a file)", path,
                      why);
    else if (bytes > MAX_FILE)
        status = adj_error_set(error, ADJ_EIO, "map %.200s: is too long for a map", path);
    else
        status = read_text(m, path, text, bytes, error);
    free(text);
    return status;
}

static void map_print(const weight_map *m, FILE *f)
{
    for (int i = 0; i < m->n; i++) {
        const map_entry *e = &m->entry[i];
        fprintf(f, "%s = %s", e->ours, e->theirs[0]);
        if (e->n_theirs > 1)
            fprintf(f, " + %s", e->theirs[1]);
        for (int k = 0; k < e->n_step; k++) {
            fputs(e->step[k].is_reshape ? ", reshape" : ", permute", f);
            for (int64_t j = 0; j < e->step[k].list.rank; j++)
                fprintf(f, " %lld", (long long)e->step[k].list.dim[j]);
        }
        fputc('\n', f);
    }
}

/* ---- opening ---- */

static int map_is_builtin(const char *map)
{
    return strcmp(map, "pytorch") == 0 || strcmp(map, "keras") == 0;
}

adj_status map_open(weight_map *m, const char *map, adj_graph *g, const adj_tensors *theirs,
                    adj_error *error)
{
    static const adj_tensors none;
    *m = (weight_map){0};
    if (!map_is_builtin(map))
        return map_read(m, map, error);
    if (g == NULL)
        return adj_error_set(error, ADJ_EARG, "map %s: requires a model (--model NAME)", map);
    return map_name(m, strcmp(map, "keras") == 0, g, theirs != NULL ? theirs : &none, error);
}

/* ---- whole files ---- */

/* True if an entry uses that tensor. */
static int is_taken(const weight_map *m, const char *name, int to_theirs)
{
    for (int i = 0; i < m->n; i++) {
        const map_entry *e = &m->entry[i];
        if (to_theirs && strcmp(e->ours, name) == 0)
            return 1;
        for (int k = 0; !to_theirs && k < e->n_theirs; k++)
            if (strcmp(e->theirs[k], name) == 0)
                return 1;
    }
    return 0;
}

static adj_status convert(const weight_map *m, const adj_tensors *from, int to_theirs,
                          int keeps_others, adj_tensors *to, adj_error *error)
{
    adj_status status = ADJ_OK;

    for (int i = 0; i < m->n && status == ADJ_OK; i++)
        status = to_theirs ? map_export(&m->entry[i], from, to, error)
                           : map_import(&m->entry[i], from, to, error);
    for (int i = 0; i < from->n && status == ADJ_OK && keeps_others; i++) {
        adj_tensor t = from->tensor[i];
        if (adj_tensors_unreadable(from, i) == NULL && !is_taken(m, t.name, to_theirs))
            status = tensors_add_copy(to, t.name, t.elem, t.shape, t.data, error);
    }
    return status == ADJ_OK ? tensors_copy_metadata(to, from, error) : status;
}

adj_status adj_weights_convert(const adj_tensors *from, adj_graph *g, const char *map,
                               int to_theirs, adj_tensors **to, adj_error *error)
{
    adj_error local = {0};
    weight_map m;

    if (from == NULL || map == NULL || to == NULL)
        return adj_error_set(error, ADJ_EARG, "convert: expected tensors, a map and a result");
    *to = NULL;
    adj_status status = map_open(&m, map, g, to_theirs ? NULL : from, &local);
    if (status == ADJ_OK && (*to = tensors_new()) == NULL)
        status = adj_error_set(&local, ADJ_ENOMEM, "convert: out of memory");
    if (status == ADJ_OK)
        status = convert(&m, from, to_theirs, !map_is_builtin(map), *to, &local);
    map_clear(&m);
    if (status != ADJ_OK) {
        adj_tensors_free(*to);
        *to = NULL;
    }
    if (error != NULL && status != ADJ_OK)
        *error = local;
    return status;
}

adj_status adj_weights_print_map(FILE *f, adj_graph *g, const char *map, adj_error *error)
{
    weight_map m;

    if (f == NULL || map == NULL)
        return adj_error_set(error, ADJ_EARG, "map: expected a file to print to and a name");
    adj_status status = map_open(&m, map, g, NULL, error);
    if (status == ADJ_OK)
        map_print(&m, f);
    map_clear(&m);
    return status;
}
