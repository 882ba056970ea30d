/* test_dataset.c - data sets over memory and over a source: read, measured, refused; and the count
 * of right answers: literal scores, and a whole data set whose last batch is short. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <string.h>

#include "adjoint_data.h"
#include "io/data/origin.h"
#include "tests/io/scoped.h"
#include "tests/plan.h"

static const uint8_t images[2 * 2 * 2 * 3] = {10, 20, 30, 40, 50, 60,  70,  80,  90,  100, 110, 120,
                                              1,  2,  3,  4,  5,  255, 255, 255, 255, 0,   0,   7};
static const int32_t labels[2] = {1, 0};
/* numpy: images.reshape(-1, 3).mean(0), .std(0) */
static const double means[3] = {60, 65.25, 102.5}, deviations[3] = {81.2727, 80.9271, 95.5628};

static void expect_moments(const adj_dataset *d)
{
    for (int c = 0; c < 3; c++) {
        cr_expect_float_eq(d->mean[c], means[c], 1e-3, "mean %g", d->mean[c]);
        cr_expect_float_eq(d->deviation[c], deviations[c], 1e-3, "deviation %g", d->deviation[c]);
    }
}

Test(dataset, over_memory)
{
    for (int copy = 0; copy < 2; copy++) {
        uint8_t bytes[sizeof images];
        scoped(release_dataset) adj_dataset *d = NULL;
        float got[12];
        memcpy(bytes, images, sizeof bytes);
        cr_assert_eq(adj_dataset_new(2, 2, 2, 3, 4, bytes, labels, copy, &d), ADJ_OK, "%s",
                     d->message);
        cr_expect(d->n == 2 && d->size.h == 2 && d->size.w == 2 && d->size.c == 3 &&
                  d->classes == 4);
        cr_expect_eq(d->images == bytes, !copy);
        expect_moments(d);
        bytes[12] = 99;
        cr_assert_eq(adj_dataset_read(d, 1, got, NULL), ADJ_OK);
        cr_expect(got[0] == (copy ? 1 : 99) && got[11] == 7);
        cr_expect(d->labels[0] == 1 && d->labels[1] == 0);
        cr_expect_eq(adj_dataset_read(d, 2, got, NULL), ADJ_EARG);
        cr_expect_eq(adj_dataset_read(d, -1, got, NULL), ADJ_EARG);
    }
}

typedef struct {
    int freed, fails_at;
} user;

static adj_status read_image(void *at, int64_t i, float *pixels, adj_error *error)
{
    const user *u = at;
    if (i >= u->fails_at)
        return adj_error_set(error, ADJ_EIO, "image %lld is gone", (long long)i);
    for (int k = 0; k < 12; k++)
        pixels[k] = images[12 * i + k];
    return ADJ_OK;
}
static void free_user(void *at) { ((user *)at)->freed++; }

static adj_source source_of(user *u)
{
    return (adj_source){.read = read_image, .free = free_user, .user = u};
}

Test(dataset, over_a_source)
{
    adj_dataset like = {.n = 2, .size = {2, 2, 3}, .classes = 2, .labels = labels};
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        user u = {.fails_at = 2};
        const adj_source s = source_of(&u);
        adj_dataset *d = NULL;
        float x[24] = {0};
        int32_t got[2];
        cr_assert_eq(adj_dataset_from_source(&like, &s, &d), ADJ_OK, "%s", d->message);
        expect_moments(d);
        cr_expect_null(d->images);
        cr_expect_eq(adj_batch(d, NULL, 0, (adj_shape){4, {2, 2, 2, 3}}, x, got, NULL), 2);
        cr_expect(got[0] == 1 && got[1] == 0);
        cr_expect_float_eq(x[12], (1 - means[0]) / deviations[0], 1e-5);
        adj_dataset_free(d);
        cr_expect_eq(u.freed, 1);
    }
    user u = {.fails_at = 1};
    const adj_source s = source_of(&u);
    adj_dataset *d = NULL;
    cr_expect_eq(adj_dataset_from_source(&like, &s, &d), ADJ_EIO);
    cr_expect_str_eq(d->message, "image 1 is gone");
    adj_dataset_free(d);

    const float mean[3] = {1, 2, 3}, deviation[3] = {4, 5, 6};
    memcpy(like.mean, mean, sizeof mean); /* nothing is read for them */
    memcpy(like.deviation, deviation, sizeof deviation);
    adj_error error = {0};
    float x[24];
    int32_t got[2];
    cr_assert_eq(adj_dataset_from_source(&like, &s, &d), ADJ_OK);
    cr_expect(d->mean[2] == 3 && d->deviation[0] == 4 && d->deviation[3] == 1);
    cr_expect_eq(adj_batch(d, NULL, 0, (adj_shape){4, {2, 2, 2, 3}}, x, got, &error), -1);
    cr_expect_str_eq(error.message, "image 1 is gone");
    adj_dataset_free(d);
    cr_expect_eq(u.freed, 2);
}

