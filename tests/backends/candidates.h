/* candidates.h - runs a group of nodes on a backend without the plan, so that every candidate of
 * its kernels is reached, and the same nodes one by one on naive. */
#ifndef CANDIDATES_H
#define CANDIDATES_H

#include "harness.h"
#include "graph/op.h"

typedef struct {
    const adj_backend *b;
    void *opened;
    int threads; /* threads that it was opened for and that kernels may use */
    uint32_t
        invariant; /* invariant operands of groups that are run, as in adj_prep; 0 when opened */
    int same_bits; /* 1: visit_candidates runs none with sums_by_threads; 0 when opened */
} test_backend;
test_backend backend_open(const char *name); /* for two threads */
test_backend backend_open_math(const char *name, int threads, adj_math math);
/* The direct backend for one instruction set. */
test_backend direct_open(const char *isa, int threads, adj_math math);
void backend_close(test_backend *t);

/* Kernels are run by one thread and by three. AddressSanitizer, which makes them many times as
 * slow, has three alone: their code is the same. */
static inline int min_threads(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return 3;
#else
    return 1;
#endif
}

typedef struct {
    adj_status status; /* status of prepare, reorders and run */
    char impl[64], why[ADJ_WHY], layouts[160];
    const char *kernel;
    int sums_by_threads; /* as in adj_prep */
    double *y;           /* malloc'ed; NULL if it did not run, or failed */
} outcome;

/* Runs the group {node[0 .. n)}, whose last node is the result and whose operands are fixture
 * inputs, with that candidate of the first kernel of t that takes it, twice in different buffers:
 * the second result. Buffers are NaN before; a write past the end of one fails the running test. */
outcome run_candidate(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      int number);
/* Runs the first candidate of the kernel of this name, like run_candidate. */
outcome run_kernel(fixture *f, const test_backend *t, const char *kernel, int n,
                   const adj_node *const node[]);
/* Returns the result of the first candidate on direct, malloc'ed; fails the running test unless its
 * implementation's name begins with impl and ends with the ISA. */
double *run_direct(fixture *f, const char *impl, const char *isa, int threads, int n,
                   const adj_node *const node[]);
/* Expects the kernel of this name (NULL: any) to refuse the group, with words that the reason has.
 */
void expect_no_kernel(fixture *f, const test_backend *t, const char *kernel, int n,
                      const adj_node *const node[], const char *why);
/* Runs each candidate of each kernel of t that takes the group, and calls visit with its outcome,
 * whose y is freed afterwards. */
void visit_candidates(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      void (*visit)(void *user, const outcome *o), void *user);
/* Returns y computed by naive kernels alone. */
double *by_naive(fixture *f, const adj_node *y);
/* Compares every candidate of t for the group with naive; returns their number. */
int expect_candidates(fixture *f, const test_backend *t, int n, const adj_node *const node[],
                      double rtol, double atol, const char *label);

#endif
