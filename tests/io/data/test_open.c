/* test_open.c - data sets in files of every layout, recognized by their content: sizes, classes,
 * splits, and errors. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "adjoint_data.h"
#include "io/data/files.h"
#include "io/data/origin.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

static adj_dataset *open_part(const char *path, adj_dataset_part part, const adj_dataset_opts *o)
{
    adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_open(path, part, o, &d), ADJ_OK, "%s", d->message);
    cr_assert_str_empty(d->message);
    return d;
}

static void expect_refused(const char *path, adj_dataset_part part, const adj_dataset_opts *o,
                           const char *word)
{
    scoped(release_dataset) adj_dataset *d = NULL;
    cr_expect_neq(adj_dataset_open(path, part, o, &d), ADJ_OK, "%s", word);
    cr_expect(d->n == 0 && d->images == NULL && d->labels == NULL);
    cr_expect_not_null(strstr(d->message, word), "no \"%s\" in: %s", word, d->message);
}

TestSuite(open, .init = enter_folder, .fini = leave_folder);

/* ---- IDX ---- */

static void put_idx(const char *images, const char *labels, const uint8_t size[], int rank,
                    const uint8_t *pixels, size_t n_pixels, const uint8_t *label)
{
    uint8_t x[400] = {0, 0, 8, (uint8_t)rank}, y[40] = {0, 0, 8, 1, 0, 0, 0, size[0]};
    for (int i = 0; i < rank; i++)
        x[7 + 4 * i] = size[i];
    memcpy(x + 4 + 4 * rank, pixels, n_pixels);
    memcpy(y + 8, label, size[0]);
    put_in(&here, images, x, 4 + 4 * (size_t)rank + n_pixels);
    put_in(&here, labels, y, 8 + (size_t)size[0]);
}

Test(open, idx_of_rank_4_and_other_names)
{
    static const uint8_t last[] = {2, 1, 2, 3}, second[] = {2, 3, 1, 2}, none[] = {2, 2, 2, 2};
    static const uint8_t hwc[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                         chw[] = {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}, label[] = {4, 0};
    const file_name other = in_folder(&here, "other");
    for (int planar = 0; planar < 2; planar++) {
        put_idx("emnist-x-train-images-idx4-ubyte", "emnist-x-train-labels-idx1-ubyte",
                planar ? second : last, 4, planar ? chw : hwc, 12, label);
        scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
        cr_expect(d->n == 2 && d->size.h == 1 && d->size.w == 2 && d->size.c == 3 &&
                  d->classes == 5);
        cr_expect_arr_eq(d->images, hwc, sizeof hwc);
    }
    cr_expect_eq(adj_dataset_layout(here.path), ADJ_DATA_IDX);
    cr_expect_not(adj_dataset_has_part(here.path, ADJ_TEST));
    expect_refused(here.path, ADJ_TEST, NULL, "has no test split");
    put_idx("train-images.idx3-ubyte", "train-labels.idx1-ubyte", last, 3, hwc, 4, label);
    expect_refused(here.path, ADJ_TRAIN, NULL, "several data sets");

    put_idx("other/t10k-images.idx3-ubyte", "other/t10k-labels.idx1-ubyte", last, 3, hwc, 4, label);
    scoped(release_dataset) adj_dataset *d = open_part(other.s, ADJ_TEST, NULL);
    cr_expect(d->n == 2 && d->size.h == 1 && d->size.w == 2 && d->size.c == 1);
    put_idx("other/train-images.idx4-ubyte", "other/train-labels.idx1-ubyte", none, 4, five_by_four,
            16, label);
    expect_refused(other.s, ADJ_TRAIN, NULL, "no axis of [2, 2, 2, 2] can be the channels");
}

static void expect_floats(const adj_dataset *d, int64_t i, const float *expected, int64_t n)
{
    float got[200];
    cr_assert_eq(adj_dataset_read(d, i, got, NULL), ADJ_OK);
    for (int64_t k = 0; k < n; k++)
        cr_expect_float_eq(got[k], expected[k], 2e-4, "%lld: %g, expected %g", (long long)k, got[k],
                           expected[k]);
}

Test(open, other_sizes)
{
    static const uint8_t size[] = {2, 5, 4}, label[] = {0, 1};
    static const struct {
        int64_t h, w;
        const float *expected;
    } cases[] = {{3, 3, area_3x3}, {2, 1, area_2x1}, {7, 6, bilinear_7x6}, {3, 9, mixed_3x9}};
    uint8_t twice[40];
    memcpy(twice, five_by_four, 20);
    memcpy(twice + 20, five_by_four, 20);
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", size, 3, twice, 40, label);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(release_dataset) adj_dataset *d =
            open_part(here.path, ADJ_TRAIN,
                      &(adj_dataset_opts){.image.size.h = cases[i].h, .image.size.w = cases[i].w});
        cr_expect(d->size.h == cases[i].h && d->size.w == cases[i].w && d->origin->resized == 2);
        expect_floats(d, 1, cases[i].expected, d->size.h * d->size.w);
    }
    /* adj_batch resizes images to the same values */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
        const adj_shape shape = {4, {2, cases[i].h, cases[i].w, 1}};
        float x[2 * 42];
        int32_t y[2];
        cr_assert_eq(adj_batch(d, NULL, 0, shape, x, y, NULL), 2);
        for (int64_t k = 0; k < adj_shape_elems(shape); k++)
            cr_expect_float_eq(x[k] * d->deviation[0] + d->mean[0],
                               cases[i].expected[k % (cases[i].h * cases[i].w)], 2e-4, "%lld",
                               (long long)k);
    }
    expect_refused(here.path, ADJ_TRAIN,
                   &(adj_dataset_opts){.image.size.h = 3, .image.resize = ADJ_RESIZE_ERROR},
                   "(got 5x4, expected 3x4)");
    expect_refused(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.h = -1},
                   "size is out of range (got -1x0");
    expect_refused(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.c = 2}, "channels (got 2");
    expect_refused(here.path, ADJ_TRAIN, &(adj_dataset_opts){.classes = 1},
                   "number of classes is out of range (got 1");
    expect_refused(here.path, ADJ_TRAIN, &(adj_dataset_opts){.val_split = 1}, "split");
}

