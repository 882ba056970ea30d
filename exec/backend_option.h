/* backend_option.h - the parts of "onednn,max_pool=naive", told apart and checked. It needs nothing
 * of an executor's and is compiled into the library and into the tool, each with its own copy. */
#ifndef ADJ_BACKEND_OPTION_H
#define ADJ_BACKEND_OPTION_H

#include "adjoint_ext.h"

/* Is every part a backend of the NULL-ended list, or an op and one? ADJ_EARG, and a sentence that
 * begins with prefix and names the nearest that exists. message may be NULL. */
adj_status check_backend_option(const char *option, const adj_backend *const *list,
                                const char *prefix, char *message, size_t size);

#endif
