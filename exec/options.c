/* options.c - what ADJOINT_PLAN adds to every executor's options, so that programs that set
 * none, tests above all, can be run with other plans. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

/* Of tuning asked for here: there may be thousands of small plans. */
static const double default_tune_seconds = 0.05;

static adj_status read_word(adj_exec *e, const char *word, size_t length, adj_exec_opts *o)
{
    if (length == 7 && memcmp(word, "unfused", length) == 0) {
        o->debug.no_fusion = 1;
        return ADJ_OK;
    }
    if (length == 4 && memcmp(word, "tune", length) == 0) {
        if (!o->tune)
            o->tune_seconds = default_tune_seconds;
        o->tune = 1;
        return ADJ_OK;
    }
    return set_error(e, ADJ_EARG,
                     "adj_exec_new: ADJOINT_PLAN: unknown word (got \"%.*s\", expected unfused or "
                     "tune)",
                     (int)(length < 64 ? length : 64), word);
}

adj_status read_environment(adj_exec *e, adj_exec_opts *o)
{
    const char *word = getenv("ADJOINT_PLAN");
    while (word != NULL && word[0] != '\0') {
        size_t length = strcspn(word, ",");
        if (read_word(e, word, length, o) != ADJ_OK)
            return e->status;
        word += length + (word[length] == ',');
    }
    return ADJ_OK;
}