/* 16,385 columns become 3, which are wider than what is summed at a time; literal by hand: the mean
 * of an area whose only other pixel is 255. */
Test(open, much_smaller)
{
    enum { WIDE = 16385 };
    static uint8_t x[16 + 2 * WIDE];
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0x40, 1};
    static const uint8_t y[] = {0, 0, 8, 1, 0, 0, 0, 2, 0, 1};
    memcpy(x, head, sizeof head);
    x[16] = 255;                  /* the first */
    x[16 + WIDE / 2] = 255;       /* the middle one */
    x[16 + WIDE + WIDE - 1] = 51; /* the last of the second image */
    put_in(&here, "train-images-idx3-ubyte", x, sizeof x);
    put_in(&here, "train-labels-idx1-ubyte", y, sizeof y);
    scoped(release_dataset) adj_dataset *d =
        open_part(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.h = 2, .image.size.w = 3});
    const float one = 255 * 3.0f / WIDE, first[] = {one, one, 0, one, one, 0};
    const float second[] = {0, 0, one / 5, 0, 0, one / 5};
    float got[6];
    cr_assert_eq(adj_dataset_read(d, 0, got, NULL), ADJ_OK);
    for (int i = 0; i < 6; i++)
        cr_expect_float_eq(got[i], first[i], 1e-6, "%d: %g", i, got[i]);
    cr_assert_eq(adj_dataset_read(d, 1, got, NULL), ADJ_OK);
    for (int i = 0; i < 6; i++)
        cr_expect_float_eq(got[i], second[i], 1e-6, "%d: %g", i, got[i]);
}

/* Bytes of only 0 and 1 are black and white; the mean is by hand. With one byte of 2 all are
 * pixels. */
Test(open, idx_of_only_0_and_1)
{
    static const uint8_t size[] = {2, 2, 2}, label[] = {0, 1};
    static const uint8_t dark[] = {0, 1, 0, 0, 1, 0, 0, 2}, bits[] = {0, 1, 0, 0, 1, 0, 0, 0};
    static const uint8_t white[] = {0, 255, 0, 0, 255, 0, 0, 0};
    for (int is_bits = 0; is_bits < 2; is_bits++) {
        put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", size, 3,
                is_bits ? bits : dark, 8, label);
        scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
        cr_expect_arr_eq(d->images, is_bits ? white : dark, 8);
        cr_expect_float_eq(d->mean[0], is_bits ? 510.0 / 8 : 4.0 / 8, 1e-5, "%g", d->mean[0]);
        cr_expect_eq(d->origin->high, is_bits);
        cr_expect(is_bits == (strstr(d->origin->values_of, "/train-images-idx3-ubyte") != NULL));
    }
}

/* ---- splits ---- */

