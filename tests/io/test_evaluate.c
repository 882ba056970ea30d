/* test_evaluate.c - counting right answers: literal scores, and a whole data set whose last batch
 * is short. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "adjoint_data.h"
#include "io/data/origin.h"
#include "tests/plan.h"

Test(evaluate, counts_rows)
{
    const float scores[] = {0,  2,       1, /* */ 3, 3,       1,   /* */ -5, -4,
                            -3, /* */ 9, 0, 0,       /* */ 1, NAN, 2};
    const int32_t labels[] = {1, 0, 2, -1, 2};
    cr_expect_eq(adj_count_right(5, 3, scores, labels), 4); /* a tie is the first one's */
    cr_expect_eq(adj_count_right(2, 3, scores, (int32_t[]){0, 1}), 0);
    cr_expect_eq(adj_count_right(0, 3, scores, labels), 0);
}

/* Seven images of one pixel, 0 .. 6, in batches of 3; the score of class k is
 * -(x - k)^2, largest at k == x. */
enum { N = 7, CLASSES = 8 };

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_node *images, *scores;
} net;

static net nearest_class(int64_t channels)
{
    float k[CLASSES];
    for (int i = 0; i < CLASSES; i++)
        k[i] = (float)i;
    net m = {.g = adj_graph_new()};
    m.images = adj_input(m.g, "images", ADJ_F32, (adj_shape){4, {3, 1, 1, channels}});
    adj_node *pixel = adj_slice(m.images, (adj_shape){4, {0}}, (adj_shape){4, {3, 1, 1, 1}});
    pixel = adj_reshape(pixel, (adj_shape){2, {3, 1}});
    adj_node *apart = adj_sub(pixel, adj_const(m.g, ADJ_F32, (adj_shape){2, {1, CLASSES}}, k));
    m.scores = adj_neg(adj_square(apart));
    adj_exec_opts o = {.n_fetch = 1, .fetch = &m.scores, .backend = "naive"};
    cr_assert_eq(adj_exec_new(m.g, &o, &m.e), ADJ_OK, "%s", adj_exec_message(m.e));
    return m;
}

static void net_free(net *m)
{
    adj_exec_free(m->e);
    adj_graph_free(m->g);
}

Test(evaluate, whole_data_set)
{
    const uint8_t pixels[N] = {0, 1, 2, 3, 4, 5, 6};
    const int32_t labels[N] = {0, 1, 0, 3, 4, 0, 6};
    const adj_dataset d = {.n = N,
                           .size = {1, 1, 1},
                           .classes = CLASSES,
                           .images = pixels,
                           .labels = labels,
                           .deviation = {1}};
    net m = nearest_class(1);
    adj_error error;
    int64_t right = -1;
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &d, &right, &error), ADJ_OK);
    cr_expect_eq(right, 5, "got %lld", (long long)right);

    cr_expect_eq(adj_evaluate(m.e, m.images, m.images, &d, &right, &error), ADJ_ESHAPE);
    cr_expect_not_null(strstr(error.message, "logits f32 [n, classes]"), "%s", error.message);
    cr_expect_eq(adj_evaluate(m.e, NULL, m.scores, &d, &right, NULL), ADJ_ESHAPE);
    adj_node *other = adj_scale(m.scores, 2); /* of the right type, but not fetched */
    cr_expect_eq(adj_evaluate(m.e, m.images, other, &d, &right, &error), ADJ_EARG);
    cr_expect_not_null(strstr(error.message, "was not fetched"), "%s", error.message);
    net_free(&m);

    m = nearest_class(2); /* one channel becomes three, but not two */
    const adj_dataset three = {.n = 1,
                               .size = {1, 1, 3},
                               .classes = CLASSES,
                               .images = pixels,
                               .labels = labels,
                               .deviation = {1}};
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &three, &right, &error), ADJ_ESHAPE);
    cr_expect_not_null(strstr(error.message, "images of 1x1x3 cannot become 1x1x2: expected"), "%s",
                       error.message);

    scoped(release_exec) adj_exec *failed = NULL; /* what it failed with is the caller's to know */
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &m.scores};
    adj_add(m.images, m.scores);
    cr_assert_eq(adj_exec_new(m.g, &o, &failed), ADJ_ESHAPE);
    cr_expect_eq(adj_evaluate(failed, m.images, m.scores, &d, &right, &error), ADJ_ESHAPE);
    cr_expect_null(strstr(error.message, "images must be"), "%s", error.message);
    net_free(&m);
}
