/* guard.h - runs work that may crash or hang in a process of its own. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "adjoint_check.h"

/* Runs a request for adj_trial_opts.elsewhere; user points to a double, the time limit in
 * seconds. */
adj_status guard_run(void *user, const char *isa, const void *request, size_t bytes,
                     void **response, size_t *response_bytes, adj_error *error);

#endif
