/* tensors.c - accessors of adj_tensors, for tensors from any file. */
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "safetensors.h"
#include "tensors.h"

adj_tensors *tensors_new(void)
{
    adj_tensors *t = calloc(1, sizeof *t);
    if (t != NULL && (t->header = json_object()) == NULL) {
        free(t);
        return NULL;
    }
    return t;
}

static int make_room(adj_tensors *t)
{
    if (t->n < t->room)
        return 1;
    int room = t->room < 16 ? 16 : 2 * t->room;
    entry *more = realloc(t->entry, (size_t)room * sizeof *more);
    if (more == NULL)
        return 0;
    t->entry = more;
    t->room = room;
    return 1;
}

void *tensors_add(adj_tensors *t, const char *name, adj_elem elem, adj_shape shape,
                  adj_error *error)
{
    entry e = {.public = {.elem = elem, .shape = shape}};
    int64_t bytes = adj_tensor_bytes(&e.public);

    if (bytes < 0) {
        adj_error_set(error, ADJ_ESHAPE, "tensor %.80s: its size overflows", name);
        return NULL;
    }
    if (strcmp(name, METADATA_KEY) == 0 || json_object_get(t->header, name) != NULL) {
        adj_error_set(error, ADJ_EARG, "tensor %.80s: its name is used twice", name);
        return NULL;
    }
    if (!io_is_utf8(name)) {
        adj_error_set(error, ADJ_EARG, "tensor %.80s: its name is not UTF-8", name);
        return NULL;
    }
    const int is_named = json_object_set_new(t->header, name, json_null()) == 0;
    e.own = is_named && make_room(t) ? calloc((size_t)bytes + 1, 1) : NULL;
    if (e.own == NULL) {
        adj_error_set(error, ADJ_ENOMEM, "tensor %.80s: out of memory", name);
        return NULL;
    }
    e.public.name = json_object_iter_key(json_object_iter_at(t->header, name));
    e.public.data = e.own;
    t->entry[t->n++] = e;
    return e.own;
}

adj_status tensors_add_unreadable(adj_tensors *t, const char *name, const char *why,
                                  adj_error *error)
{
    adj_error local = {0};
    if (tensors_add(t, name, ADJ_ELEM_U8, (adj_shape){.rank = 0}, &local) == NULL)
        return adj_error_set(error, local.status, "%s", local.message);
    entry *e = &t->entry[t->n - 1];
    e->public.elem = ADJ_ELEM_UNREADABLE;
    e->public.data = NULL;
    snprintf(e->unreadable, sizeof e->unreadable, "%s", why);
    return ADJ_OK;
}

adj_status tensors_add_metadata(adj_tensors *t, const char *key, const char *value,
                                adj_error *error)
{
    json_t *all = json_object_get(t->header, METADATA_KEY);
    if (all == NULL) {
        if (json_object_set_new(t->header, METADATA_KEY, json_object()) != 0)
            return adj_error_set(error, ADJ_ENOMEM, "out of memory");
        all = json_object_get(t->header, METADATA_KEY);
    }
    if (!io_is_utf8(key) || !io_is_utf8(value))
        return adj_error_set(error, ADJ_EARG, "metadata %.80s: is not UTF-8", key);
    if (json_object_set_new(all, key, json_string(value)) != 0)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    return ADJ_OK;
}

const char *adj_tensors_message(const adj_tensors *t)
{
    return t != NULL ? t->message : "safetensors: out of memory";
}

int adj_tensors_count(const adj_tensors *t) { return t != NULL ? t->n : 0; }

adj_tensor adj_tensors_at(const adj_tensors *t, int i)
{
    return i >= 0 && i < adj_tensors_count(t) ? t->entry[i].public : (adj_tensor){0};
}

const char *adj_tensors_unreadable(const adj_tensors *t, int i)
{
    const int can_be_read = i < 0 || i >= adj_tensors_count(t) || t->entry[i].unreadable[0] == '\0';
    return can_be_read ? NULL : t->entry[i].unreadable;
}

int adj_tensors_find(const adj_tensors *t, const char *name)
{
    for (int i = 0; i < adj_tensors_count(t); i++)
        if (strcmp(t->entry[i].public.name, name) == 0)
            return i;
    return -1;
}

/* Returns the metadata object, or NULL. */
static json_t *metadata_of(const adj_tensors *t)
{
    return t != NULL && t->message[0] == '\0' ? json_object_get(t->header, METADATA_KEY) : NULL;
}

const char *adj_tensors_metadata(const adj_tensors *t, const char *key)
{
    return json_string_value(json_object_get(metadata_of(t), key));
}

/* Returns the *i-th metadata entry that is not a checksum; *i is then reduced by the entries
 * passed. */
static adj_metadata metadata_at(const adj_tensors *t, int *i)
{
    const char *key;
    json_t *value;
    int wanted = *i;

    *i = 0;
    json_object_foreach(metadata_of(t), key, value)
    {
        if (!is_sum_key(key) && (*i)++ == wanted)
            return (adj_metadata){key, json_string_value(value)};
    }
    return (adj_metadata){0};
}

int adj_tensors_metadata_count(const adj_tensors *t)
{
    int i = -1;
    (void)metadata_at(t, &i);
    return i;
}

adj_metadata adj_tensors_metadata_at(const adj_tensors *t, int i) { return metadata_at(t, &i); }

void adj_tensors_free(adj_tensors *t)
{
    if (t == NULL)
        return;
    for (int i = 0; i < t->n; i++)
        free(t->entry[i].own);
    json_decref(t->header);
    free(t->entry);
    free(t->data);
    free(t);
}
