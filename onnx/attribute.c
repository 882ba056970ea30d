/* attribute.c - reads the attributes of a node of the file. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "import.h"

enum { MAX_LIST = 2 * ADJ_MAX_RANK }; /* of integers: pads before and after each axis */

const Onnx__AttributeProto *attribute(const call *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->proto->attribute[i];
        if (a->name != NULL && strcmp(a->name, name) == 0)
            return a;
    }
    return NULL;
}

int64_t attr_int(const call *n, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL && a->has_i ? a->i : otherwise;
}

double meant_by(const import *f, float v)
{
    enum { DIGITS = 6, MAX_ROOT = 1024 };
    if (f->o->dtype != ADJ_F64 || !isfinite(v))
        return (double)v;
    char text[32];
    c_snprintf(text, sizeof text, "%.*g", DIGITS, (double)v);
    const double decimal = c_strtod(text, NULL);
    if ((float)decimal == v)
        return decimal;
    for (int k = 2; k <= MAX_ROOT; k++) {
        const double known[] = {1.0 / k, sqrt(k), sqrt(1.0 / k)};
        for (int i = 0; i < 3; i++)
            if ((float)known[i] == fabsf(v))
                return copysign(known[i], (double)v);
    }
    return (double)v;
}

double attr_float(const call *n, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL && a->has_f ? meant_by(n->f, a->f) : otherwise;
}

word attr_word(const call *n, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    word w = {""};
    if (a != NULL && a->has_s) {
        const size_t length = a->s.len < sizeof w.s - 1 ? a->s.len : sizeof w.s - 1;
        memcpy(w.s, a->s.data, length);
    } else {
        strncpy(w.s, otherwise, sizeof w.s - 1);
    }
    return w;
}

int attr_is(const call *n, const char *name, const char *text, const char *otherwise)
{
    return strcmp(attr_word(n, name, otherwise).s, text) == 0;
}

int attr_ints(const call *n, const char *name, const int64_t **list)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    *list = a != NULL ? a->ints : NULL;
    return a == NULL ? -1 : a->n_ints > MAX_LIST ? MAX_LIST : (int)a->n_ints;
}

int int_list(call *n, const char *name, int i, const int64_t **list)
{
    if (name != NULL && attribute(n, name) != NULL)
        return attr_ints(n, name, list);
    if (i < 0 || !has_in(n, i))
        return -1;
    const numbers *v = in_known(n, i);
    if (v == NULL)
        return -2;
    if (v->i == NULL || v->shape.rank > 1 || v->n > MAX_LIST) {
        refuse(n, "operand %d is not a list of integers", i);
        return -2;
    }
    *list = v->i;
    return (int)v->n;
}
