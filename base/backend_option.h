/* backend_option.h - the parts of "onednn,max_pool=naive". It needs nothing of an executor's and is
 * compiled into the library and into the tool, each with its own copy. */
#ifndef ADJ_BACKEND_OPTION_H
#define ADJ_BACKEND_OPTION_H

#include "adjoint_ext.h"

/* Reads the first part, which *option goes past (NULL: it was the last): an op, NULL for all of
 * them, and the index of a backend in the NULL-ended list. ADJ_EARG: the part is wrong, and error's
 * message begins with prefix and says what there is. */
adj_status next_backend_part(const char **option, const adj_backend *const *list,
                             const char *prefix, const adj_op **op, int *backend, adj_error *error);
/* Checks every part; option NULL: nothing to check. */
adj_status check_backend_option(const char *option, const adj_backend *const *list,
                                const char *prefix, adj_error *error);
/* True if the op is the caller's own, not the library's. */
int is_own_op(const adj_op *op);

#endif