Test(dataset, constant_images)
{
    static const uint8_t same[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    scoped(release_dataset) adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_new(2, 2, 2, 1, 2, same, labels, 0, &d), ADJ_OK);
    cr_expect(d->mean[0] == 7 && d->deviation[0] == 1);
}

Test(dataset, refused)
{
    static const int32_t beyond[] = {0, 2}, below[] = {-1, 0};
    static const struct {
        const char *word;
        int64_t n, h, w, c;
        int classes;
        const uint8_t *images;
        const int32_t *labels;
    } cases[] = {
        {"number of images is out of range (got 0", 0, 2, 2, 3, 2, images, labels},
        {"number of images is out of range (got -1", -1, 2, 2, 3, 2, images, labels},
        {"(got 0x2x3", 2, 0, 2, 3, 2, images, labels},
        {"(got 2x9999999x3", 2, 2, 9999999, 3, 2, images, labels},
        {"(got 2x2x5", 2, 2, 2, 5, 2, images, labels},
        {"number of classes is out of range (got 1, expected 2 to 100000)", 2, 2, 2, 3, 1, images,
         labels},
        {"number of classes is out of range (got 100001", 2, 2, 2, 3, 100001, images, labels},
        {"images are missing", 2, 2, 2, 3, 2, NULL, labels},
        {"labels are missing", 2, 2, 2, 3, 2, images, NULL},
        {"label of image 1 is out of range (got 2, expected 0 to 1)", 2, 2, 2, 3, 2, images,
         beyond},
        {"label of image 0 is out of range (got -1", 2, 2, 2, 3, 2, images, below},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(release_dataset) adj_dataset *d = NULL;
        cr_expect_eq(adj_dataset_new(cases[i].n, cases[i].h, cases[i].w, cases[i].c,
                                     cases[i].classes, cases[i].images, cases[i].labels, 0, &d),
                     ADJ_EARG);
        cr_expect(d->n == 0 && d->images == NULL && d->labels == NULL);
        expect_text(d->message, cases[i].word);
    }
    cr_expect_eq(adj_dataset_new(2, 2, 2, 3, 2, images, labels, 0, NULL), ADJ_EARG);
    cr_expect_eq(adj_dataset_from_source(NULL, NULL, NULL), ADJ_EARG);
    adj_dataset *d = NULL;
    cr_expect_eq(adj_dataset_from_source(NULL, NULL, &d), ADJ_EARG);
    cr_assert_not_null(d);
    expect_text(d->message, "data: the source is NULL");
    adj_dataset_free(d);
    user u = {0};
    const adj_source source = source_of(&u);
    cr_expect_eq(adj_dataset_from_source(NULL, &source, &d), ADJ_EARG);
    expect_text(d->message, "sizes and labels of the source are missing");
    adj_dataset_free(d);
    cr_expect_eq(u.freed, 1);
    float x[12];
    adj_error error = {0};
    const adj_dataset by_hand = {.n = 2, .size = {2, 2, 3}, .classes = 2, .labels = labels};
    cr_expect_eq(adj_dataset_read(&by_hand, 0, x, &error), ADJ_EARG);
    cr_expect_str_eq(error.message, "data: the images are missing");
    /* batches: indices of images that are none, and nowhere to put them */
    int32_t y[2];
    const adj_shape one = {4, {1, 2, 2, 3}}, two = {4, {2, 2, 2, 3}};
    cr_assert_eq(adj_dataset_new(2, 2, 2, 3, 2, images, labels, 0, &d), ADJ_OK);
    cr_expect_eq(adj_batch(d, (int64_t[]){0, (int64_t)1 << 40}, 1, one, x, y, &error), -1);
    cr_expect_str_eq(error.message,
                     "batch: an index in order is wrong (got 1099511627776, expected 0 to 1)");
    cr_expect_eq(adj_batch(d, (int64_t[]){-1, 0}, 1, two, x, y, &error), -1); /* padding */
    expect_text(error.message, "(got -1, expected 0 to 1)");
    cr_expect_eq(adj_batch(d, NULL, 0, one, NULL, y, &error), -1);
    expect_text(error.message, "batch: x or labels is NULL");
    cr_expect_eq(adj_batch(d, NULL, 0, one, x, NULL, &error), -1);
    expect_text(error.message, "batch: x or labels is NULL");
    adj_dataset_free(d);
}

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
enum { N_IMAGE = 7, N_CLASS = 8 };

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_node *images, *scores;
} net;

