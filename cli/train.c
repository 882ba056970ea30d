/* train.c - adjoint train: trains a model, tests it after each epoch, writes weights and a log.
 *
 * Two networks with the same parameter names: one for training steps, one for evaluation, which
 * gets the parameters by name before it is used or saved. Ctrl-C is noticed between two steps. */
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "augment.h"
#include "command.h"
#include "data.h"
#include "log.h"
#include "network.h"
#include "progress.h"

typedef struct {
    const char *model, *data, *optimizer, *backend, *log, *out;
    int64_t epochs, batch, shift, seed, threads;
    double lr;
} train_opts;

typedef struct {
    const train_opts *o;
    adj_dataset *train, *test;
    network trained, tested;
    adj_optimiser_opts optimiser;
    adj_schedule schedule;
    int64_t steps; /* of one epoch */
    int64_t *order;
    progress shown;
    FILE *log;
    int64_t best_epoch; /* counted from 1; 0: none yet */
    double best;
} training;

/* Only the signal handler writes it. */
static volatile sig_atomic_t interrupted;

static void note_interrupt(int number) { interrupted = number; }

/* The first Ctrl-C stops after the step, the second at once. */
static void catch_interrupts(void)
{
    struct sigaction a = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

static int parse(train_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--model", "NAME", "one of adjoint models; default: lenet", OPTION_TEXT, &o->model, 0, 0},
        {"--data", "DIR", "MNIST's four files; default: the drawn digits", OPTION_TEXT, &o->data, 0,
         0},
        {"--epochs", "N", "default: 10", OPTION_INTEGER, &o->epochs, 1, 100000},
        {"--batch", "N", "images in a step; default: 64", OPTION_INTEGER, &o->batch, 1, 100000},
        {"--lr", "X", "the first learning rate of the cosine schedule; default: the optimizer's",
         OPTION_REAL, &o->lr, 1e-12, 1e6},
        {"--optimizer", "NAME", "sgd, momentum (default), nesterov, adam or adamw", OPTION_TEXT,
         &o->optimizer, 0, 0},
        {"--shift", "N", "training images are moved by up to N pixels; default: 1", OPTION_INTEGER,
         &o->shift, 0, MOST_SHIFT},
        {"--seed", "N", "of initial values and shuffling; default: 1", OPTION_INTEGER, &o->seed, 0,
         9e15},
        {"--backend", "NAME", "onednn (default) or naive", OPTION_TEXT, &o->backend, 0, 0},
        {"--threads", "N", "default: OpenMP's", OPTION_INTEGER, &o->threads, 1, 1024},
        {"--log", "FILE", "one JSON object a line", OPTION_TEXT, &o->log, 0, 0},
        {"--out", "FILE", "the weights, as safetensors; on Ctrl-C as well", OPTION_TEXT, &o->out, 0,
         0},
    };
    const usage u = {"train", "Trains a model and tests it after each epoch.",
                     sizeof options / sizeof options[0], options};
    return parse_options(&u, argc, argv);
}

static int unknown_optimizer(const char *name)
{
    const char *names[16];
    int n = 0;
    while (n < 16 && (names[n] = adj_optimiser_name(n)) != NULL)
        n++;
    const char *nearest = nearest_name(name, names, n, sizeof names[0]);
    return complain("train", EXIT_USAGE, "unknown optimizer %s (did you mean %s?)", name,
                    nearest != NULL ? nearest : names[0]);
}

static double default_rate(const char *optimizer)
{
    if (strncmp(optimizer, "adam", 4) == 0)
        return 0.001;
    return strcmp(optimizer, "sgd") == 0 ? 0.05 : 0.01;
}

/* A long run should not fail at its end for a wrong name. */
static int check_out(const char *out)
{
    struct stat s;
    if (out == NULL)
        return CONTINUE;
    if (stat(out, &s) == 0 && !S_ISREG(s.st_mode))
        return complain("train", EXIT_FAILED, "--out: %s: is not a regular file", out);
    char *folder = strdup(out);
    int bad = folder == NULL || access(dirname(folder), W_OK) != 0;
    if (bad)
        complain("train", EXIT_FAILED, "--out: %s: %s", out, strerror(errno));
    free(folder);
    return bad ? EXIT_FAILED : CONTINUE;
}