Test(open, split_and_limit_by_class)
{
    enum { N = 200 };
    static uint8_t x[16 + N], y[8 + N];
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(x, head, sizeof head);
    memcpy(y, (uint8_t[]){0, 0, 8, 1, 0, 0, 0, N}, 8);
    for (int i = 0; i < N; i++) { /* the pixel tells the image; 150 of class 0, 48 of 1, 2 of 2 */
        x[16 + i] = (uint8_t)i;
        y[8 + i] = i < 150 ? 0 : i < 198 ? 1 : 2;
    }
    put_in(&here, "train-images-idx3-ubyte", x, sizeof x);
    put_in(&here, "train-labels-idx1-ubyte", y, sizeof y);

    adj_dataset_opts o = {.val_split = 0.25, .seed = 3};
    adj_dataset *train = open_part(here.path, ADJ_TRAIN, &o);
    o.like = train;
    adj_dataset *validation = open_part(here.path, ADJ_VALIDATION, &o);
    int seen[N] = {0}, count[2][3] = {{0}};
    for (int64_t i = 0; i < train->n; i++)
        seen[train->images[i]]++, count[0][train->labels[i]]++;
    for (int64_t i = 0; i < validation->n; i++)
        seen[validation->images[i]]++, count[1][validation->labels[i]]++;
    for (int i = 0; i < N; i++)
        cr_expect_eq(seen[i], 1);
    cr_expect(count[1][0] == 38 && count[1][1] == 12 && count[1][2] == 1);
    cr_expect(count[0][0] == 112 && count[0][1] == 36 && count[0][2] == 1);
    cr_expect_eq(validation->mean[0], train->mean[0]);
    adj_dataset_free(validation);

    o = (adj_dataset_opts){.val_split = 0.25, .seed = 4};
    adj_dataset *other = open_part(here.path, ADJ_TRAIN, &o);
    cr_expect_neq(memcmp(other->images, train->images, (size_t)train->n), 0);
    adj_dataset_free(other);
    adj_dataset_free(train);

    o = (adj_dataset_opts){.limit = 40};
    train = open_part(here.path, ADJ_TRAIN, &o);
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < train->n; i++)
        count[0][train->labels[i]]++;
    cr_expect(train->n == 40 && count[0][0] == 30, "%d", count[0][0]);
    cr_expect(count[0][1] == 9 && count[0][2] == 1);
    cr_expect(train->images[0] != 0 || train->images[29] != 29, "the first ones");
    adj_dataset_free(train);
    expect_refused(here.path, ADJ_VALIDATION, NULL, "has no validation split");
}

Test(open, the_digits)
{
    scoped(release_dataset) adj_dataset *d = open_part(NULL, ADJ_TEST, NULL), *same = NULL;
    cr_assert_eq(adj_dataset_digits(ADJ_TEST, 0, 1, &same), ADJ_OK);
    cr_expect(d->n == 2000 && memcmp(d->images, same->images, 2000 * 784) == 0);
    cr_expect(d->mean[0] == same->mean[0] && d->deviation[0] == same->deviation[0]);
    cr_expect_eq(adj_dataset_layout("digits"), ADJ_DATA_DIGITS);
}

/* QMNIST: int32 [n, 8], big-endian, whose column 0 is the class and column 2 the writer, as its
 * authors describe the files. */
Test(open, qmnist)
{
    static const uint8_t x[] = {0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6};
    uint8_t y[12 + 3 * 32] = {0, 0, 12, 2, 0, 0, 0, 3, 0, 0, 0, 8};
    static const uint8_t class[] = {7, 0, 9};
    for (int i = 0; i < 3; i++) {
        y[12 + 32 * i + 3] = class[i];
        y[12 + 32 * i + 4 + 3] = 4; /* NIST's series, and the writer */
        y[12 + 32 * i + 8 + 2] = 1;
        y[12 + 32 * i + 8 + 3] = (uint8_t)(100 + i);
    }
    put_in(&here, "qmnist-train-images-idx3-ubyte", x, sizeof x);
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y);
    put_in(&here, "qmnist-test-images-idx3-ubyte", x, sizeof x);
    put_in(&here, "qmnist-test-labels-idx2-int", y, sizeof y);
    adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 3 && d->size.h == 1 && d->size.w == 2 && d->classes == 10 &&
              d->images[5] == 6);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(d->labels[i], class[i]);
    adj_dataset *test = open_part(here.path, ADJ_TEST, &(adj_dataset_opts){.like = d});
    cr_expect(test->n == 3 && test->labels[2] == 9);
    adj_dataset_free(test);
    adj_dataset_free(d);
    y[12 + 32] = 0xff; /* negative, in the second row */
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y);
    expect_refused(here.path, ADJ_TRAIN, NULL,
                   "labels-idx2-int: offset 44: the label of image 1 is out of range (got "
                   "-16777216, expected 0 to ");
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y - 1);
    expect_refused(here.path, ADJ_TRAIN, NULL, "the file ends within its labels");
    y[3] = 1; /* int32 of rank 1 */
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y);
    expect_refused(here.path, ADJ_TRAIN, NULL, "(got 00000c01, expected 00000801 or 00000c02)");
}

