/* threads.h - how many threads the control groups of this process allow. */
#ifndef ADJ_THREADS_H
#define ADJ_THREADS_H

#include "adjoint.h"

/* Returns the default of adj_exec_opts.threads. Exported, as libadjoint_io calls it. */
ADJ_API int adj_default_threads(void);

/* Returns the whole processors within the quotas (cpu.max) of this process's control groups
 * (version 2), at least one; 0 if there is no quota. root: as in control_group.h. */
int threads_by_quota(const char *root);

#endif
