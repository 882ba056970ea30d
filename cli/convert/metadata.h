/* metadata.h - metadata of a converted file. */
#ifndef CLI_CONVERT_METADATA_H
#define CLI_CONVERT_METADATA_H

#include "adjoint_io.h"

/* Entries point into the tensors they were made from, or into card. */
typedef struct {
    int n;
    adj_metadata *entry;
    adj_metadata *card; /* one piece of memory, as adj_model_card_write makes it */
} metadata;

/* Copies the metadata of t. */
adj_status metadata_as_it_is(metadata *m, const adj_tensors *t, adj_error *error);
/* Copies the metadata of t for tensors with another program's names: without the original program,
 * for pytorch with format "pt". */
adj_status metadata_theirs(metadata *m, const adj_tensors *t, const char *map, adj_error *error);
/* Copies the metadata of t for tensors with our names, with the card of their net, which may have
 * no model; the number of classes follows from the tensors. */
adj_status metadata_ours(metadata *m, const adj_tensors *t, const adj_model_card *card,
                         adj_error *error);
void metadata_free(metadata *m);

#endif
