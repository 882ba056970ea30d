/* dropout.c - y[i] = x[i] / (1 - rate) where word k % 4 of philox({k / 4, step}, seed), k = first +
 * i, is at least rate * 2^32, else 0. */
#include "kernels.h"

enum { WORDS = 4, PARALLEL_BLOCKS = 1 << 9 };

adj_status KERNEL(dropout)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const adj_dropout_attrs *a = node->attrs;
    const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
    const T *x = operand(c, 0);
    const int32_t *step = operand(c, 1);
    const int64_t first = a->first, end = first + adj_shape_elems(node->type.shape);
    const int64_t from = first / WORDS, to = (end + WORDS - 1) / WORDS;
    double threshold = a->rate * 0x1p32;
    A scale = (A)(1 / (1 - a->rate));
    T *y = c->out[0];

#pragma omp parallel for if (to - from > PARALLEL_BLOCKS)
    for (int64_t b = from; b < to; b++) {
        const uint32_t counter[WORDS] = {(uint32_t)b, (uint32_t)((uint64_t)b >> 32),
                                         (uint32_t)*step, 0};
        uint32_t word[WORDS];
        adj_philox(counter, key, word);
        const int64_t k = b * WORDS > first ? b * WORDS : first;
        for (int64_t i = k; i < end && i < (b + 1) * WORDS; i++)
            st(y + (i - first), word[i % WORDS] >= threshold ? ld(x + (i - first)) * scale : 0);
    }
    return ADJ_OK;
}
