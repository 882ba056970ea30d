/* epilogue_vector.h - applies an epilogue (epilogue.h) to a vector of sums; compiled per
 * instruction set and type. */
#ifndef DIRECT_EPILOGUE_VECTOR_H
#define DIRECT_EPILOGUE_VECTOR_H

#include "element.h"

/* Operands for consecutive outputs, from the first on; NULL or 0 if absent. */
typedef struct {
    const T *bias, *addend;
    int has_relu;
} epilogue_operands;

/* Rounds to T and widens again: the value that an unfused step would have read. */
static inline vector_value rounded_vector(vector_value v)
{
#ifdef ELEM_bf16
    T stored[VECTOR];
    store_vector(stored, v);
    v = load_vector(stored);
#endif
    return v;
}

/* Applies the epilogue to v, the sums of outputs from `at` on; bias and addend have the same
 * index. NaN stays NaN. */
static inline vector_value epilogue_vector(const epilogue_operands *e, ptrdiff_t at, vector_value v)
{
    if (e->bias != NULL)
        v += load_vector(e->bias + at);
    if (e->addend != NULL)
        v = rounded_vector(v) + load_vector(e->addend + at);
    if (e->has_relu)
        v = relu_vector(v);
    return v;
}

static inline real epilogue_element(const epilogue_operands *e, ptrdiff_t at, real v)
{
    if (e->bias != NULL)
        v += ld(e->bias[at]);
    if (e->addend != NULL)
        v = ld(st(v)) + ld(e->addend[at]);
    return e->has_relu && v <= 0 ? 0 : v;
}

#endif
