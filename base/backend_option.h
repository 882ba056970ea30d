/* backend_option.h - parses backend lists such as "onednn,max_pool=naive". It depends on base/
 * alone; the library and the tool each compile a copy. */
#ifndef ADJ_BACKEND_OPTION_H
#define ADJ_BACKEND_OPTION_H

#include "adjoint_ext.h"

/* Parses the first entry of *option and advances *option past it (NULL after the last entry). An
 * entry is an op and an index into the NULL-ended list of backends; the op is NULL for all ops.
 * ADJ_EARG if the entry is malformed: error's message begins with prefix and lists the accepted
 * names. */
adj_status next_backend_part(const char **option, const adj_backend *const *list,
                             const char *prefix, const adj_op **op, int *backend, adj_error *error);
/* Checks every entry of the option; NULL is valid. */
adj_status check_backend_option(const char *option, const adj_backend *const *list,
                                const char *prefix, adj_error *error);
/* True if the op is the caller's own, not the library's. */
int is_own_op(const adj_op *op);

#endif