/* ---- CIFAR ---- */

static void put_cifar(const char *name, int label_bytes, int n)
{
    static uint8_t record[2 + 3072];
    FILE *file = fopen(in_folder(&here, name).s, "wb");
    for (int i = 0; i < n; i++) {
        record[0] = (uint8_t)(label_bytes == 2 ? 200 : i); /* the coarse one is not looked at */
        record[label_bytes - 1] = (uint8_t)(label_bytes == 2 ? 98 + i : i);
        for (int k = 0; k < 3072; k++)
            record[label_bytes + k] = (uint8_t)(k / 1024 * 80 + k % 32 + i);
        fwrite(record, 1, (size_t)label_bytes + 3072, file);
    }
    fclose(file);
}

Test(open, cifar)
{
    static const char names[] =
        "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";
    put_cifar("data_batch_1.bin", 1, 3);
    put_cifar("data_batch_3.bin", 1, 2);
    put_cifar("test_batch.bin", 1, 1);
    put_in(&here, "batches.meta.txt", names, sizeof names - 1);
    adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 5 && d->size.h == 32 && d->size.w == 32 && d->size.c == 3 &&
              d->classes == 10);
    cr_expect(d->labels[2] == 2 && d->labels[3] == 0 && strcmp(d->class_names[9], "truck") == 0);
    const uint8_t *pixel = d->images + 3072 + (5 * 32 + 7) * 3; /* of image 1: row 5, column 7 */
    cr_expect(pixel[0] == 8 && pixel[1] == 88 && pixel[2] == 168);
    adj_dataset_free(d);
    cr_expect(adj_dataset_layout(here.path) == ADJ_DATA_CIFAR &&
              adj_dataset_has_part(here.path, ADJ_TEST));
    put_cifar("data_batch_3.bin", 1, 11);
    expect_refused(here.path, ADJ_TRAIN, NULL,
                   "data_batch_3.bin: offset 30730: label is out of range (got 10");
    put_in(&here, "data_batch_3.bin", names, 20);
    expect_refused(here.path, ADJ_TRAIN, NULL, "data_batch_3.bin: the file ends within an image");
}

Test(open, cifar_100)
{
    put_cifar("train.bin", 2, 2);
    scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->classes == 100 && d->labels[0] == 98 && d->labels[1] == 99 &&
              d->class_names == NULL);
}

/* Python's version: pickle.dumps({b"labels": [0]}, 2) and pickle.dumps({"fine": [0]}, 4), by
 * CPython 3.11. */
Test(open, cifar_pickles)
{
    static const uint8_t two[] =
        "\x80\x02}q\0c_codecs\nencode\nq\x01X\x06\0\0\0labelsq\x02X\x06\0\0"
        "\0latin1q\x03\x86q\x04Rq\x05]q\x06K\0as.",
                         four[] = "\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94\x8c\x04"
                                  "fine\x94]\x94K\0as.";
    const file_name py = in_folder(&here, "cifar-10-batches-py"),
                    meta = in_folder(&here, "cifar-10-batches-py/batches.meta"),
                    other = in_folder(&here, "other");
    put_in(&here, "cifar-10-batches-py/data_batch_1", two, sizeof two - 1);
    put_in(&here, "cifar-10-batches-py/batches.meta", two, sizeof two - 1);
    expect_refused(here.path, ADJ_TRAIN, NULL,
                   "/cifar-10-batches-py/data_batch_1: is a Python pickle (expected CIFAR's "
                   "binary version, cifar-10-binary.tar.gz or ");
    expect_refused(py.s, ADJ_TEST, NULL, "data_batch_1: is a Python pickle");
    expect_refused(meta.s, ADJ_TRAIN, NULL, "is a Python pickle");
    /* beside the binary files nothing is wrong */
    put_cifar("cifar-10-batches-py/test_batch.bin", 1, 1);
    adj_dataset_free(open_part(py.s, ADJ_TEST, NULL));
    put_in(&here, "other/train", four, sizeof four - 1);
    expect_refused(other.s, ADJ_TRAIN, NULL, "/train: is a Python pickle");
    put_in(&here, "other/train", "no pickle", 9);
    expect_refused(other.s, ADJ_TRAIN, NULL, "no data set found");
}

