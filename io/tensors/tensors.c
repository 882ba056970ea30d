/* tensors.c - element types of tensors, and lists of tensors, from any file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"
#include "graph/op.h"
#include "io/json.h"
#include "safetensors.h"
#include "tensors.h"

/* ---- element types ---- */

static const struct {
    const char *name, *word;  /* ours and safetensors' */
    const char *numpy, *in_c; /* types that have all its values */
    size_t size;
} elems[] = {
    [ADJ_ELEM_F32] = {"f32", "F32", "<f4", "float", 4},
    [ADJ_ELEM_F64] = {"f64", "F64", "<f8", "double", 8},
    [ADJ_ELEM_F16] = {"f16", "F16", "<f2", "float", 2},
    [ADJ_ELEM_BF16] = {"bf16", "BF16", "<f4", "float", 2},
    [ADJ_ELEM_I32] = {"i32", "I32", "<i4", "int32_t", 4},
    [ADJ_ELEM_I64] = {"i64", "I64", "<i8", "int64_t", 8},
    [ADJ_ELEM_I16] = {"i16", "I16", "<i2", "int16_t", 2},
    [ADJ_ELEM_I8] = {"i8", "I8", "|i1", "int8_t", 1},
    [ADJ_ELEM_U64] = {"u64", "U64", "<u8", "uint64_t", 8},
    [ADJ_ELEM_U32] = {"u32", "U32", "<u4", "uint32_t", 4},
    [ADJ_ELEM_U16] = {"u16", "U16", "<u2", "uint16_t", 2},
    [ADJ_ELEM_U8] = {"u8", "U8", "|u1", "uint8_t", 1},
    [ADJ_ELEM_BOOL] = {"bool", "BOOL", "|b1", "uint8_t", 1},
    [ADJ_ELEM_F8_E4M3] = {"f8_e4m3", "F8_E4M3", "<f4", "float", 1},
    [ADJ_ELEM_F8_E5M2] = {"f8_e5m2", "F8_E5M2", "<f4", "float", 1},
    [ADJ_ELEM_UNREADABLE] = {.name = "unreadable"},
};
enum { N_ELEM = sizeof elems / sizeof elems[0] };

static int is_elem(adj_elem elem) { return (int)elem >= 0 && (int)elem < N_ELEM; }
/* True if an executor has elements of this type. */
static int is_dtype(adj_elem elem) { return is_elem(elem) && elem <= ADJ_ELEM_I32; }

const char *adj_elem_name(adj_elem elem) { return is_elem(elem) ? elems[elem].name : "no type"; }
size_t adj_elem_size(adj_elem elem) { return is_elem(elem) ? elems[elem].size : 0; }
const char *elem_word(int i) { return i >= 0 && i < N_ELEM ? elems[i].word : NULL; }
const char *elem_in_numpy(adj_elem elem) { return elems[elem].numpy; }
const char *elem_in_c(adj_elem elem) { return elems[elem].in_c; }

adj_elem elem_of_numpy(char kind, int bytes)
{
    int i = 0;
    while (elems[i].numpy != NULL &&
           (elems[i].numpy[1] != kind || elems[i].numpy[2] != '0' + bytes))
        i++;
    return (adj_elem)i;
}

adj_tensor adj_tensor_of(const char *name, adj_type type, const void *data)
{
    return (adj_tensor){name, (adj_elem)type.dtype, type.shape, data};
}

int adj_tensor_type(const adj_tensor *t, adj_type *type)
{
    if (!is_dtype(t->elem))
        return 0;
    *type = (adj_type){(adj_dtype)t->elem, t->shape};
    return 1;
}

int64_t adj_tensor_bytes(const adj_tensor *t)
{
    int64_t bytes, elems_of = t != NULL ? adj_shape_elems(t->shape) : -1;
    size_t each = t != NULL ? adj_elem_size(t->elem) : 0;
    if (elems_of < 0 || each == 0 || __builtin_mul_overflow(elems_of, (int64_t)each, &bytes))
        return -1;
    return bytes;
}

