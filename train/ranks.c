/* ranks.c - communication of a training's processes: see trainer.h. */
#include <stdlib.h>
#include <string.h>

#include "io/data/origin.h"
#include "trainer.h"
#include "exec/report.h"

static adj_status no_memory(adj_error *error)
{
    return adj_error_set(error, ADJ_ENOMEM, "fit: out of memory");
}

adj_status ranks_open(rank_state *r, const adj_ranks *ranks, int n_shard, adj_error *error)
{
    const size_t size = (size_t)ranks_size(ranks);
    *r = (rank_state){.ranks = ranks};
    r->report_bytes = sizeof(step_report) + 2 * (size_t)n_shard * sizeof(double);
    r->times = calloc(size, sizeof *r->times);
    r->mine = calloc(1, r->report_bytes);
    r->all = calloc(size, r->report_bytes);
    r->weight = calloc(size * (size_t)n_shard, sizeof *r->weight);
    r->share = calloc((size_t)n_shard, sizeof *r->share);
    if (r->times == NULL || r->mine == NULL || r->all == NULL || r->weight == NULL ||
        r->share == NULL)
        return no_memory(error);
    return ADJ_OK;
}

void ranks_close(rank_state *r)
{
    free(r->times);
    free(r->mine);
    free(r->all);
    free(r->weight);
    free(r->share);
    *r = (rank_state){0};
}

adj_status ranks_gather(const adj_ranks *r, const void *mine, size_t bytes, void *all,
                        adj_error *error)
{
    if (r != NULL)
        return r->all_gather(r->group, mine, bytes, all, error);
    memcpy(all, mine, bytes);
    return ADJ_OK;
}

/* ---- the same on all ---- */

enum { MAX_ITEMS = MAX_ENTRIES + 8 };

/* A setting that all ranks must share: its hash and its name in messages. */
typedef struct {
    const char *name;
    uint64_t hash;
} item;

/* Finds the first of n numbers that a rank has otherwise than rank 0, and the rank; *rank 0: there
 * is none. */
static adj_status find_difference(const rank_state *r, int n, const uint64_t mine[], int *first,
                                  int *rank, adj_error *error)
{
    const size_t bytes = (size_t)n * sizeof *mine;
    uint64_t *all = calloc((size_t)ranks_size(r->ranks), bytes + 1);
    *rank = 0;
    if (all == NULL)
        return no_memory(error);
    const adj_status status = ranks_gather(r->ranks, mine, bytes, all, error);
    for (int i = 0; i < n && status == ADJ_OK && *rank == 0; i++)
        for (int k = 1; k < ranks_size(r->ranks) && *rank == 0; k++)
            if (all[(size_t)k * (size_t)n + (size_t)i] != all[i]) {
                *first = i;
                *rank = k;
            }
    free(all);
    return status;
}

static adj_status compare_items(const rank_state *r, int n, const item list[], adj_error *error)
{
    uint64_t mine[MAX_ITEMS];
    int first, rank;
    if (ranks_size(r->ranks) == 1)
        return ADJ_OK;
    for (int i = 0; i < n; i++)
        mine[i] = list[i].hash;
    const adj_status status = find_difference(r, n, mine, &first, &rank, error);
    if (status != ADJ_OK || rank == 0)
        return status;
    return adj_error_set(error, ADJ_EARG, "rank %d: its %s differs from rank 0's", rank,
                         list[first].name);
}

/* Lists what ranks compare, causes first: the model, the data, which are prepared for it, then the
 * settings and the options that determine when processes communicate, and the sizes of messages.
 * Threads may differ, as machines may. */
static int list_items(adj_trainer *t, item list[MAX_ITEMS])
{
    const adj_fit_opts *o = &t->set.o;
    const item first[] = {{"model", hash_text(HASH_START, t->set.model)},
                          {"training data", trainer_data_sum(t)},
                          {"held-out data", t->held_out != NULL ? data_sum(t->held_out) : 0}};
    const item last[] = {{"compare_every", (uint64_t)o->distributed.compare_every},
                         {"patience", (uint64_t)o->checkpoint.patience},
                         {"checkpoint_every", (uint64_t)o->checkpoint.every},
                         {"checkpoint option", o->checkpoint.path != NULL},
                         {"best-weights option", o->checkpoint.best != NULL},
                         {"resume option", o->checkpoint.resume != 0},
                         {"bucket_bytes", (uint64_t)o->distributed.parallel.bucket_bytes}};
    entry entries[MAX_ENTRIES];
    char number[ENTRY_TEXT];
    const int n_entry = settings_entries(&t->set, entries);
    int n = sizeof first / sizeof *first;
    memcpy(list, first, sizeof first);
    for (int i = 0; i < n_entry; i++) {
        const char *text = entry_text(&entries[i], number);
        if (strcmp(entries[i].key, "threads") != 0 && strcmp(entries[i].key, "model") != 0)
            list[n++] = (item){entries[i].key, hash_text(HASH_START, text)};
    }
    memcpy(list + n, last, sizeof last);
    return n + (int)(sizeof last / sizeof *last);
}

