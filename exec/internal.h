/* internal.h - options of an executor for the library's own checkers and training, and what these
 * read of its plan. */
#ifndef ADJ_EXEC_INTERNAL_H
#define ADJ_EXEC_INTERNAL_H

#include "adjoint_ext.h"

/* For adj_exec_debug.internal; all zero: the default. */
typedef struct adj_exec_internal {
    /* Called after each pass with the pass's name and the graph, which is valid during the call.
     * image[id] is the node there that stands for node id of the user's graph; NULL if it is not
     * needed. NULL: not called. */
    void (*after_pass)(void *user, const char *pass, const adj_graph *g, adj_node *const image[]);
    /* Called before each kernel runs, also while tuning, with the first node of its group, the
     * names of backend and implementation, and the plan's estimate in seconds, so that a kernel
     * that crashes or hangs can be named. NULL: not called. */
    void (*before_kernel)(void *user, const adj_node *first, const char *backend, const char *impl,
                          double estimate);
    void *pass_user, *user; /* handed to after_pass; to before_kernel */
    int profile;            /* time every step (report.h) */
    /* Kernels to use: the text returned by adj_exec_selection of another executor of the same
     * graph. Steps that it names use the same kernels, so that results are bit-identical; with tune
     * the other steps are timed. Inapplicable lines are ignored; malformed text is ignored entirely
     * (adj_exec_warning). NULL: none. */
    const char *selection;
    /* Parameters and states that these assign change between runs, though the plan does not assign
     * them: what follows from them is computed in every run. NULL: none. */
    const adj_updates *varying;
    /* > 0: expected number of runs of the plan. Measuring a step then takes at most 2 % of the time
     * of the step in all these runs. */
    int64_t tune_runs;
} adj_exec_internal;

/* Returns the steps whose kernels were chosen by tuning, a line each, for
 * adj_exec_internal.selection; "" if there are none. The string belongs to the executor. */
ADJ_API const char *adj_exec_selection(const adj_exec *e);

#endif
