/* test_digits.c - the embedded digits: reproducible, balanced, fast; shuffling and batches. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "adjoint_data.h"
#include "tests/io/scoped.h"

static uint32_t checksum(const adj_dataset *d)
{
    return (uint32_t)crc32(0, d->images, (uInt)(d->n * d->size.h * d->size.w));
}

static adj_dataset *digits(adj_dataset_part part, int64_t n, uint64_t seed)
{
    adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_digits(part, n, seed, &d), ADJ_OK, "%s", d->message);
    cr_assert(d->size.h == 28 && d->size.w == 28 && d->size.c == 1 && d->classes == 10);
    return d;
}

Test(digits, the_same_everywhere)
{
    static const struct {
        adj_dataset_part part;
        uint64_t seed;
        uint32_t sum;
    } cases[] = {{ADJ_TRAIN, 1, 0x2503e1ad}, {ADJ_TEST, 1, 0xb6597314}, {ADJ_TRAIN, 2, 0x2c3db60e}};
    for (int threads = 1; threads <= 3; threads++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            omp_set_num_threads(threads);
            scoped(release_dataset) adj_dataset *d = digits(cases[i].part, 500, cases[i].seed);
            cr_expect_eq(checksum(d), cases[i].sum, "case %zu: 0x%08x", i, checksum(d));
        }
}

Test(digits, whole_set)
{
    scoped(release_dataset) adj_dataset *train = digits(ADJ_TRAIN, 0, 1),
                                        *test = digits(ADJ_TEST, 0, 1);
    cr_expect(train->n == 8000 && test->n == 2000);
    int count[2][10] = {{0}};
    for (int64_t i = 0; i < 8000; i++)
        count[0][train->labels[i]]++;
    for (int64_t i = 0; i < 2000; i++)
        count[1][test->labels[i]]++;
    for (int k = 0; k < 10; k++)
        cr_expect(count[0][k] == 800 && count[1][k] == 200);

    /* a part's first images do not depend on how many there are; no test image is a training one */
    scoped(release_dataset) adj_dataset *few = digits(ADJ_TRAIN, 20, 1);
    cr_expect_eq(memcmp(few->images, train->images, 20 * 784), 0);
    int shared = 0;
    for (int64_t i = 0; i < 2000; i++)
        for (int64_t j = 0; j < 8000; j++)
            shared += memcmp(test->images + 784 * i, train->images + 784 * j, 784) == 0;
    cr_expect_eq(shared, 0);
}

Test(digits, refused)
{
    adj_dataset *d = NULL;
    cr_expect_eq(adj_dataset_digits(ADJ_TRAIN, -1, 1, &d), ADJ_EARG);
    cr_expect_not_null(strstr(d->message, "-1"));
    adj_dataset_free(d);
    cr_expect_eq(adj_dataset_digits(ADJ_TRAIN, 1, 1, NULL), ADJ_EARG);
    cr_expect_eq(adj_dataset_digits(ADJ_VALIDATION, 5, 1, &d), ADJ_EARG);
    adj_dataset_free(d);
}

Test(shuffle, permutation)
{
    enum { N = 1000 };
    int64_t a[N], b[N];
    int seen[N] = {0}, moved = 0, other = 0;
    adj_shuffle(N, 7, 3, a);
    adj_shuffle(N, 7, 3, b);
    cr_expect_arr_eq(a, b, sizeof a);
    adj_shuffle(N, 7, 4, b);
    for (int i = 0; i < N; i++) {
        seen[a[i]]++;
        moved += a[i] != i;
        other += a[i] != b[i];
    }
    for (int i = 0; i < N; i++)
        cr_expect_eq(seen[i], 1);
    cr_expect(moved > 980 && other > 980);
    adj_shuffle(0, 1, 1, a);
    adj_shuffle(1, 1, 1, a);
    cr_expect_eq(a[0], 0);

    /* each of 6 orders of 3 comes about as often */
    int often[27] = {0};
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        adj_shuffle(3, 1, epoch, a);
        often[9 * a[0] + 3 * a[1] + a[2]]++;
    }
    for (int i = 0; i < 27; i++)
        cr_expect(often[i] == 0 || (often[i] > 850 && often[i] < 1150), "%d: %d", i, often[i]);
}

