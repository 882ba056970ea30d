/* guard.h - runs work that may crash or hang in a process of its own. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "adjoint_check.h"

/* Returns the seconds that a kernel may take which is estimated at so many: a minute and more, as
 * the machine may be loaded, and the estimate of another one. */
double kernel_limit(double estimate);

/* Runs a request for adj_trial_opts.elsewhere; user points to a double, the time limit of the
 * process in seconds. 0: kernel_limit's for each kernel. */
adj_status guard_run(void *user, const char *isa, const void *request, size_t bytes,
                     void **response, size_t *response_bytes, adj_error *error);

#endif
