/* candidate.h - enumerates the candidates for a group of nodes: each kernel of a backend offers
 * number 0, 1, ... until it refuses one. Used by the plan, tuning, bench and the tests of backends,
 * so it includes adjoint_ext.h alone.
 *
 *     while (next_kernel(&c))
 *         for (; prepare_candidate(&c) == ADJ_OK; c.number++)
 *             ... c.prep ..., drop_candidate(&c) */
#ifndef ADJ_CANDIDATE_H
#define ADJ_CANDIDATE_H

#include "graph/op.h"

typedef struct {
    const adj_backend *backend;
    void *opened;
    int index;                            /* the caller's number of the backend */
    int is_spare;                         /* the group can do without it: a backend that cannot be
                                             opened is left out */
    const adj_group *group;               /* what is to be computed */
    const adj_kernel *const *kernel_list; /* what is left of the backend's; NULL: all */
    const adj_kernel *kernel;
    int number;         /* of the kernel's candidates */
    uint32_t invariant; /* of the group's operands, as in adj_prep */
    /* Nominal seconds, as in adj_prep; seconds 0: the group's arithmetic takes 1 second, and
     * nothing else any. */
    double arithmetic, memory, byte, seconds;
    adj_prep *prep; /* what it is prepared to; in and out are arrays of the caller's */
} candidate;

/* The values that enter n nodes, each once, in order of first use; returns how many, at most the
 * nodes' operands. */
int list_operands(int n, const adj_node *const node[], const adj_node *in[]);

/* The backend's next kernel, its candidate 0; 0: there is none left. */
int next_kernel(candidate *c);
/* For operands in plain layouts. ADJ_ENOKERNEL: the kernel refuses, c->prep->why may say why. */
adj_status prepare_candidate(const candidate *c);
/* Its two halves: between them the layouts that operands have may be written to c->prep->in. */
void init_prep(const candidate *c);
adj_status query_kernel(const candidate *c);
void drop_candidate(const candidate *c);

/* ---- the memory of a prepared candidate ---- */

/* Returns the bytes of a value in a layout; NULL: the plain layout of any backend. */
size_t layout_bytes_of(const adj_backend *b, const adj_layout *l, adj_type type);
const char *layout_name_of(const adj_backend *b, const adj_layout *l);
/* "nhwc plain -> nhwc": of operands and results. */
void name_layouts(const candidate *c, char *text, size_t size);

/* Float operands, integer operands (zeros are right for labels and counters) and results: three
 * areas, in each the values one behind the other, each 64-aligned and with a gap, a multiple of 64,
 * on both sides. */
typedef enum { FLOAT_AREA, INTEGER_AREA, RESULT_AREA, N_AREA } area_kind;
/* Their bytes; points in and out, by group->in and group->out, into area if that is not NULL. */
void bind_areas(const candidate *c, size_t gap, char *const area[N_AREA], size_t bytes[N_AREA],
                const void *in[], void *out[]);

#endif
