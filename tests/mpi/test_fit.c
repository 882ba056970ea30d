/* test_fit.c - run by mpirun: checks between the ranks of a training. A parameter changed on one
 * rank is named; a stop request of one rank stops all after the same step; all ranks learn that
 * rank 0 cannot write a file.
 *
 * Prints what is wrong, and ends with 1 in the process that has seen it. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_data.h"
#include "adjoint_mpi.h"
#include "tests/mpi/check.h"
#include "train/internal.h"

enum { IMAGES = 96, BATCH = 12 };

static adj_node *build(adj_node *images, int64_t classes, int training, void *user)
{
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    (void)user;
    adj_node *h = adj_relu(adj_layer_conv2d(images, "conv", &conv));
    return adj_layer_dense(adj_layer_dropout(h, "drop", 0.2, training), "logits", classes, NULL);
}

static const adj_net net = {.build = build, .name = "small"};

static adj_trainer *trainer_new(const adj_mpi *group, const adj_dataset *d,
                                const adj_fit_opts *more)
{
    adj_fit_opts o = *more;
    adj_error error = {0};
    adj_trainer *t = NULL;
    o.distributed.ranks = adj_mpi_ranks(group);
    o.batch = BATCH;
    o.exec.threads = 1;
    o.epochs = 3;
    check(adj_trainer_new(&net, d, d, &o, &t, &error) == ADJ_OK, "%s", error.message);
    return t;
}

/* Expects every rank to name the difference of the last one from rank 0, unless it is rank 0. */
static void check_difference(int last, adj_status status, adj_status wanted, const adj_error *error,
                             const char *difference)
{
    char expected[200];
    snprintf(expected, sizeof expected, "rank %d: its %s", last, difference);
    check(last == 0 ? status == ADJ_OK : status == wanted && strcmp(error->message, expected) == 0,
          "status %d: %s", (int)status, error->message);
}

/* Another value in the last rank alone: found when the two are compared, by its name. */
static void other_values(const adj_mpi *group, const adj_dataset *d)
{
    const int last = adj_mpi_ranks(group)->size - 1;
    adj_error error = {0};
    adj_trainer *t = trainer_new(group, d, &(adj_fit_opts){.distributed.compare_every = 2});
    for (int i = 0; i < 2; i++)
        check(adj_trainer_step(t, &error) == ADJ_OK, "%s", error.message);
    if (adj_mpi_ranks(group)->rank == last) {
        adj_exec *e = adj_trainer_exec(t);
        adj_node *b = adj_find(adj_node_graph(adj_trainer_loss(t)), "logits/b");
        float v[64];
        const size_t bytes = adj_type_bytes(adj_node_type(b));
        check(adj_get(e, b, v, bytes) == ADJ_OK, "%s", adj_exec_message(e));
        v[0] += 1e-7F * (1 + v[0] * v[0]);
        check(adj_set(e, b, v, bytes) == ADJ_OK, "%s", adj_exec_message(e));
    }
    check(adj_trainer_step(t, &error) == ADJ_OK, "%s", error.message);
    const adj_status status = adj_trainer_step(t, &error);
    check_difference(last, status, ADJ_EBACKEND, &error,
                     "values of logits/b differ from rank 0's after step 4 of epoch 1");
    adj_trainer_free(t);
}

typedef struct {
    int calls, stop_at; /* 0: never */
} stopping;

static int count_step(void *user, const adj_fit_progress *now)
{
    stopping *s = user;
    (void)now;
    return ++s->calls == s->stop_at;
}

/* The last rank wants to stop after its third step; all do, after the fourth. */
static void stop_together(const adj_mpi *group, const adj_dataset *d)
{
    const int size = adj_mpi_ranks(group)->size;
    stopping s = {.stop_at = adj_mpi_ranks(group)->rank == size - 1 ? 3 : 0};
    adj_error error = {0};
    adj_trainer *t = trainer_new(group, d, &(adj_fit_opts){.on.step = count_step, .on.user = &s});
    check(adj_trainer_run(t, &error) == ADJ_OK, "%s", error.message);
    check(s.calls == (size > 1 ? 4 : 3), "%d steps", s.calls);
    const adj_fit_progress at = adj_trainer_progress(t);
    const trainer_details details = adj_trainer_details(t);
    check(details.n_rank == size && at.train.count == (int64_t)s.calls * BATCH,
          "%d ranks, %lld images", details.n_rank, (long long)at.train.count);
    s.stop_at = 0;
    check(adj_trainer_run(t, &error) == ADJ_OK && adj_trainer_is_done(t), "goes on: %s",
          error.message);
    for (int i = 0; i < size; i++)
        check(details.rank_times[i].seconds > 0 &&
                  details.rank_times[i].others <= details.rank_times[i].seconds,
              "rank %d: %g s, %g of them for others", i, details.rank_times[i].seconds,
              details.rank_times[i].others);
    adj_trainer_free(t);
}

