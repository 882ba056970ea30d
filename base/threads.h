/* threads.h - how many threads a control group leaves. */
#ifndef ADJ_THREADS_H
#define ADJ_THREADS_H

/* The whole processors within the quotas (cpu.max) of this process's control groups (v2), at least
 * one; 0: there is no quota. root: as in control_group.h. */
int threads_by_quota(const char *root);

#endif
