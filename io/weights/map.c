/* map.c - see map.h; and conversion of files between both kinds of names. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "io/tensors/formats.h"
#include "map_find.h"
#include "weights.h"

int map_is_builtin(const char *map)
{
    return strcmp(map, "pytorch") == 0 || strcmp(map, "keras") == 0;
}

adj_status map_open(weight_map *m, const char *map, adj_graph *g, const adj_tensors *theirs,
                    adj_error *error)
{
    static const adj_tensors none;
    *m = (weight_map){0};
    if (!map_is_builtin(map)) {
        const adj_status status = map_read(m, map, error);
        return status == ADJ_OK && theirs != NULL ? map_find_prefix(m, theirs, error) : status;
    }
    if (g == NULL)
        return adj_error_set(error, ADJ_EARG, "map %s: requires a model (--model NAME)", map);
    return map_name(m, strcmp(map, "keras") == 0, g, theirs != NULL ? theirs : &none, error);
}

void map_clear(weight_map *m)
{
    free(m->entry);
    *m = (weight_map){0};
}

map_entry *map_add(weight_map *m, adj_error *error)
{
    if (m->n == m->room) {
        int room = m->room < 16 ? 16 : 2 * m->room;
        map_entry *more = realloc(m->entry, (size_t)room * sizeof *more);
        if (more == NULL) {
            adj_error_set(error, ADJ_ENOMEM, "map: out of memory");
            return NULL;
        }
        m->entry = more;
        m->room = room;
    }
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

/* ---- whole files ---- */

static adj_status copy_tensor(const adj_tensor *from, adj_tensors *to, adj_error *error)
{
    void *data = tensors_add(to, from->name, from->elem, from->shape, error);
    if (data == NULL)
        return error != NULL ? error->status : ADJ_ENOMEM;
    memcpy(data, from->data, (size_t)adj_tensor_bytes(from));
    return ADJ_OK;
}

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
            status = copy_tensor(&t, to, error);
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
