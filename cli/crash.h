/* crash.h - a last line when a kernel crashes the tool, and a note when one hangs. */
#ifndef CLI_CRASH_H
#define CLI_CRASH_H

#include "adjoint.h"

/* Prints this line, which must stay valid, when a signal ends the tool from now on. */
void announce_crashes(const char *line);

/* Callback for adj_exec_internal.before_kernel: prints a note if this is the last call for as long
 * as guard.h's kernel_limit. user: the sub-command's name. */
void announce_hangs(void *user, const adj_node *first, const char *backend, const char *impl,
                    double estimate);
/* The last kernel has ended. */
void end_of_kernels(void);

#endif
