/* dropout.h - dropout: the random numbers of ops/dropout.c for many elements at a time. */
#ifndef DIRECT_DROPOUT_H
#define DIRECT_DROPOUT_H

#include "backends/direct/direct.h"

enum { DROPOUT_CHUNK = 2048 }; /* elements of a job */

typedef struct {
    direct_work work;
    adj_dtype dtype;
    int64_t n, first; /* elements; index of the first */
    uint32_t key[2];
    int64_t kept_from; /* the smallest word that keeps an element */
    float scale;
} dropout;

#endif
