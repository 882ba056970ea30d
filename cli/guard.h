/* guard.h - runs work that may crash or hang in a process of its own; else a last line when a
 * kernel crashes the tool, and a note when one hangs. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "adjoint.h"
#include "adjoint_check.h"

/* Returns the seconds that a kernel may take which is estimated at so many: a minute and more, as
 * the machine may be loaded, and the estimate of another one. */
double kernel_limit(double estimate);

/* Runs a request for adj_trial_opts.elsewhere; user points to a double, the time limit of the
 * process in seconds. 0: kernel_limit's for each kernel. */
adj_status guard_run(void *user, const char *isa, const void *request, size_t bytes,
                     void **response, size_t *response_bytes, adj_error *error);

/* Prints this line, which must stay valid, when a signal ends the tool from now on. */
void announce_crashes(const char *line);

/* Callback for adj_exec_internal.before_kernel: prints a note if this is the last call for as long
 * as guard.h's kernel_limit. user: not used. */
void announce_hangs(void *user, const adj_node *first, const char *backend, const char *impl,
                    double estimate);
/* The last kernel has ended. */
void end_of_kernels(void);

#endif