/* Converts E4M3: sign, four bits of exponent with bias 7, three of significand; all ones are NaN.
 */
static double f8_e4m3(uint8_t bits)
{
    int exponent = bits >> 3 & 15, fraction = bits & 7;
    if (exponent == 15 && fraction == 7)
        return NAN;
    double size = exponent > 0 ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return bits >> 7 ? -size : size;
}

/* Converts E5M2, which is the upper half of an f16. */
static double f8_e5m2(uint8_t bits)
{
    uint16_t half = (uint16_t)(bits << 8);
    return adj_load(ADJ_F16, &half, 0);
}

double adj_tensor_value(const adj_tensor *t, int64_t i)
{
    const char *at = (const char *)t->data + i * (int64_t)adj_elem_size(t->elem);
    int64_t whole = 0; /* little-endian: the low bytes of an integer, sign put in below */

    switch (t->elem) {
    case ADJ_ELEM_I64: memcpy(&whole, at, 8); return (double)whole;
    case ADJ_ELEM_I16: memcpy(&whole, at, 2); return (int16_t)whole;
    case ADJ_ELEM_I8: return (signed char)*at;
    case ADJ_ELEM_U64: memcpy(&whole, at, 8); return (double)(uint64_t)whole;
    case ADJ_ELEM_U32: memcpy(&whole, at, 4); return (double)whole;
    case ADJ_ELEM_U16: memcpy(&whole, at, 2); return (double)whole;
    case ADJ_ELEM_U8:
    case ADJ_ELEM_BOOL: return (unsigned char)*at;
    case ADJ_ELEM_F8_E4M3: return f8_e4m3((uint8_t)*at);
    case ADJ_ELEM_F8_E5M2: return f8_e5m2((uint8_t)*at);
    default: return is_dtype(t->elem) ? adj_load((adj_dtype)t->elem, t->data, i) : NAN;
    }
}

/* ---- lists ---- */

static const tensor_list no_memory = {.public.message = "safetensors: out of memory"};

tensor_list *tensors_alloc(adj_tensors **t)
{
    tensor_list *list = calloc(1, sizeof *list);
    *t = list != NULL ? &list->public : (adj_tensors *)&no_memory.public;
    return list;
}

adj_tensors *tensors_new(void)
{
    tensor_list *list = calloc(1, sizeof *list);
    if (list != NULL && (list->header = json_object()) == NULL) {
        free(list);
        return NULL;
    }
    return &list->public;
}

static int make_room(tensor_list *list)
{
    entry *entries = with_room(list->entry, list->n, sizeof *entries);
    if (entries == NULL)
        return 0;
    list->entry = entries;
    adj_tensor *tensor = with_room(list->tensor, list->n, sizeof *tensor);
    if (tensor == NULL)
        return 0;
    list->public.tensor = list->tensor = tensor;
    return 1;
}

/* ---- the public part ---- */

/* Makes the header's metadata public, without checksums; returns 0 when out of memory. */
static int publish_metadata(tensor_list *list)
{
    json_t *all = json_object_get(list->header, METADATA_KEY), *value;
    const char *key;

    list->metadata = malloc((json_object_size(all) + 1) * sizeof *list->metadata);
    if (list->metadata == NULL)
        return 0;
    list->public.metadata = list->metadata;
    json_object_foreach(all, key, value)
    {
        if (!is_sum_key(key))
            list->metadata[list->public.n_metadata++] =
                (adj_metadata){key, json_string_value(value)};
    }
    return 1;
}

int tensors_publish(tensor_list *list)
{
    list->tensor = malloc(((size_t)list->n + 1) * sizeof *list->tensor);
    if (list->tensor == NULL || !publish_metadata(list))
        return 0;
    for (int i = 0; i < list->n; i++)
        list->tensor[i] = list->entry[i].public;
    list->public.tensor = list->tensor;
    list->public.n = list->n;
    return 1;
}

/* ---- adding ---- */