static int open_networks(training *t)
{
    const train_opts *o = t->o;
    network_opts options = {.model = o->model,
                            .batch = o->batch,
                            .classes = t->train->classes,
                            .seed = o->seed,
                            .threads = o->threads,
                            .backend = o->backend,
                            .optimiser = &t->optimiser};

    if (network_open(&t->trained, &options) != ADJ_OK)
        return complain("train", t->trained.model == NULL ? EXIT_USAGE : EXIT_FAILED, "%s",
                        t->trained.message);
    options.optimiser = NULL;
    options.batch = t->test->n < EVAL_BATCH ? t->test->n : EVAL_BATCH;
    if (network_open(&t->tested, &options) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", t->tested.message);
    return CONTINUE;
}

static int start(training *t)
{
    const train_opts *o = t->o;

    if (adj_optimiser_from_name(o->optimizer, &t->optimiser) != ADJ_OK)
        return unknown_optimizer(o->optimizer);
    int status = check_out(o->out);
    if (status == CONTINUE)
        status = open_data("train", o->data, ADJ_TRAIN, &t->train);
    if (status == CONTINUE)
        status = open_data("train", o->data, ADJ_TEST, &t->test);
    if (status == CONTINUE)
        status = open_networks(t);
    if (status != CONTINUE)
        return status;
    if (o->log != NULL && (t->log = fopen(o->log, "w")) == NULL)
        return complain("train", EXIT_FAILED, "--log: %s: %s", o->log, strerror(errno));
    t->order = calloc((size_t)t->train->n, sizeof *t->order);
    if (t->order == NULL)
        return complain("train", EXIT_FAILED, "out of memory");

    t->steps = (t->train->n + o->batch - 1) / o->batch;
    t->schedule = (adj_schedule){.kind = ADJ_SCHEDULE_COSINE,
                                 .base = o->lr > 0 ? o->lr : default_rate(o->optimizer),
                                 .total = o->epochs * t->steps};
    return CONTINUE;
}

static int log_start(const training *t)
{
    const train_opts *o = t->o;

    printf("%s, %lld parameters, on %s: %lld images to train on, %lld to test\n", o->model,
           (long long)t->trained.params, data_name(o->data), (long long)t->train->n,
           (long long)t->test->n);
    fflush(stdout);
    return log_line(
        t->log,
        json_pack("{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:f, s:I, s:I, s:s}", "event",
                  "start", "model", o->model, "parameters", (json_int_t)t->trained.params, "data",
                  data_name(o->data), "train_images", (json_int_t)t->train->n, "test_images",
                  (json_int_t)t->test->n, "epochs", (json_int_t)o->epochs, "batch",
                  (json_int_t)o->batch, "optimizer", o->optimizer, "schedule", "cosine", "lr",
                  t->schedule.base, "shift", (json_int_t)o->shift, "seed", (json_int_t)o->seed,
                  "backend", o->backend != NULL ? o->backend : "onednn"));
}

/* All steps of an epoch, or those up to an interrupt. */
static int train_epoch(training *t, int64_t epoch, tally *sum)
{
    training_step s = {.order = t->order,
                       .shift = t->o->shift,
                       .seed = (uint64_t)t->o->seed,
                       .drawn = (uint64_t)(epoch * t->steps * t->o->batch)};

    adj_shuffle(t->train->n, (uint64_t)t->o->seed, (uint64_t)epoch, t->order);
    for (int64_t step = 0; step < t->steps && !interrupted; step++) {
        s.lr = adj_schedule_at(&t->schedule, epoch * t->steps + step);
        if (network_step(&t->trained, t->train, step * t->o->batch, &s, sum) != ADJ_OK) {
            progress_clear(&t->shown);
            return complain("train", EXIT_FAILED, "%s", t->trained.message);
        }
        if (!isfinite(sum->loss)) {
            progress_clear(&t->shown);
            return complain("train", EXIT_FAILED,
                            "the loss is not finite in step %lld of epoch %lld: try a smaller --lr "
                            "(now %g)",
                            (long long)step + 1, (long long)epoch + 1, s.lr);
        }
        progress_step(&t->shown, epoch, step, *sum);
    }
    return CONTINUE;
}

/* Tests, prints and logs an epoch that took so many seconds. */
static int finish_epoch(training *t, int64_t epoch, tally train, double took)
{
    tally test;
    adj_status status = adj_copy_params(t->tested.exec, t->trained.exec);

    progress_clear(&t->shown);
    if (status != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", adj_exec_message(t->tested.exec));
    if (network_evaluate(&t->tested, t->test, &test) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", t->tested.message);
    if (t->best_epoch == 0 || accuracy(test) > t->best) {
        t->best_epoch = epoch + 1;
        t->best = accuracy(test);
    }
    double speed = took > 0 ? (double)train.count / took : 0;
    printf("epoch %2lld/%lld  loss %.4f  accuracy %.2f %%  test loss %.4f  test accuracy %.2f %%  "
           "%.0f images/s\n",
           (long long)epoch + 1, (long long)t->o->epochs, mean_loss(train), accuracy(train),
           mean_loss(test), accuracy(test), speed);
    fflush(stdout);
    double lr = adj_schedule_at(&t->schedule, (epoch + 1) * t->steps - 1);
    return log_line(t->log, json_pack("{s:s, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "event",
                                      "epoch", "epoch", (json_int_t)epoch + 1, "loss",
                                      mean_loss(train), "accuracy", accuracy(train), "test_loss",
                                      mean_loss(test), "test_accuracy", accuracy(test), "lr", lr,
                                      "images_per_second", speed, "seconds", took))
               ? complain("train", EXIT_FAILED, "--log: %s: cannot be written", t->o->log)
               : CONTINUE;
}

static int save(training *t)
{
    char message[ADJ_MESSAGE];
    const adj_metadata metadata[] = {{"model", t->o->model}, {"optimizer", t->o->optimizer}};

    if (t->o->out == NULL)
        return CONTINUE;
    if (adj_copy_params(t->tested.exec, t->trained.exec) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", adj_exec_message(t->tested.exec));
    if (adj_weights_save(t->tested.exec, t->o->out, 2, metadata, message, sizeof message) != ADJ_OK)
        return complain("train", EXIT_FAILED, "--out: %s", message);
    printf("weights written to %s\n", t->o->out);
    return CONTINUE;
}

static int run(training *t)
{
    int status =
        log_start(t) ? complain("train", EXIT_FAILED, "--log: cannot be written") : CONTINUE;

    catch_interrupts();
    t->shown = progress_start(t->o->epochs, t->steps, t->o->batch);
    for (int64_t epoch = 0; epoch < t->o->epochs && status == CONTINUE && !interrupted; epoch++) {
        tally sum = {0};
        double began = seconds_now();
        status = train_epoch(t, epoch, &sum);
        if (status == CONTINUE && !interrupted)
            status = finish_epoch(t, epoch, sum, seconds_now() - began);
    }
    progress_clear(&t->shown);
    if (status != CONTINUE)
        return status;
    if (t->best_epoch > 0)
        printf("best: %.2f %% in epoch %lld\n", t->best, (long long)t->best_epoch);
    if (interrupted)
        printf("stopped after the step\n");
    status = save(t);
    if (log_line(t->log,
                 json_pack("{s:s, s:I, s:f, s:b, s:f}", "event", "end", "best_epoch",
                           (json_int_t)t->best_epoch, "best_accuracy", t->best, "interrupted",
                           interrupted != 0, "seconds", seconds_now() - t->shown.started)) != 0)
        return complain("train", EXIT_FAILED, "--log: %s: cannot be written", t->o->log);
    if (status != CONTINUE)
        return status;
    return interrupted ? EXIT_INTERRUPTED : EXIT_OK;
}

int command_train(int argc, char **argv)
{
    train_opts o = {.model = "lenet",
                    .optimizer = "momentum",
                    .epochs = 10,
                    .batch = 64,
                    .shift = 1,
                    .seed = 1};
    training t = {.o = &o};

    int status = parse(&o, argc, argv);
    if (status == CONTINUE) {
        if (o.threads > 0)
            omp_set_num_threads((int)o.threads);
        status = start(&t);
        if (status == CONTINUE)
            status = run(&t);
    }
    if (t.log != NULL && fclose(t.log) != 0 && status == EXIT_OK)
        status = complain("train", EXIT_FAILED, "--log: %s: cannot be written", o.log);
    free(t.order);
    network_close(&t.tested);
    network_close(&t.trained);
    adj_dataset_free(t.test);
    adj_dataset_free(t.train);
    return status;
}
