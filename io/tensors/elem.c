/* elem.c - element types of tensors in files. */
#include <math.h>
#include <string.h>

#include "tensors.h"
#include "graph/op.h"

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
    int64_t bytes, elems_of = adj_shape_elems(t->shape);
    size_t each = adj_elem_size(t->elem);
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
