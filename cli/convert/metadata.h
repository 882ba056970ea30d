/* metadata.h - what a converted file says of its tensors beside them. */
#ifndef CLI_CONVERT_METADATA_H
#define CLI_CONVERT_METADATA_H

#include "adjoint_io.h"

/* Entries point into the tensors they were made from, or into card. */
typedef struct {
    int n;
    adj_metadata *entry;
    adj_metadata *card; /* one piece of memory, as adj_model_card_write makes it */
} metadata;

/* What t says. */
adj_status metadata_as_it_is(metadata *m, const adj_tensors *t, adj_error *error);
/* The same of tensors under another program's names: not whose file it was, and for pytorch whose
 * it is. */
adj_status metadata_theirs(metadata *m, const adj_tensors *t, const char *map, adj_error *error);
/* The same of tensors under our names, with the card of their net, which may have no model; the
 * number of classes is the tensors'. */
adj_status metadata_ours(metadata *m, const adj_tensors *t, const adj_model_card *card,
                         adj_error *error);
void metadata_free(metadata *m);

#endif