/* Adds a tensor of zeros, the list's last; copies the name. */
static adj_status add(tensor_list *list, const char *name, adj_elem elem, adj_shape shape,
                      adj_error *error)
{
    entry e = {.public = {.elem = elem, .shape = shape}};
    int64_t bytes = adj_tensor_bytes(&e.public);

    if (bytes < 0)
        return adj_error_set(error, ADJ_ESHAPE, "tensor %.80s: its size overflows", name);
    if (strcmp(name, METADATA_KEY) == 0 || json_object_get(list->header, name) != NULL)
        return adj_error_set(error, ADJ_EARG, "tensor %.80s: its name is used twice", name);
    if (!io_is_utf8(name))
        return adj_error_set(error, ADJ_EARG, "tensor %.80s: its name is not UTF-8", name);
    const int is_named = json_object_set_new(list->header, name, json_null()) == 0;
    e.own = is_named && make_room(list) ? calloc((size_t)bytes + 1, 1) : NULL;
    if (e.own == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "tensor %.80s: out of memory", name);
    e.public.name = json_object_iter_key(json_object_iter_at(list->header, name));
    e.public.data = e.own;
    list->tensor[list->n] = e.public;
    list->entry[list->n++] = e;
    list->public.n = list->n;
    return ADJ_OK;
}

adj_status tensors_add_copy(adj_tensors *t, const char *name, adj_elem elem, adj_shape shape,
                            const void *data, adj_error *error)
{
    tensor_list *list = list_of(t);
    const adj_status status = add(list, name, elem, shape, error);
    if (status == ADJ_OK)
        memcpy(list->entry[list->n - 1].own, data,
               (size_t)adj_shape_elems(shape) * adj_elem_size(elem));
    return status;
}

adj_status tensors_add_unreadable(adj_tensors *t, const char *name, const char *why,
                                  adj_error *error)
{
    tensor_list *list = list_of(t);
    const adj_status status = add(list, name, ADJ_ELEM_U8, (adj_shape){.rank = 0}, error);
    if (status != ADJ_OK)
        return status;
    entry *e = &list->entry[list->n - 1];
    e->public.elem = ADJ_ELEM_UNREADABLE;
    e->public.data = NULL;
    list->tensor[list->n - 1] = e->public;
    snprintf(e->unreadable, sizeof e->unreadable, "%s", why);
    return ADJ_OK;
}

adj_status tensors_copy_metadata(adj_tensors *to, const adj_tensors *from, adj_error *error)
{
    tensor_list *list = list_of(to);
    json_t *all = json_object();
    int ok = from->n_metadata == 0 || json_object_set(list->header, METADATA_KEY, all) == 0;

    for (int i = 0; ok && i < from->n_metadata; i++)
        ok = json_object_set_new(all, from->metadata[i].key,
                                 json_string(from->metadata[i].value)) == 0;
    json_decref(all);
    return ok && publish_metadata(list) ? ADJ_OK
                                        : adj_error_set(error, ADJ_ENOMEM, "out of memory");
}

/* ---- access ---- */

const char *adj_tensors_unreadable(const adj_tensors *t, int i)
{
    const int can_be_read = i < 0 || i >= t->n || list_of(t)->entry[i].unreadable[0] == '\0';
    return can_be_read ? NULL : list_of(t)->entry[i].unreadable;
}

int adj_tensors_find(const adj_tensors *t, const char *name)
{
    for (int i = 0; t != NULL && i < t->n; i++)
        if (strcmp(t->tensor[i].name, name) == 0)
            return i;
    return -1;
}

const char *adj_tensors_metadata(const adj_tensors *t, const char *key)
{
    const int has_any = t != NULL && t->message[0] == '\0';
    const json_t *all = has_any ? json_object_get(list_of(t)->header, METADATA_KEY) : NULL;
    return json_string_value(json_object_get(all, key));
}

void adj_tensors_free(adj_tensors *t)
{
    if (t == NULL || t == &no_memory.public)
        return;
    tensor_list *list = list_of(t);
    for (int i = 0; i < list->n; i++)
        free(list->entry[i].own);
    json_decref(list->header);
    free(list->entry);
    free(list->tensor);
    free(list->metadata);
    free(list->own_data);
    free(list);
}