/* The last rank compares at other steps: it would wait for a message that no rank sends. */
static void other_options(const adj_mpi *group, const adj_dataset *d)
{
    const int last = adj_mpi_ranks(group)->size - 1;
    const adj_net net = {.name = "lenet"};
    adj_error error = {0};
    adj_fit_opts o = {.batch = BATCH, .distributed.ranks = adj_mpi_ranks(group), .exec.threads = 1};
    adj_trainer *t = NULL;
    o.distributed.compare_every = adj_mpi_ranks(group)->rank == last ? 3 : 2;
    const adj_status status = adj_trainer_new(&net, d, NULL, &o, &t, &error);
    check_difference(last, status, ADJ_EARG, &error, "compare_every differs from rank 0's");
    adj_trainer_free(t);
}

/* The last rank begins with other weights: found before the first step. */
static void other_start(const adj_mpi *group, const adj_dataset *d)
{
    const int last = adj_mpi_ranks(group)->size - 1;
    adj_error error = {0};
    stopping s = {.stop_at = 1};
    adj_trainer *t = trainer_new(group, d, &(adj_fit_opts){.on.step = count_step, .on.user = &s});
    if (adj_mpi_ranks(group)->rank == last) {
        const float one[64] = {1};
        adj_exec *e = adj_trainer_exec(t);
        adj_node *b = adj_find(adj_node_graph(adj_trainer_loss(t)), "logits/b");
        check(adj_set(e, b, one, adj_type_bytes(adj_node_type(b))) == ADJ_OK, "%s",
              adj_exec_message(e));
    }
    const adj_status status = adj_trainer_run(t, &error);
    check_difference(last, status, ADJ_EBACKEND, &error,
                     "values of logits/b differ from rank 0's after step 0 of epoch 1");
    check(last == 0 || s.calls == 0, "%d steps", s.calls);
    adj_trainer_free(t);
}

static void unwritable(const adj_mpi *group, const adj_dataset *d)
{
    adj_error error = {0};
    adj_trainer *t = trainer_new(group, d, &(adj_fit_opts){.checkpoint.every = 2});
    check(adj_trainer_step(t, &error) == ADJ_OK, "%s", error.message);
    const adj_status status = adj_trainer_save(t, "/nowhere/at/all", &error);
    check(status == ADJ_EIO && strstr(error.message, "No such file") != NULL, "status %d: %s",
          (int)status, error.message);
    check(adj_trainer_step(t, &error) == ADJ_OK, "goes on: %s", error.message);
    adj_trainer_free(t);
}

/* A net that was trained together, evaluated by this process alone when the others are gone. */
static adj_predictor *train_together(const adj_mpi *group, const adj_dataset *d)
{
    const adj_net net = {.name = "lenet"};
    const adj_fit_opts o = {.batch = BATCH,
                            .distributed.ranks = adj_mpi_ranks(group),
                            .exec.threads = 1,
                            .epochs = 2,
                            .optimizer.lr = 0.05};
    adj_predictor *p = NULL;
    adj_error error = {0};
    check(adj_fit(&net, d, d, &o, &p, &error) == ADJ_OK, "%s", error.message);
    return p;
}

static void evaluate_alone(adj_predictor *p, const adj_dataset *d)
{
    adj_score score = {0};
    adj_error error = {0};
    check(adj_predictor_evaluate(p, d, &score, NULL, &error) == ADJ_OK, "%s", error.message);
    check(score.count == IMAGES && score.loss > 0, "%lld images, loss %g", (long long)score.count,
          score.loss);
    adj_predictor_free(p);
}

int main(void)
{
    adj_error error = {0};
    adj_mpi *group;
    adj_dataset *d = NULL;
    const adj_dataset_opts few = {.limit = IMAGES, .seed = 1};
    if (adj_mpi_open(&group, &error) != ADJ_OK)
        return fprintf(stderr, "%s\n", error.message), 1;
    check(adj_dataset_open(NULL, ADJ_TRAIN, &few, &d) == ADJ_OK, "no data set");
    other_values(group, d);
    stop_together(group, d);
    other_options(group, d);
    other_start(group, d);
    unwritable(group, d);
    adj_predictor *p = train_together(group, d);
    const int rank = adj_mpi_ranks(group)->rank, size = adj_mpi_ranks(group)->size;
    adj_mpi_close(group);
    evaluate_alone(p, d);
    adj_dataset_free(d);
    if (rank == 0 && n_wrong == 0)
        printf("%d ranks: all is right\n", size);
    return n_wrong > 0;
}
