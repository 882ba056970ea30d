/* guard.h - work that may crash or hang, in a process of its own. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "adjoint_check.h"

/* For adj_compare_opts.elsewhere; user is a double: the seconds that a response may take. */
adj_status guard_run(void *user, const char *isa, const void *request, size_t bytes,
                     void **response, size_t *response_bytes, adj_error *error);

#endif
