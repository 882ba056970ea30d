/* test_idx.c - the IDX reader on literal files, on every truncation of them, and on lies; and the
 * embedded digits: reproducible, balanced, fast; shuffling and batches. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "adjoint_data.h"
#include "io/data/origin.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

TestSuite(idx, .init = enter_folder, .fini = leave_folder);

/* Two images of 2 x 3, and their labels. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0,  0,  2,  0,  0,
                                 0, 3, 1, 2, 3, 4, 5, 6, 7, 80, 90, 10, 11, 255};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};
static const char *const image_name = "train-images-idx3-ubyte", *const label_name =
                                                                     "train-labels-idx1-ubyte";

/* One side of the pair replaced by other bytes. */
static void put_pair(int number, const void *bytes, size_t n)
{
    put_file(in_folder(&here, image_name).s, number == 0 ? bytes : images,
             number == 0 ? n : sizeof images);
    put_file(in_folder(&here, label_name).s, number == 1 ? bytes : labels,
             number == 1 ? n : sizeof labels);
}

static void expect_good(void)
{
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    expect_sizes(d, 2, 2, 3, 1, 10);
    cr_assert(memcmp(d->images, images + 16, 12) == 0 && d->labels[0] == 7 && d->labels[1] == 9);
}

/* Refused with a message that names the file and has the word. */
static void expect_refused(const char *file, const char *word)
{
    scoped(release_dataset) adj_dataset *d = NULL;
    cr_expect_eq(adj_dataset_open(here.path, ADJ_TRAIN, NULL, &d), ADJ_EIO, "%s %s", file, word);
    cr_expect(d->n == 0 && d->images == NULL && d->labels == NULL);
    expect_text(d->message, file);
    expect_text(d->message, word);
}

static size_t compress_to(uint8_t *out, size_t room, const void *bytes, size_t n)
{
    z_stream z = {
        .next_in = (uint8_t *)bytes, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)room};
    cr_assert_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    cr_assert_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t made = z.total_out;
    deflateEnd(&z);
    return made;
}

Test(idx, literal_plain_and_gz)
{
    uint8_t packed[200];
    put_pair(2, NULL, 0);
    expect_good();
    cr_assert_eq(unlink(in_folder(&here, image_name).s), 0);
    put_file(in_folder(&here, "train-images-idx3-ubyte.gz").s, packed,
             compress_to(packed, sizeof packed, images, sizeof images));
    expect_good();
    /* gzip without the name, and a name without gzip */
    put_file(in_folder(&here, label_name).s, packed,
             compress_to(packed, sizeof packed, labels, sizeof labels));
    put_file(in_folder(&here, "train-images-idx3-ubyte.gz").s, images, sizeof images);
    expect_good();
}

Test(idx, truncated_at_every_byte)
{
    char offset[32];
    for (int number = 0; number < 2; number++)
        for (size_t n = 0; n < (number == 0 ? sizeof images : sizeof labels); n++) {
            put_pair(number, number == 0 ? images : labels, n);
            snprintf(offset, sizeof offset, "offset %zu: ", n);
            expect_refused(number == 0 ? image_name : label_name, offset);
        }
}

Test(idx, gz_truncated_and_damaged_at_every_byte)
{
    uint8_t packed[200], damaged[200];
    size_t size = compress_to(packed, sizeof packed, images, sizeof images);

    for (size_t n = 0; n < size; n++) {
        put_pair(0, packed, n);
        expect_refused(image_name, "offset ");
    }
    for (size_t n = 0; n < size; n++) {
        memcpy(damaged, packed, size);
        damaged[n] ^= 0x55;
        put_pair(0, damaged, size);
        if (n >= 4 && n < 10) /* time, flags, system: they say nothing of the data */
            expect_good();
        else
            expect_refused(image_name, "offset ");
    }
}

/* A gzip file may have several members, but nothing else, and its data no more than the header
 * says. */
Test(idx, gz_members_and_what_follows)
{
    uint8_t packed[400], longer[sizeof images + 1] = {0};
    size_t first = compress_to(packed, sizeof packed, images, 13);
    size_t both =
        first + compress_to(packed + first, sizeof packed - first, images + 13, sizeof images - 13);
    put_pair(0, packed, both);
    expect_good();
    for (size_t n = 1; n < 30; n += 7) {
        memset(packed + both, n == 15 ? 0 : 'x', n);
        put_pair(0, packed, both + n);
        expect_refused(image_name,
                       n > 1 ? "offset 28: more bytes follow the compressed data" : "offset 28: ");
    }
    put_pair(0, packed, both - 1);
    expect_refused(image_name, "offset 28: the compressed file ends early");
    memcpy(longer, images, sizeof images);
    put_pair(0, packed, compress_to(packed, sizeof packed, longer, sizeof longer));
    expect_refused(image_name, "offset 28: more bytes than the header says");
}

typedef struct {
    const char *word;
    int number, at; /* number of the file; offset of the bytes that are replaced or appended */
    size_t n;
    uint8_t bytes[13];
} lie;

