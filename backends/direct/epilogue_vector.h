/* epilogue_vector.h - an epilogue (epilogue.h) of a vector of sums, in code that is compiled for an
 * instruction set and a type. */
#ifndef DIRECT_EPILOGUE_VECTOR_H
#define DIRECT_EPILOGUE_VECTOR_H

#include "element.h"

/* The operands for some outputs, from the first on; NULL or 0: there is none. */
typedef struct {
    const T *bias, *addend;
    int has_relu;
} epilogue_operands;

/* Rounded to T, and widened again: what a step by itself would have read. */
static inline vector rounded_vector(vector v)
{
#ifdef ELEM_bf16
    T stored[VECTOR];
    store_vector(stored, v);
    v = load_vector(stored);
#endif
    return v;
}

/* v: sums of the outputs from `at` on, which bias and addend are indexed by. A NaN stays one. */
static inline vector epilogue_vector(const epilogue_operands *e, ptrdiff_t at, vector v)
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
