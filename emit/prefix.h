/* prefix.h - the first part of the names in a file. */
#ifndef EMIT_PREFIX_H
#define EMIT_PREFIX_H

#include "adjoint_ext.h"

/* Checks that names may begin with the prefix; NULL: the default one. The message begins with "not
 * an identifier". */
ADJ_API adj_status adj_emit_check_prefix(const char *prefix, adj_error *error);

#endif
