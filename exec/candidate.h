/* candidate.h - the candidates for a group of nodes: the group's nominal time, their enumeration,
 * and their memory. Used by the plan, tuning, bench and the tests of backends. */
#ifndef ADJ_CANDIDATE_H
#define ADJ_CANDIDATE_H

#include "graph/op.h"

/* ---- nominal time ----
 *
 * The time of a group is that of its arithmetic or of its memory traffic, whichever is longer
 * (Williams, Waterman, Patterson: Roofline, CACM 52(4), 2009). The machine is nominal: two cores of
 * an ordinary processor with this instruction set. It depends neither on measurements nor on the
 * number of threads, because it selects kernels and so determines the bits of results. Its ratios
 * are right to about a factor of two. */

typedef struct {       /* seconds for a group, as in adj_prep */
    double arithmetic; /* multiplications and additions */
    double memory;     /* operands and results, without fused values */
    double byte;       /* time of a byte that passes through memory */
    double seconds;    /* time of a good kernel, assumed to reach half of the roofline */
} nominal_time;

nominal_time nominal_of_group(const adj_group *g);
/* Returns the nominal multiplications and additions of a node. */
double flop_of(const adj_node *n);
/* Returns the seconds of a good kernel that reads and writes a value once. */
double nominal_copy(adj_type type);

/* ---- enumeration ----
 *
 * Each kernel of a backend offers number 0, 1, ... until it refuses one:
 *
 *     while (next_kernel(&c))
 *         for (; prepare_candidate(&c) == ADJ_OK; c.number++)
 *             ... c.prep ..., drop_candidate(&c) */

typedef struct {
    const adj_backend *backend;
    void *opened;
    int index;                            /* the caller's index of the backend */
    const adj_group *group;               /* the group to compute */
    const adj_kernel *const *kernel_list; /* kernels of the backend not tried yet; NULL: all */
    const adj_kernel *kernel;
    int number;           /* number of the candidate of this kernel */
    uint32_t invariant;   /* invariant operands, as in adj_prep */
    nominal_time nominal; /* seconds 0: 1 second for the group's arithmetic, 0 for the rest */
    adj_prep *prep;       /* result of preparing; the arrays in and out belong to the caller */
} candidate;

/* Lists the values that n nodes read from outside, each once, in order of first use. Returns their
 * number. */
int list_operands(int n, const adj_node *const node[], const adj_node *in[]);

/* Advances to candidate 0 of the backend's next kernel; returns 0 if no kernel is left. */
int next_kernel(candidate *c);
/* Prepares the candidate for operands in plain layouts. ADJ_ENOKERNEL: the kernel refuses;
 * c->prep->why may have the reason. */
adj_status prepare_candidate(const candidate *c);
/* The two halves of prepare_candidate. Between them, the caller may write the layouts of the
 * operands to c->prep->in. */
void init_prep(const candidate *c);
adj_status query_kernel(const candidate *c);
void drop_candidate(const candidate *c);

/* ---- the memory of a prepared candidate ---- */

/* Returns the bytes of a value in a layout; NULL: the plain layout of any backend. */
size_t layout_bytes_of(const adj_backend *b, const adj_layout *l, adj_type type);
const char *layout_name_of(const adj_backend *b, const adj_layout *l);
/* Writes the layouts of operands and results, such as "nhwc plain -> nhwc". */
void name_layouts(const candidate *c, char *text, size_t size);

/* Memory areas for float operands, integer operands (zeros are valid labels and counters) and
 * results. Each value is 64-byte aligned, with a gap, a multiple of 64, on both sides. */
typedef enum { FLOAT_AREA, INTEGER_AREA, RESULT_AREA, N_AREA } area_kind;
/* Sets the bytes of the areas. If area is not NULL, points in and out, indexed like group->in and
 * group->out, into it. */
void bind_areas(const candidate *c, size_t gap, char *const area[N_AREA], size_t bytes[N_AREA],
                const void *in[], void *out[]);
/* Empties the caches by reading the memory before a candidate is timed. Returns a sum, without
 * which a compiler might leave it out. */
uint64_t cool_caches(const void *memory, size_t bytes);

#endif