/* The version comes first, and alone: another has other settings. */
adj_status ranks_agree(adj_trainer *t, adj_error *error)
{
    const item version = {"version of the library", ADJ_VERSION};
    item list[MAX_ITEMS];
    if (ranks_size(t->ranks.ranks) == 1)
        return ADJ_OK;
    adj_status status = compare_items(&t->ranks, 1, &version, error);
    if (status == ADJ_OK)
        status = compare_items(&t->ranks, list_items(t, list), list, error);
    return status;
}

/* Returns a hash of the plan's kernels that is independent of the order of steps. */
static uint64_t hash_kernels(const adj_exec *e)
{
    uint64_t sum = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_step_info s = adj_exec_step_at(e, i);
        const uint64_t backend = hash_text(HASH_START, s.backend);
        sum += hash_text(backend, s.impl);
    }
    return sum;
}

adj_status ranks_agree_on_kernels(adj_trainer *t, adj_error *error)
{
    const item kernels = {"choice of kernels", hash_kernels(t->steps_net.exec)};
    return compare_items(&t->ranks, 1, &kernels, error);
}

adj_status ranks_compare_params(adj_trainer *t, adj_error *error)
{
    adj_exec *e = t->steps_net.exec;
    const int n = adj_exec_param_count(e);
    adj_status status = ADJ_OK;
    int first, rank = 0;
    if (ranks_size(t->ranks.ranks) == 1)
        return ADJ_OK;
    uint64_t *hashes = calloc((size_t)n + 1, sizeof *hashes);
    if (hashes == NULL)
        return no_memory(error);
    for (int i = 0; i < n && status == ADJ_OK; i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        const void *value = adj_data(e, p);
        if (value != NULL)
            hashes[i] = hash_words(HASH_START, value, adj_type_bytes(adj_node_type(p)));
        else
            status = adj_error_set(error, ADJ_EARG, "fit: %s", adj_exec_message(e));
    }
    if (status == ADJ_OK)
        status = find_difference(&t->ranks, n, hashes, &first, &rank, error);
    free(hashes);
    if (status != ADJ_OK || rank == 0)
        return status;
    return adj_error_set(
        error, ADJ_EBACKEND,
        "rank %d: its values of %s differ from rank 0's after step %lld of epoch %lld", rank,
        adj_node_name(adj_exec_param_at(e, first)), (long long)t->at.step,
        (long long)t->at.epoch + 1);
}

adj_status ranks_begin(adj_trainer *t, adj_error *error)
{
    const item where[] = {{"epoch to resume at", (uint64_t)t->at.epoch},
                          {"step to resume at", (uint64_t)t->at.step}};
    t->ranks.wants_stop = t->ranks.is_stopped = 0;
    adj_status status = compare_items(&t->ranks, 2, where, error);
    return status == ADJ_OK ? ranks_compare_params(t, error) : status;
}

/* ---- a step ---- */

/* Returns the images without padding in shard i of this process. */
static int64_t shard_count(const adj_trainer *t, const adj_loader_batch *b, int i)
{
    const int64_t per = t->steps_net.shape.dim[0];
    int64_t n = 0;
    for (int64_t k = i * per; k < (i + 1) * per; k++)
        n += b->labels[k] >= 0;
    return n;
}

static double shard_weight(const adj_trainer *t, const adj_loader_batch *b, int i)
{
    const int64_t per = t->steps_net.shape.dim[0];
    const float *weights = t->set.o.loss.class_weights;
    double sum = 0;
    if (weights == NULL)
        return (double)shard_count(t, b, i);
    for (int64_t k = i * per; k < (i + 1) * per; k++)
        sum += b->labels[k] >= 0 ? (double)weights[b->labels[k]] : 0;
    return sum;
}

/* Sums the weights of all images; without class weights the sum is known without communication. */
static adj_status sum_weights(adj_trainer *t, const adj_loader_batch *b, double *sum,
                              adj_error *error)
{
    const rank_state *r = &t->ranks;
    const int n = t->steps_net.n_shard;
    *sum = (double)adj_loader_step_count(t->loader, b->step);
    if (t->set.o.loss.class_weights == NULL)
        return ADJ_OK;
    double *mine = (double *)(void *)r->mine;
    for (int i = 0; i < n; i++)
        mine[i] = shard_weight(t, b, i);
    adj_status status = ranks_gather(r->ranks, mine, (size_t)n * sizeof *mine, r->weight, error);
    *sum = 0;
    for (int i = 0; i < n * ranks_size(r->ranks); i++)
        *sum += r->weight[i];
    return status;
}

