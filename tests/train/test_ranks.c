/* test_ranks.c - what ranks refuse to train with, by name. The other rank is made up: it says what
 * this one says, but for one number. Real ones are in tests/mpi. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_fit.h"

/* ---- a rank that is made up ---- */

typedef struct {
    int call, number; /* which one it says otherwise, of which all_gather */
    int calls;
} other_rank;

static adj_status all_gather(void *group, const void *mine, size_t bytes, void *all,
                             adj_error *error)
{
    other_rank *o = group;
    char *its = (char *)all + bytes;
    (void)error;
    memcpy(all, mine, bytes);
    memcpy(its, mine, bytes);
    if (o->calls++ == o->call) {
        cr_assert_lt((size_t)o->number * sizeof(uint64_t), bytes, "number %d", o->number);
        its[(size_t)o->number * sizeof(uint64_t)] ^= 1;
    }
    return ADJ_OK;
}

static adj_status broadcast(void *group, void *data, size_t bytes, adj_error *error)
{
    (void)group, (void)data, (void)bytes, (void)error;
    return ADJ_OK;
}

static double waited(void *group)
{
    (void)group;
    return 0;
}

/* ---- refused ---- */

static adj_dataset *make_data(void)
{
    enum { N = 12, SIDE = 4 };
    static const uint8_t images[N * SIDE * SIDE] = {1, 2, 3};
    static const int32_t labels[N] = {0, 1};
    adj_dataset *d;
    cr_assert_eq(adj_dataset_new(N, SIDE, SIDE, 1, 2, images, labels, 1, &d), ADJ_OK);
    return d;
}

static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    (void)training, (void)user;
    return adj_layer_dense(x, "logits", classes);
}

Test(ranks, refused_by_name)
{
    enum { VERSION, SETTINGS, KERNELS, NOTHING };
    static const struct {
        int call, number;
        const char *label;
    } cases[] = {{VERSION, 0, "version of the library"}, {SETTINGS, 0, "model"},
                 {SETTINGS, 1, "training data"},         {SETTINGS, 2, "held-out data"},
                 {KERNELS, 0, "choice of kernels"},      {NOTHING, 0, NULL}};
    const adj_net net = {.build = build, .name = "tiny"};
    adj_dataset *d = make_data();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        other_rank other = {.call = cases[i].call, .number = cases[i].number};
        const adj_ranks ranks = {.size = 2,
                                 .all_gather = all_gather,
                                 .broadcast = broadcast,
                                 .waited = waited,
                                 .group = &other};
        const adj_fit_opts o = {.epochs = 1, .batch = 4, .threads = 1, .ranks = &ranks};
        adj_trainer *t = NULL;
        adj_error error = {0};
        char expected[100];
        const adj_status status = adj_trainer_new(&net, d, d, &o, &t, &error);
        if (cases[i].label != NULL) {
            snprintf(expected, sizeof expected, "rank 1: its %s is another than rank 0's",
                     cases[i].label);
            cr_expect_eq(status, ADJ_EARG);
            cr_expect_str_eq(error.message, expected);
            cr_expect_null(t);
            cr_expect_eq(other.calls, cases[i].call + 1);
        } else {
            cr_expect_eq(status, ADJ_OK, "%s", error.message);
        }
        adj_trainer_free(t);
    }
    adj_dataset_free(d);
}
