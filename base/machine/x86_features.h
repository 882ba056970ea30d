/* x86_features.h - the instruction sets of an x86 processor that count for kernels. */
#ifndef ADJ_X86_FEATURES_H
#define ADJ_X86_FEATURES_H

#include <stddef.h>

/* Those that the processor has and for which the system keeps registers, by Linux's names, with
 * spaces between them. 0: it is no such processor. */
int x86_features(size_t size, char *names);
/* Asks the system to let this process use AMX's tiles, which is needed once. 0: it refuses. */
int x86_allow_tiles(void);

#endif