adj_status ranks_share(adj_trainer *t, const adj_loader_batch *b, adj_error *error)
{
    const rank_state *r = &t->ranks;
    const int64_t shards = step_shards(&t->set);
    double sum = 0;
    if (shards == 1)
        return ADJ_OK;
    adj_status status = sum_weights(t, b, &sum, error);
    for (int i = 0; i < t->steps_net.n_shard; i++)
        r->share[i] = sum > 0 ? (float)((double)shards * shard_weight(t, b, i) / sum) : 0;
    return status;
}

adj_status ranks_report(adj_trainer *t, const adj_loader_batch *b, rank_seconds own, double *loss,
                        int64_t *right, adj_error *error)
{
    rank_state *r = &t->ranks;
    const network *net = &t->steps_net;
    step_report report = {.times = own, .wants_stop = r->wants_stop};
    double *losses = (double *)(void *)(r->mine + sizeof report);
    const int64_t n = b->count;
    if (b->targets == NULL)
        report.right = adj_count_right(n, net->classes, net->scores, b->labels);
    for (int i = 0; i < net->n_shard; i++) { /* weighted means of its images */
        const double weight = shard_weight(t, b, i);
        losses[i] = (double)net->losses[i] * weight;
        losses[net->n_shard + i] = weight;
    }
    memcpy(r->mine, &report, sizeof report);
    if (t->at.step == 0)
        memset(r->times, 0, (size_t)ranks_size(r->ranks) * sizeof *r->times);
    adj_status status = ranks_gather(r->ranks, r->mine, r->report_bytes, r->all, error);
    double weight = 0;
    *loss = 0;
    *right = 0;
    for (int k = 0; k < ranks_size(r->ranks) && status == ADJ_OK; k++) {
        const char *at = r->all + (size_t)k * r->report_bytes;
        memcpy(&report, at, sizeof report);
        losses = (double *)(void *)(at + sizeof report);
        for (int i = 0; i < net->n_shard; i++) {
            *loss += losses[i];
            weight += losses[net->n_shard + i];
        }
        *right += report.right;
        r->is_stopped |= report.wants_stop != 0;
        r->times[k].seconds += report.times.seconds;
        r->times[k].data += report.times.data;
        r->times[k].others += report.times.others;
    }
    if (weight > 0)
        *loss *= (double)adj_loader_step_count(t->loader, b->step) / weight;
    return status;
}

/* ---- now and then ---- */

adj_status ranks_want_stop(rank_state *r, int wants, int *stop, adj_error *error)
{
    const int size = ranks_size(r->ranks);
    *stop = wants;
    if (size == 1)
        return ADJ_OK;
    int *all = calloc((size_t)size, sizeof *all);
    if (all == NULL)
        return no_memory(error);
    adj_status status = ranks_gather(r->ranks, &wants, sizeof wants, all, error);
    for (int k = 0; k < size; k++)
        *stop |= all[k];
    free(all);
    return status;
}

static adj_status broadcast(const rank_state *r, void *data, size_t bytes, adj_error *error)
{
    return r->ranks->broadcast(r->ranks->group, data, bytes, error);
}

adj_status ranks_share_text(const rank_state *r, const char *text, char **shared, adj_error *error)
{
    int64_t bytes = text != NULL ? (int64_t)strlen(text) + 1 : 0;
    adj_status status =
        ranks_size(r->ranks) > 1 ? broadcast(r, &bytes, sizeof bytes, error) : ADJ_OK;
    *shared = NULL;
    if (status != ADJ_OK || bytes == 0)
        return status;
    if ((*shared = calloc((size_t)bytes, 1)) == NULL)
        return no_memory(error);
    if (ranks_rank(r->ranks) == 0)
        memcpy(*shared, text, (size_t)bytes);
    return ranks_size(r->ranks) > 1 ? broadcast(r, *shared, (size_t)bytes, error) : ADJ_OK;
}

adj_status ranks_share_status(const rank_state *r, adj_status status, adj_error *error)
{
    struct {
        int32_t status;
        char message[ADJ_MESSAGE];
    } told = {.status = status};
    if (ranks_size(r->ranks) == 1)
        return status;
    if (status != ADJ_OK && error != NULL)
        snprintf(told.message, sizeof told.message, "%s", error->message);
    adj_status shared = broadcast(r, &told, sizeof told, error);
    if (shared != ADJ_OK || told.status == ADJ_OK)
        return shared;
    return adj_error_set(error, (adj_status)told.status, "%s", told.message);
}