/* ---- NumPy ---- */

Test(open, numpy)
{
    const sample whole = sample_of("keras.npz");
    put_sample(&here, "mnist.npz", "keras.npz");
    file_name path = in_folder(&here, "mnist.npz");
    adj_dataset *d = open_part(path.s, ADJ_TRAIN, NULL);
    cr_expect(d->n == 2 && d->size.h == 2 && d->size.w == 3 && d->size.c == 1 && d->classes == 2);
    for (int i = 0; i < 12; i++)
        cr_expect_eq(d->images[i], 7 * i);
    cr_expect(d->labels[0] == 1 && d->labels[1] == 0);
    adj_dataset *test =
        open_part(here.path, ADJ_TEST, &(adj_dataset_opts){.like = d}); /* the folder */
    cr_expect(test->n == 1 && test->images[0] == 43 && test->labels[0] == 1 && test->classes == 2);
    adj_dataset_free(test);
    adj_dataset_free(d);
    expect_refused(path.s, ADJ_VALIDATION, NULL, "has no validation split");
    for (size_t n = 4; n < whole.n; n += 3) { /* cut anywhere */
        put_in(&here, "mnist.npz", whole.bytes, n);
        expect_refused(path.s, ADJ_TRAIN, NULL, "mnist.npz: is not a complete archive");
    }
    sample damaged = whole;
    for (size_t n = 0; n + 7 <= whole.n; n++) /* under names that no reader looks for */
        if (memcmp(whole.bytes + n, "x_train", 7) == 0 ||
            memcmp(whole.bytes + n, "x_test.", 7) == 0)
            damaged.bytes[n] = 'z';
    put_in(&here, "mnist.npz", damaged.bytes, damaged.n);
    expect_refused(path.s, ADJ_TRAIN, NULL, "expected such as x_train and y_train");
    damaged = whole;
    damaged.bytes[100] ^= 0x10; /* in the compressed data of the first array */
    put_in(&here, "mnist.npz", damaged.bytes, damaged.n);
    expect_refused(path.s, ADJ_TRAIN, NULL, "mnist.npz");
}

/* The names of a validation split; of several archives the first is read and the others are named.
 */