Test(idx, lies)
{
    static const lie lies[] = {
        {"magic", 0, 0, 1, {1}},
        {"offset 0: ", 0, 0, 2, {31, 139}}, /* says gzip, is not */
        {"magic", 0, 2, 1, {9}},            /* signed bytes */
        {"magic", 0, 3, 1, {1}},            /* rank 1 */
        {"magic", 0, 3, 1, {255}},
        {"magic", 1, 3, 1, {3}},
        {"offset 4: dimension 0 is 0", 0, 4, 4, {0, 0, 0, 0}},
        {"offset 12: dimension 2 is 0", 0, 12, 4, {0, 0, 0, 0}},
        {"offset 28: ", 0, 4, 4, {0, 0, 0, 3}},
        {"offset 28: ", 0, 4, 4, {1, 0, 0, 0}},
        {"offset 22: more bytes", 0, 4, 4, {0, 0, 0, 1}},
        {"too much", 0, 4, 4, {255, 255, 255, 255}},
        {"too much", 0, 4, 12, {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}},
        {"too much", 0, 4, 8, {0, 1, 0, 0, 0, 1, 0, 0}},
        {"offset 28: ", 0, 4, 12, {0x7f, 255, 255, 255, 0, 0, 0, 1, 0, 0, 0, 1}},
        {"offset 10: ", 1, 4, 4, {0, 0, 0, 3}},
        {"offset 10: ", 1, 4, 4, {0x7f, 255, 255, 255}},
        {"offset 9: more bytes", 1, 4, 4, {0, 0, 0, 1}},
        {"offset 28: more bytes", 0, sizeof images, 1, {0}},
        {"offset 10: more bytes", 1, sizeof labels, 1, {0}},
        {"offset 4: number of labels differs (got 3, expected 2)", 1, 4, 7, {0, 0, 0, 3, 1, 2, 3}},
    };
    struct rlimit limit;
    (void)limit;
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer reserves terabytes */
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    cr_assert(statm != NULL && fscanf(statm, "%ld", &pages) == 1);
    fclose(statm);
    limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (16 << 20);
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
#endif
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        const lie *l = &lies[i];
        uint8_t bytes[sizeof images + 1] = {0};
        const size_t whole = l->number == 0 ? sizeof images : sizeof labels, end = l->at + l->n;
        memcpy(bytes, l->number == 0 ? images : labels, whole);
        memcpy(bytes + l->at, l->bytes, l->n);
        put_pair(l->number, bytes, end > whole ? end : whole);
        expect_refused(l->number == 0 ? image_name : label_name, l->word);
    }
}

Test(idx, wide_labels)
{
    const uint8_t wide[] = {0, 0, 12, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0,
                            0, 1, 0,  0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    put_pair(1, wide, sizeof wide);
    expect_refused(label_name, "offset 20: the label of image 1 is out of range (got 16777216,");
}

Test(idx, not_files, .timeout = 60)
{
    put_file(in_folder(&here, label_name).s, labels, sizeof labels);
    expect_refused(image_name, "No such file");
    cr_assert_eq(mkfifo(in_folder(&here, image_name).s, 0600), 0);
    expect_refused(image_name, "not a regular file"); /* and does not wait for a writer */
    unlink(in_folder(&here, image_name).s);
    cr_assert_eq(mkdir(in_folder(&here, image_name).s, 0700), 0);
    expect_refused(image_name, "is a folder");
    rmdir(in_folder(&here, image_name).s);
}

static void expect_mnist(adj_dataset_part part, int64_t n, int64_t pixels, const int32_t first[5])
{
    scoped(release_dataset) adj_dataset *d = dataset_of("../shared/data/mnist", part, NULL);
    int64_t sum = 0;
    for (int64_t i = 0; i < d->n * d->size.h * d->size.w; i++)
        sum += d->images[i];
    expect_sizes(d, n, 28, 28, 1, 10);
    cr_expect_eq(sum, pixels);
    cr_expect_arr_eq(d->labels, first, 5 * sizeof *first);
}

Test(idx, real_digits)
{
    if (access("../shared/data/mnist", F_OK) != 0)
        cr_skip_test("../shared/data/mnist is not here");
    expect_mnist(ADJ_TRAIN, 8000, 211787385, (const int32_t[5]){2, 1, 0, 4, 4});
    expect_mnist(ADJ_TEST, 2000, 53135815, (const int32_t[5]){7, 1, 0, 5, 9});
}

/* ---- the embedded digits ---- */

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
    expect_text(d->message, "-1");
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
    float x[40]; /* pixels of the first image of the batch */
    int32_t labels[2];
} batch_case;

Test(batch, sizes_and_padding)
{
    static const batch_case cases[] = {
        {{0, 2, 2, 1, 2}, {21, 22, 23, 24}, {6, 4}},
        {{2, 2, 2, 1, 1}, {11, 12, 13, 14}, {5, -1}},  /* filled up with order[0] */
        {{3, 2, 2, 1, 0}, {21, 22, 23, 24}, {-1, -1}}, /* past the end */
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