static net nearest_class(int64_t channels)
{
    float k[N_CLASS];
    for (int i = 0; i < N_CLASS; i++)
        k[i] = (float)i;
    net m = {.g = adj_graph_new()};
    m.images = adj_input(m.g, "images", ADJ_F32, (adj_shape){4, {3, 1, 1, channels}});
    adj_node *pixel = adj_slice(m.images, (adj_shape){4, {0}}, (adj_shape){4, {3, 1, 1, 1}});
    pixel = adj_reshape(pixel, (adj_shape){2, {3, 1}});
    adj_node *apart = adj_sub(pixel, adj_const(m.g, ADJ_F32, (adj_shape){2, {1, N_CLASS}}, k));
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
    const uint8_t pixels[N_IMAGE] = {0, 1, 2, 3, 4, 5, 6};
    const int32_t labels[N_IMAGE] = {0, 1, 0, 3, 4, 0, 6};
    const adj_dataset d = {.n = N_IMAGE,
                           .size = {1, 1, 1},
                           .classes = N_CLASS,
                           .images = pixels,
                           .labels = labels,
                           .deviation = {1}};
    net m = nearest_class(1);
    adj_error error;
    int64_t right = -1;
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &d, &right, &error), ADJ_OK);
    cr_expect_eq(right, 5, "got %lld", (long long)right);

    cr_expect_eq(adj_evaluate(m.e, m.images, m.images, &d, &right, &error), ADJ_ESHAPE);
    expect_text(error.message, "logits f32 [n, classes]");
    cr_expect_eq(adj_evaluate(m.e, NULL, m.scores, &d, &right, NULL), ADJ_ESHAPE);
    adj_node *other = adj_scale(m.scores, 2); /* right type, but not fetched */
    cr_expect_eq(adj_evaluate(m.e, m.images, other, &d, &right, &error), ADJ_EARG);
    expect_text(error.message, "was not fetched");
    net_free(&m);

    m = nearest_class(2); /* one channel becomes three, but not two */
    const adj_dataset three = {.n = 1,
                               .size = {1, 1, 3},
                               .classes = N_CLASS,
                               .images = pixels,
                               .labels = labels,
                               .deviation = {1}};
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &three, &right, &error), ADJ_ESHAPE);
    expect_text(error.message, "images of 1x1x3 cannot become 1x1x2: expected");

    adj_dataset other_data = d; /* more classes than logits; images without rows; without images */
    other_data.classes = N_CLASS + 1;
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &other_data, &right, &error), ADJ_ESHAPE);
    expect_text(error.message, "fewer classes than the data (got 8, expected 9)");
    other_data = d;
    other_data.size.h = 0;
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &other_data, &right, &error), ADJ_ESHAPE);
    expect_text(error.message, "images of 0x1x1 cannot become 1x1x2: expected sides of 1 to "
                               "32768 pixels");
    other_data.n = 0;
    cr_expect_eq(adj_evaluate(m.e, m.images, m.scores, &other_data, &right, &error), ADJ_EARG);
    expect_text(error.message, "expected a data set with images and labels");
    cr_expect_eq(adj_evaluate(NULL, m.images, m.scores, &d, &right, &error), ADJ_EARG);
    expect_text(error.message, "evaluate: executor, data set or result is NULL");

    scoped(release_exec) adj_exec *failed = NULL; /* the caller can read its error */
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &m.scores};
    adj_add(m.images, m.scores);
    cr_assert_eq(adj_exec_new(m.g, &o, &failed), ADJ_ESHAPE);
    cr_expect_eq(adj_evaluate(failed, m.images, m.scores, &d, &right, &error), ADJ_ESHAPE);
    cr_expect_null(strstr(error.message, "images must be"), "%s", error.message);
    net_free(&m);
}