Test(open, numpy_validation)
{
    static const char *const names[][2] = {{"x_val", "y_val"},
                                           {"X_val", "y_val"},
                                           {"X_val", "Y_val"},
                                           {"val_images", "val_labels"},
                                           {"x_valid", "y_valid"},
                                           {"valid_images", "valid_labels"},
                                           {"x_validation", "y_validation"},
                                           {"validation_images", "validation_labels"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        scoped(folder_remove) folder f = folder_new();
        char x[40], y[40];
        snprintf(x, sizeof x, "%s.npy", names[i][0]);
        snprintf(y, sizeof y, "%s.npy", names[i][1]);
        put_sample(&f, x, "u1.npy");
        put_sample(&f, y, "i8_labels.npy");
        scoped(release_dataset) adj_dataset *d = open_part(f.path, ADJ_VALIDATION, NULL);
        cr_expect(d->n == 2 && d->labels[1] == 3 && !adj_dataset_has_part(f.path, ADJ_TRAIN));
    }
    put_in(&here, "b.npz", "x", 1);
    put_sample(&here, "a.npz", "keras.npz");
    scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect_str_eq(d->left_out, "1 other .npz file");
}

Test(open, numpy_files)
{
    const sample u1 = sample_of("u1.npy");
    put_sample(&here, "x.npy", "be_f8.npy"); /* 0 .. 1: multiplied by 255 */
    put_sample(&here, "y.npy", "i8_labels.npy");
    float expected[6] = {42, 49, 56, 63, 70, 77};
    adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 2 && d->classes == 4 && d->labels[0] == 1 && d->labels[1] == 3);
    expect_floats(d, 1, expected, 6);
    adj_dataset_free(d);
    put_sample(&here, "x.npy", "u1.npy");
    put_sample(&here, "y.npy", "be_i2_labels.npy"); /* [n, 1] */
    d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->labels[0] == 1 && d->labels[1] == 3);
    adj_dataset_free(d);

    expect_refused(here.path, ADJ_TRAIN, &(adj_dataset_opts){.classes = 3},
                   "label is out of range (got 3");
    sample labels = sample_of("i8_labels.npy");
    memset(labels.bytes + labels.n - 8, 0xff, 8); /* -1 */
    labels.bytes[labels.n - 8] = 0xfb;            /* -5 */
    put_in(&here, "y.npy", labels.bytes, labels.n);
    expect_refused(here.path, ADJ_TRAIN, NULL,
                   "the label of image 1 is out of range (got -5, expected 0 to 99999)");
    put_sample(&here, "y.npy", "be_i2_labels.npy");
    put_sample(&here, "x.npy", "fortran.npy");
    expect_refused(here.path, ADJ_TRAIN, NULL, "x.npy: is in Fortran order");
    put_sample(&here, "x.npy", "be_i2_labels.npy");
    expect_refused(here.path, ADJ_TRAIN, NULL, "images (got rank 2 of i2");
    put_sample(&here, "x.npy", "u1.npy");
    put_sample(&here, "y.npy", "be_f8.npy");
    expect_refused(here.path, ADJ_TRAIN, NULL, "labels (got rank 3 of f8");
    put_sample(&here, "y.npy", "i8_labels.npy");
    for (size_t n = 0; n < u1.n; n++) {
        put_in(&here, "x.npy", u1.bytes, n);
        expect_refused(here.path, ADJ_TRAIN, NULL, "x.npy: ");
    }
    /* the shape claims what is not there, or nonsense */
    static const char *const shapes[][3] = {
        {"(2, 2, 3)", "(9, 9, 9)"},
        {"(2, 2, 3)", "(2, 2, 0)"},
        {"(2, 2, 3)", "(2, 2, x)", "the header is corrupt"},
        {"(2, 2, 3)", "(2, 2,-3)"},
        {"'|u1'", "'|O1'"},
        {"'|u1'", "'|u3'"},
        {"False", "Fals ", "the header is corrupt"},
        {"False", "2    ", "fortran_order is neither True nor False"},
        {"'shape': (2, 2, 3), }", "'s': 1, 'shape': (2, 2)}", "the header has an unknown entry"},
        {"(2, 2, 3), }", "(99999999999999999999,)}", "its shape is too large"},
        {"'descr'", "'desc.'"},
        {"{", "["},
        {"}", " "},
        {"(2, 2, 3)", "(99999999"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        sample other = u1;
        char *at = memmem(other.bytes, other.n, shapes[i][0], strlen(shapes[i][0]));
        cr_assert_not_null(at);
        memcpy(at, shapes[i][1], strlen(shapes[i][1]));
        put_in(&here, "x.npy", other.bytes, other.n);
        expect_refused(here.path, ADJ_TRAIN, NULL, shapes[i][2] != NULL ? shapes[i][2] : "x.npy: ");
    }
}

/* Alpha of an array is laid over the background as that of a file is: to the same bits, and within
 * Pillow's rounding. */
Test(open, alpha_of_arrays)
{
    static const struct {
        uint8_t background[3];
        const uint8_t *expected;
    } cases[] = {{{0}, rgba_over_black}, {{255, 128, 0}, rgba_over_orange}};
    const char header[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2, 3, 4), }";
    static const uint8_t magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    uint8_t bytes[128 + 48];
    const sample file = sample_of("rgba.png");
    memcpy(bytes, magic, sizeof magic);
    memset(bytes + 10, ' ', 118);
    memcpy(bytes + 10, header, sizeof header - 1);
    memcpy(bytes + 128, rgba_pixels, 24);
    memcpy(bytes + 152, rgba_pixels, 24);
    put_in(&here, "x.npy", bytes, sizeof bytes);
    put_sample(&here, "y.npy", "i8_labels.npy");
    for (size_t i = 0; i < 2; i++) {
        adj_dataset_opts o = {.image.size.c = 3};
        adj_image_opts of_file = {.size = {2, 3, 3}};
        float got[18], from_file[18];
        memcpy(o.image.background, cases[i].background, 3);
        memcpy(of_file.background, cases[i].background, 3);
        scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, &o);
        cr_assert_eq(adj_dataset_read(d, 1, got, NULL), ADJ_OK);
        cr_assert_eq(adj_image_decode(file.bytes, file.n, "", &of_file, from_file, NULL, NULL),
                     ADJ_OK);
        cr_expect_arr_eq(got, from_file, sizeof got);
        for (int k = 0; k < 18; k++)
            cr_expect_float_eq(got[k], cases[i].expected[k], 0.501f, "%d: %g", k, got[k]);
    }
}

