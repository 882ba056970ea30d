/* guard.h - work that may crash or hang, in a process of its own. */
#ifndef CLI_GUARD_H
#define CLI_GUARD_H

#include "adjoint_check.h"

typedef struct {
    double seconds; /* how long a response may take */
} guard;

/* For adj_compare_opts.elsewhere; user is a guard. */
adj_status guard_run(void *user, const char *isa, const void *request, size_t bytes,
                     void **response, size_t *response_bytes, adj_error *error);
/* The same, handed to this program's hidden command. isa "": as it is. *response is what was said
 * even when it fails, to be freed in every case. */
adj_status guard_command(const char *command, double seconds, const char *isa, const void *request,
                         size_t bytes, void **response, size_t *response_bytes, adj_error *error);
/* For the hidden commands, first of all: argv[1] is the parent's pid. 0: it is dead already. */
int ends_with_parent(int argc, char **argv);

#endif
