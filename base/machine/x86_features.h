/* x86_features.h - the instruction sets of an x86 processor that kernels use. */
#ifndef ADJ_X86_FEATURES_H
#define ADJ_X86_FEATURES_H

#include <stddef.h>

/* Writes the instruction sets that the processor has and whose registers the system saves, by
 * Linux's names, separated by spaces. Returns 0 on other processors. */
int x86_features(size_t size, char *names);
/* Asks the system to let this process use AMX tiles, which is needed once. Returns 0 if it
 * refuses. */
int x86_allow_tiles(void);

#endif