/* ---- folders of images ---- */

Test(open, folder_of_classes)
{
    put_sample(&here, "Zebra/2.PNG", "rgb.png");
    put_sample(&here, "Zebra/1.jpeg", "rgb.jpg");
    put_in(&here, "Zebra/notes.txt", "x", 1);
    put_sample(&here, "b/x.png", "rgb.png");
    adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 3 && d->size.h == 2 && d->size.w == 3 && d->size.c == 3 && d->classes == 2 &&
              d->origin->resized == 0);
    cr_expect(strcmp(d->class_names[0], "Zebra") == 0 && strcmp(d->class_names[1], "b") == 0);
    cr_expect(d->labels[0] == 0 && d->labels[1] == 0 && d->labels[2] == 1 && d->images == NULL);
    float expected[18];
    for (int i = 0; i < 18; i++)
        expected[i] = turned[0][i];
    expect_floats(d, 0, expected, 18); /* 1.jpeg before 2.PNG */
    for (int i = 0; i < 18; i++)
        expected[i] = rgb_pixels[i];
    expect_floats(d, 1, expected, 18);
    expect_floats(d, 2, expected, 18);
    cr_expect_not(adj_dataset_has_part(here.path, ADJ_TEST));
    adj_dataset_free(d);
    cr_expect_eq(adj_dataset_layout(here.path), ADJ_DATA_FOLDER);

    d = open_part(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size = {1, 3, 1}});
    float luma[3];
    for (int i = 0; i < 3; i++)
        luma[i] = (rgb_luma[i] + rgb_luma[i + 3]) / 2;
    expect_floats(d, 1, luma, 3);
    cr_expect_eq(d->origin->resized, 3);
    adj_dataset_free(d);

    put_sample(&here, "b/y.png", "gray.png");
    d = open_part(here.path, ADJ_TRAIN, NULL); /* three in color, one gray */
    cr_expect(d->size.c == 3 && d->origin->recolored == 1);
    for (int i = 0; i < 18; i++)
        expected[i] = gray_pixels[i / 3];
    expect_floats(d, 3, expected, 18);
    adj_dataset_free(d);
    d = open_part(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.c = 1});
    cr_expect(d->size.c == 1 && d->origin->recolored == 3);
    adj_dataset_free(d);
    put_in(&here, "b/y.png", "not an image", 12);
    expect_refused(here.path, ADJ_TRAIN, NULL, "b/y.png: is neither PNG, JPEG nor WEBP");
    put_in(&here, "b/z.png", "nor this", 8);
    put_start(&here, "Zebra/0.png", "rgb.png", 20);
    expect_refused(
        here.path, ADJ_TRAIN, NULL,
        "/Zebra/0.png: the file ends within its header, and 2 more of 6 files cannot be read: "
        "b/y.png, b/z.png");
    put_in(&here, "b/zy.png", "nor this", 8);
    put_in(&here, "b/zz.png", "nor this", 8);
    expect_refused(here.path, ADJ_TRAIN, NULL,
                   ", and 4 more of 8 files cannot be read: b/y.png, b/z.png, b/zy.png, b/zz.png");
    static const char *const bad[] = {"b/z.png", "b/zy.png", "b/zz.png", "Zebra/0.png"};
    for (int i = 0; i < 4; i++)
        unlink(in_folder(&here, bad[i]).s);
    put_start(&here, "b/y.png", "rgb.png", 66); /* whole as far as the header goes */
    expect_refused(here.path, ADJ_TRAIN, NULL, "b/y.png: ");
    unlink(in_folder(&here, "b/x.png").s);
    unlink(in_folder(&here, "b/y.png").s);
    expect_refused(here.path, ADJ_TRAIN, NULL,
                   "number of classes is out of range (got 1, expected 2 ");
}

/* An archive made on macOS has ._NAME beside each file and __MACOSX beside the classes. */
Test(open, names_in_a_folder)
{
    static const char *const images[] = {"a/1.jpe", "a/2.JFIF", "a/3.Jpg",        "a/4.jpeg",
                                         "a/5.PNG", "b/1.png",  "__MACOSX/1.png", ".git/1.png"},
                             *const others[] = {"a/._5.png",     "a/.hidden.jpg", "a/Thumbs.db",
                                                "a/desktop.ini", "a/6.gif",       "a/png"};
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        put_sample(&here, images[i], "rgb.png");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        put_in(&here, others[i], "not an image", 12);
    scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 6 && d->classes == 2, "%d images, %d classes", (int)d->n, d->classes);
    cr_expect_str_eq(d->class_names[0], "a");
}

