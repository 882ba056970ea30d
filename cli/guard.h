/* guard.h - runs work that may crash or hang in another process; and, for work in this process, a
 * message when a kernel crashes or hangs. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "adjoint.h"
#include "adjoint_check.h"

/* Returns the time limit of a kernel estimated at that many seconds: a minute or 1000 times the
 * estimate, whichever is longer. */
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