/* Three images of 2 x 2 whose pixels are 10 i + 0 .. 3, values left as they are. */
static adj_dataset three(uint8_t pixels[12], int32_t labels[3])
{
    for (int i = 0; i < 3; i++) {
        labels[i] = i + 4;
        for (int k = 0; k < 4; k++)
            pixels[4 * i + k] = (uint8_t)(10 * i + k + 1);
    }
    return (adj_dataset){.n = 3,
                         .size = {2, 2, 1},
                         .classes = 10,
                         .images = pixels,
                         .labels = labels,
                         .deviation = {1}};
}

typedef struct {
    struct {
        int64_t first, h, w, c, real;
    } of;
    float x[40]; /* of the first image of the batch */
    int32_t labels[2];
} batch_case;

Test(batch, sizes_and_padding)
{
    static const batch_case cases[] = {
        {{0, 2, 2, 1, 2}, {21, 22, 23, 24}, {6, 4}},
        {{2, 2, 2, 1, 1}, {11, 12, 13, 14}, {5, -1}},  /* filled up with order[0] */
        {{3, 2, 2, 1, 0}, {21, 22, 23, 24}, {-1, -1}}, /* behind the end */
        {{0, 2, 2, 3, 2}, {21, 21, 21, 22, 22, 22, 23, 23, 23, 24, 24, 24}, {6, 4}},
        /* torch.nn.functional.interpolate(mode="bilinear", align_corners=False) */
        {{0, 4, 4, 1, 2},
         {21, 21.25f, 21.75f, 22, 21.5f, 21.75f, 22.25f, 22.5f, 22.5f, 22.75f, 23.25f, 23.5f, 23,
          23.25f, 23.75f, 24},
         {6, 4}},
        {{0, 3, 4, 1, 2},
         {21, 21.25f, 21.75f, 22, 22, 22.25f, 22.75f, 23, 23, 23.25f, 23.75f, 24},
         {6, 4}},
        {{0, 1, 2, 1, 2}, {22, 23}, {6, 4}},
        {{0, 1, 1, 1, 2}, {22.5f}, {6, 4}},
    };
    static const int64_t order[] = {2, 0, 1};
    uint8_t pixels[12];
    int32_t labels[3], got[2];
    adj_dataset d = three(pixels, labels);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const batch_case *c = &cases[i];
        float x[80];
        adj_shape shape = {4, {2, c->of.h, c->of.w, c->of.c}};
        cr_expect_eq(adj_batch(&d, order, c->of.first, shape, x, got, NULL), c->of.real, "case %zu",
                     i);
        cr_expect_arr_eq(got, c->labels, sizeof got, "case %zu", i);
        cr_expect_arr_eq(x, c->x, (size_t)(c->of.h * c->of.w * c->of.c) * sizeof x[0], "case %zu",
                         i);
    }
    d.mean[0] = 1, d.deviation[0] = 2;
    float x[80];
    cr_expect_eq(adj_batch(&d, NULL, 0, (adj_shape){4, {2, 2, 2, 1}}, x, got, NULL), 2);
    cr_expect(x[0] == 0 && x[1] == 0.5f && x[4] == 5);
    cr_expect_eq(adj_batch(&d, NULL, 0, (adj_shape){3, {2, 2, 2}}, x, got, NULL), -1);
    cr_expect_eq(adj_batch(&d, NULL, -1, (adj_shape){4, {2, 2, 2, 1}}, x, got, NULL), -1);
    d.size.c = 2;
    cr_expect_eq(adj_batch(&d, NULL, 0, (adj_shape){4, {2, 2, 2, 3}}, x, got, NULL), -1);
}