/* EXIF data, which say that the image is turned, come after the pixels: here beyond what is read of
 * a file for its header. */
Test(open, folder_of_webp)
{
    enum { JUNK = 100000, EXIF = 34 };
    static uint8_t file[sizeof(sample) + JUNK];
    const sample turned_webp = sample_of("turned.webp");
    const size_t pixels = turned_webp.n - EXIF, all = turned_webp.n + JUNK;

    memcpy(file, turned_webp.bytes, pixels);
    memcpy(file + pixels, (uint8_t[]){'J', 'U', 'N', 'K'}, 4);
    for (size_t i = 0; i < 4; i++) { /* lengths, least significant byte first */
        file[4 + i] = (uint8_t)(all >> 8 * i);
        file[pixels + 4 + i] = (uint8_t)(JUNK >> 8 * i);
    }
    memcpy(file + pixels + 8 + JUNK, turned_webp.bytes + pixels, EXIF);
    put_in(&here, "a/1.webp", file, 8 + all);
    put_sample(&here, "b/1.WEBP", "lossless.webp");
    scoped(release_dataset) adj_dataset *d = open_part(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 2 && d->size.h == 3 && d->size.w == 2 && d->size.c == 3 &&
              d->origin->resized == 1);
    float expected[18];
    for (int i = 0; i < 18; i++)
        expected[i] = turned_pixels[i];
    expect_floats(d, 0, expected, 18);
}

Test(open, folder_of_parts)
{
    put_sample(&here, "train/a/1.png", "rgb.png");
    put_sample(&here, "train/b/1.png", "rgb.png");
    put_sample(&here, "test/b/1.png", "gray.png");
    put_sample(&here, "val/b/1.jpg", "rgb.jpg");
    adj_dataset *d = open_part(here.path, ADJ_TRAIN, &(adj_dataset_opts){.val_split = 0.5});
    cr_expect_eq(d->n, 2, "there is a validation part: nothing is split");
    adj_dataset *t = open_part(here.path, ADJ_TEST, &(adj_dataset_opts){.like = d});
    cr_expect(t->n == 1 && t->size.c == 3 && t->classes == 2 && t->labels[0] == 1,
              "a class has no image");
    cr_expect_eq(t->mean[0], d->mean[0]);
    adj_dataset_free(t);
    t = open_part(here.path, ADJ_VALIDATION, &(adj_dataset_opts){.like = d});
    cr_expect(t->n == 1 && t->labels[0] == 1);
    adj_dataset_free(t);
    adj_dataset_free(d);
    put_sample(&here, "test/c/1.png", "rgb.png");
    expect_refused(here.path, ADJ_TEST, NULL, "/test: unknown class c (expected a, b)");
}

/* Root may read any folder, so it is another user who is refused. */
Test(open, unreadable_folder)
{
    const uid_t nobody = 65534, me = geteuid();
    const file_name train = in_folder(&here, "train"), test = in_folder(&here, "test");
    put_in(&here, "train/b/", NULL, 0);
    put_in(&here, "test/", NULL, 0);
    put_sample(&here, "train/a/1.png", "rgb.png");
    cr_assert(chmod(here.path, 0755) == 0 && chmod(train.s, 0755) == 0 && chmod(test.s, 0) == 0);
    cr_assert(me != 0 || seteuid(nobody) == 0);
    expect_refused(here.path, ADJ_TEST, NULL, "/test: Permission denied");
    cr_assert(me != 0 || seteuid(me) == 0);
    cr_assert(chmod(test.s, 0700) == 0);
}

Test(open, nothing_there)
{
    expect_refused(here.path, ADJ_TRAIN, NULL, "class folders with images (.png, .jpg, .jpeg, ");
    expect_refused("no such folder", ADJ_TRAIN, NULL, "no such folder: No such file or directory");
    put_in(&here, "a.npz", "PK", 2);
    expect_refused(in_folder(&here, "a.npz").s, ADJ_TRAIN, NULL, "no data set found");
    adj_dataset *d = NULL;
    cr_expect_eq(adj_dataset_open(here.path, ADJ_TRAIN, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_dataset_open(here.path, (adj_dataset_part)3, NULL, &d), ADJ_EARG);
    adj_dataset_free(d);
    cr_expect_eq(adj_dataset_layout(here.path), ADJ_DATA_NUMPY);
}
