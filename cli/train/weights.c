/* weights.c - see weights.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "weights.h"

/* ---- to begin with ---- */

typedef struct {
    int in_part; /* each tensor is told */
    int loaded, unused;
} told;

static void tell(void *user, const adj_weight_report *r)
{
    told *t = user;

    t->loaded += r->fate == ADJ_WEIGHT_LOADED;
    t->unused += r->fate == ADJ_WEIGHT_UNUSED;
    if (!t->in_part)
        return;
    switch (r->fate) {
    case ADJ_WEIGHT_LOADED: say("  %s: loaded from %s", r->name, r->tensor); break;
    case ADJ_WEIGHT_FRESH: say("  %s: new", r->name); break;
    case ADJ_WEIGHT_MISSING:
    case ADJ_WEIGHT_UNFIT: say("  %s: new, %s", r->name, r->why); break;
    case ADJ_WEIGHT_UNUSED: say("  not used: %s", r->tensor); break;
    case ADJ_WEIGHT_RESET: break; /* every state of the optimizer */
    }
}

int load_start(const train_opts *o, network *n)
{
    int new_head = o->head != NULL && strcmp(o->head, "new") == 0;
    told t = {.in_part = new_head};
    const adj_weights_opts options = {.map = o->map,
                                      .partial = new_head,
                                      .fresh = new_head ? "logits/*" : NULL,
                                      .report = tell,
                                      .user = &t};
    adj_error error;

    if (adj_weights_load_with(n->exec, o->weights, &options, &error) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--weights: %s", error.message);
    say("%d parameters and states from %s, %d tensors there not used", t.loaded, o->weights,
        t.unused);
    return CONTINUE;
}

/* ---- at the end ---- */

static adj_model_card card_of(const train_opts *o, const network *n, const adj_dataset *d,
                              double accuracy)
{
    adj_model_card c = {
        .model = o->model,
        .height = n->shape.dim[1],
        .width = n->shape.dim[2],
        .channels = n->shape.dim[3],
        .classes = d->classes,
        .class_names = d->class_names,
        .resize = o->data.resize,
        .precision = (adj_precision)word_index(PRECISION_WORDS, o->precision),
        .accuracy = accuracy,
        .seed = o->seed,
    };
    for (int64_t i = 0; i < c.channels && i < ADJ_CARD_CHANNELS; i++) {
        int64_t from = i < d->c ? i : 0; /* one channel is repeated */
        c.mean[i] = (double)d->mean[from];
        c.deviation[i] = (double)d->deviation[from];
    }
    return c;
}

adj_status save_weights(const train_opts *o, network *n, const adj_dataset *d, double accuracy,
                        adj_error *error)
{
    const adj_model_card card = card_of(o, n, d, accuracy);
    adj_metadata *entry = NULL;
    int count = 0;

    adj_status status = adj_model_card_write(&card, &entry, &count, error);
    adj_metadata *all = malloc(((size_t)count + 1) * sizeof *all);
    if (status == ADJ_OK && all == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "out of memory");
    if (status == ADJ_OK) {
        memcpy(all, entry, (size_t)count * sizeof *all);
        all[count++] = (adj_metadata){"optimizer", o->optimizer};
        status = adj_weights_save(n->exec, o->out, count, all, error);
    }
    free(all);
    free(entry);
    return status;
}
