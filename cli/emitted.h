/* emitted.h - the backend "emitted" (emit/compiled.c) beside the built-in ones, for the checkers.
 */
#ifndef CLI_EMITTED_H
#define CLI_EMITTED_H

#include "adjoint_ext.h"

#define EMITTED_HELP "emitted: the C of adjoint emit, compiled by cc -O2"

enum { CHECKED_BACKENDS = 8 };
/* All zero: the built-in backends alone. */
typedef struct {
    adj_backend *emitted;
    /* emitted first; then naive, as in plans of adj_emit, or all that are built in if the text
     * names another one. */
    const adj_backend *all[CHECKED_BACKENDS];
} checked_backends;

/* Adds "emitted" if the text, NULL or the value of an option, names it. */
void checked_backends_open(checked_backends *b, const char *text);
void checked_backends_close(checked_backends *b);
/* Returns the list for adj_exec_opts; NULL: the built-in ones. */
const adj_backend *const *checked_backends_list(const checked_backends *b);
/* Names for option.names. */
const char *checked_backend_name_at(int i);

#endif
