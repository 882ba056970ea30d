/* metadata.c - see metadata.h. */
#include <stdlib.h>
#include <string.h>

#include "io/weights/weights.h"
#include "metadata.h"

static int is_among(const char *key, int n, const adj_metadata list[])
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return 1;
    return 0;
}

/* Copies t's entries except those that are replaced and those whose keys are in without
 * (NULL-terminated). */
static adj_status collect(metadata *m, const adj_tensors *t, const char *const without[],
                          int n_instead, const adj_metadata instead[], adj_error *error)
{
    const int n = t->n_metadata;
    m->entry = calloc((size_t)n + (size_t)n_instead + 1, sizeof *m->entry);
    if (m->entry == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "out of memory");
    for (int i = 0; i < n_instead; i++)
        m->entry[m->n++] = instead[i];
    for (int i = 0; i < n; i++) {
        const adj_metadata entry = t->metadata[i];
        int is_kept = !is_among(entry.key, n_instead, instead);
        for (int k = 0; without[k] != NULL; k++)
            is_kept &= strcmp(without[k], entry.key) != 0;
        if (is_kept)
            m->entry[m->n++] = entry;
    }
    return ADJ_OK;
}

static const char *const nothing[] = {NULL};

adj_status metadata_as_it_is(metadata *m, const adj_tensors *t, adj_error *error)
{
    return collect(m, t, nothing, 0, NULL, error);
}

/* Programs that load PyTorch's weights ask for format "pt", Hugging Face's transformers among
 * them; ours is the order of an image's axes. */
adj_status metadata_theirs(metadata *m, const adj_tensors *t, const char *map, adj_error *error)
{
    static const char *const marks[] = {"adjoint.version", "format", NULL};
    static const adj_metadata pytorch = {"format", "pt"};
    return collect(m, t, marks, strcmp(map, "pytorch") == 0, &pytorch, error);
}

/* Removes entries about the training that the file does not have. */
static int drop_unknown(const adj_tensors *t, int n, adj_metadata card[])
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const int is_of_training =
            strcmp(card[i].key, "seed") == 0 || strcmp(card[i].key, "precision") == 0;
        if (!is_of_training || adj_tensors_metadata(t, card[i].key) != NULL)
            card[kept++] = card[i];
    }
    return kept;
}

adj_status metadata_ours(metadata *m, const adj_tensors *t, const adj_model_card *card,
                         adj_error *error)
{
    adj_model_card ours = *card;
    int n = 0;

    if (ours.model == NULL)
        return metadata_as_it_is(m, t, error);
    if (ours.options.classes == 0)
        ours.options.classes = adj_weights_classes(t);
    adj_status status = adj_model_card_write(&ours, &m->card, &n, error);
    if (status != ADJ_OK)
        return status;
    return collect(m, t, nothing, drop_unknown(t, n, m->card), m->card, error);
}

void metadata_free(metadata *m)
{
    free(m->entry);
    free(m->card);
}
