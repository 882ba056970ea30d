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

TestSuite(open, .init = enter_folder, .fini = leave_folder);

/* ---- IDX ---- */

/* Writes images of bytes in those sizes, the first of which is their number, and their labels. */
static void put_idx(const char *images, const char *labels, int rank, const int size[],
                    const uint8_t *pixels, const uint8_t *label)
{
    const size_t n = (size_t)size[0], head = 4 + 4 * (size_t)rank;
    size_t bytes = 1;
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)size[i];
    scoped(release) uint8_t *x = calloc(head + bytes, 1), *y = calloc(8 + n, 1);
    memcpy(x, (uint8_t[]){0, 0, 8, (uint8_t)rank}, 4);
    memcpy(y, (uint8_t[]){0, 0, 8, 1, 0, 0, 0, (uint8_t)n}, 8);
    for (int i = 0; i < rank; i++) {
        x[6 + 4 * i] = (uint8_t)(size[i] >> 8);
        x[7 + 4 * i] = (uint8_t)size[i];
    }
    memcpy(x + head, pixels, bytes);
    memcpy(y + 8, label, n);
    put_in(&here, images, x, head + bytes);
    put_in(&here, labels, y, 8 + n);
}

/* Writes gray images to be trained on. */
static void put_gray(int n, int h, int w, const uint8_t *pixels, const uint8_t *label)
{
    put_idx("train-images-idx3-ubyte", "train-labels-idx1-ubyte", 3, (int[]){n, h, w}, pixels,
            label);
}

Test(open, idx_of_rank_4_and_other_names)
{
    static const int last[] = {2, 1, 2, 3}, second[] = {2, 3, 1, 2}, none[] = {2, 2, 2, 2};
    static const uint8_t hwc[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
                         chw[] = {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}, label[] = {4, 0};
    const file_name other = in_folder(&here, "other");
    for (int planar = 0; planar < 2; planar++) {
        put_idx("emnist-x-train-images-idx4-ubyte", "emnist-x-train-labels-idx1-ubyte", 4,
                planar ? second : last, planar ? chw : hwc, label);
        scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
        expect_sizes(d, 2, 1, 2, 3, 5);
        cr_expect_arr_eq(d->images, hwc, sizeof hwc);
    }
    cr_expect_eq(adj_dataset_layout(here.path), ADJ_DATA_IDX);
    cr_expect_not(adj_dataset_has_part(here.path, ADJ_TEST));
    expect_no_data(here.path, ADJ_TEST, NULL, "has no test split");
    put_idx("train-images.idx3-ubyte", "train-labels.idx1-ubyte", 3, last, hwc, label);
    expect_no_data(here.path, ADJ_TRAIN, NULL, "several data sets");

    put_idx("other/t10k-images.idx3-ubyte", "other/t10k-labels.idx1-ubyte", 3, last, hwc, label);
    scoped(release_dataset) adj_dataset *d = dataset_of(other.s, ADJ_TEST, NULL);
    expect_sizes(d, 2, 1, 2, 1, 5);
    put_idx("other/train-images.idx4-ubyte", "other/train-labels.idx1-ubyte", 4, none, five_by_four,
            label);
    expect_no_data(other.s, ADJ_TRAIN, NULL, "no axis of [2, 2, 2, 2] can be the channels");
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
    static const uint8_t label[] = {0, 1};
    static const struct {
        int64_t h, w;
        const float *expected;
    } cases[] = {{3, 3, area_3x3}, {2, 1, area_2x1}, {7, 6, bilinear_7x6}, {3, 9, mixed_3x9}};
    uint8_t twice[40];
    memcpy(twice, five_by_four, 20);
    memcpy(twice + 20, five_by_four, 20);
    put_gray(2, 5, 4, twice, label);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(release_dataset) adj_dataset *d =
            dataset_of(here.path, ADJ_TRAIN,
                       &(adj_dataset_opts){.image.size.h = cases[i].h, .image.size.w = cases[i].w});
        cr_expect(d->size.h == cases[i].h && d->size.w == cases[i].w && d->origin->resized == 2);
        expect_floats(d, 1, cases[i].expected, d->size.h * d->size.w);
    }
    /* adj_batch resizes images to the same values */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
        const adj_shape shape = {4, {2, cases[i].h, cases[i].w, 1}};
        float x[2 * 42];
        int32_t y[2];
        cr_assert_eq(adj_batch(d, NULL, 0, shape, x, y, NULL), 2);
        for (int64_t k = 0; k < adj_shape_elems(shape); k++)
            cr_expect_float_eq(x[k] * d->deviation[0] + d->mean[0],
                               cases[i].expected[k % (cases[i].h * cases[i].w)], 2e-4, "%lld",
                               (long long)k);
    }
    expect_no_data(here.path, ADJ_TRAIN,
                   &(adj_dataset_opts){.image.size.h = 3, .image.resize = ADJ_RESIZE_ERROR},
                   "(got 5x4, expected 3x4)");
    expect_no_data(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.h = -1},
                   "size is out of range (got -1x0");
    expect_no_data(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.c = 2}, "channels (got 2");
    expect_no_data(here.path, ADJ_TRAIN, &(adj_dataset_opts){.classes = 1},
                   "number of classes is out of range (got 1");
    expect_no_data(here.path, ADJ_TRAIN, &(adj_dataset_opts){.val_split = 1}, "split");
}

/* 16,385 columns become 3, which are wider than what is summed at a time; literal by hand: the mean
 * of an area whose only other pixel is 255. */
Test(open, much_smaller)
{
    enum { WIDE = 16385 };
    static uint8_t x[2 * WIDE];
    x[0] = 255;              /* the first */
    x[WIDE / 2] = 255;       /* the middle one */
    x[WIDE + WIDE - 1] = 51; /* the last of the second image */
    put_gray(2, 1, WIDE, x, (uint8_t[]){0, 1});
    scoped(release_dataset) adj_dataset *d =
        dataset_of(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.h = 2, .image.size.w = 3});
    const float one = 255 * 3.0f / WIDE, first[] = {one, one, 0, one, one, 0};
    const float second[] = {0, 0, one / 5, 0, 0, one / 5};
    float got[6];
    for (int i = 0; i < 12; i++) {
        cr_assert_eq(adj_dataset_read(d, i / 6, got, NULL), ADJ_OK);
        cr_expect_float_eq(got[i % 6], i < 6 ? first[i] : second[i - 6], 1e-6, "%d: %g", i,
                           got[i % 6]);
    }
}

/* Bytes of only 0 and 1 are black and white; the mean is by hand. With one byte of 2 all are
 * pixels. */
Test(open, idx_of_only_0_and_1)
{
    static const uint8_t dark[] = {0, 1, 0, 0, 1, 0, 0, 2}, bits[] = {0, 1, 0, 0, 1, 0, 0, 0};
    static const uint8_t white[] = {0, 255, 0, 0, 255, 0, 0, 0};
    for (int is_bits = 0; is_bits < 2; is_bits++) {
        put_gray(2, 2, 2, is_bits ? bits : dark, (uint8_t[]){0, 1});
        scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
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
    uint8_t x[N], y[N];
    for (int i = 0; i < N; i++) { /* the pixel tells the image; 150 of class 0, 48 of 1, 2 of 2 */
        x[i] = (uint8_t)i;
        y[i] = i < 150 ? 0 : i < 198 ? 1 : 2;
    }
    put_gray(N, 1, 1, x, y);

    adj_dataset_opts o = {.val_split = 0.25, .seed = 3};
    scoped(release_dataset) adj_dataset *train = dataset_of(here.path, ADJ_TRAIN, &o);
    o.like = train;
    scoped(release_dataset) adj_dataset *validation = dataset_of(here.path, ADJ_VALIDATION, &o);
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

    o = (adj_dataset_opts){.val_split = 0.25, .seed = 4};
    scoped(release_dataset) adj_dataset *other = dataset_of(here.path, ADJ_TRAIN, &o);
    cr_expect_neq(memcmp(other->images, train->images, (size_t)train->n), 0);

    o = (adj_dataset_opts){.limit = 40};
    scoped(release_dataset) adj_dataset *few = dataset_of(here.path, ADJ_TRAIN, &o);
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < few->n; i++)
        count[0][few->labels[i]]++;
    cr_expect(few->n == 40 && count[0][0] == 30, "%d", count[0][0]);
    cr_expect(count[0][1] == 9 && count[0][2] == 1);
    cr_expect(few->images[0] != 0 || few->images[29] != 29, "the first ones");
    expect_no_data(here.path, ADJ_VALIDATION, NULL, "has no validation split");
    put_gray(2, 1, 1, x, (const uint8_t[]){0, 1});
    expect_no_data(here.path, ADJ_VALIDATION, &(adj_dataset_opts){.val_split = 0.25},
                   "val_split leaves no images for validation (got 0.25");
    expect_no_data(here.path, ADJ_TRAIN, &(adj_dataset_opts){.val_split = 0.75},
                   "val_split leaves no images for training");
}

Test(open, the_digits)
{
    scoped(release_dataset) adj_dataset *d = dataset_of(NULL, ADJ_TEST, NULL), *same = NULL;
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
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    expect_sizes(d, 3, 1, 2, 1, 10);
    cr_expect_eq(d->images[5], 6);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(d->labels[i], class[i]);
    scoped(release_dataset) adj_dataset *test =
        dataset_of(here.path, ADJ_TEST, &(adj_dataset_opts){.like = d});
    cr_expect(test->n == 3 && test->labels[2] == 9);
    y[12 + 32] = 0xff; /* negative, in the second row */
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y);
    expect_no_data(here.path, ADJ_TRAIN, NULL,
                   "labels-idx2-int: offset 44: the label of image 1 is out of range (got "
                   "-16777216, expected 0 to ");
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y - 1);
    expect_no_data(here.path, ADJ_TRAIN, NULL, "the file ends within its labels");
    y[3] = 1; /* int32 of rank 1 */
    put_in(&here, "qmnist-train-labels-idx2-int", y, sizeof y);
    expect_no_data(here.path, ADJ_TRAIN, NULL, "(got 00000c01, expected 00000801 or 00000c02)");
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
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    expect_sizes(d, 5, 32, 32, 3, 10);
    cr_expect(d->labels[2] == 2 && d->labels[3] == 0 && strcmp(d->class_names[9], "truck") == 0);
    const uint8_t *pixel = d->images + 3072 + (5 * 32 + 7) * 3; /* image 1, row 5, column 7 */
    cr_expect(pixel[0] == 8 && pixel[1] == 88 && pixel[2] == 168);
    cr_expect(adj_dataset_layout(here.path) == ADJ_DATA_CIFAR &&
              adj_dataset_has_part(here.path, ADJ_TEST));
    put_cifar("data_batch_3.bin", 1, 11);
    expect_no_data(here.path, ADJ_TRAIN, NULL,
                   "data_batch_3.bin: offset 30730: label is out of range (got 10");
    put_in(&here, "data_batch_3.bin", names, 20);
    expect_no_data(here.path, ADJ_TRAIN, NULL, "data_batch_3.bin: the file ends within an image");
}

Test(open, cifar_100)
{
    put_cifar("train.bin", 2, 2);
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
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
    expect_no_data(here.path, ADJ_TRAIN, NULL,
                   "/cifar-10-batches-py/data_batch_1: is a Python pickle (expected CIFAR's "
                   "binary version, cifar-10-binary.tar.gz or ");
    expect_no_data(py.s, ADJ_TEST, NULL, "data_batch_1: is a Python pickle");
    expect_no_data(meta.s, ADJ_TRAIN, NULL, "is a Python pickle");
    /* no error beside the binary files */
    put_cifar("cifar-10-batches-py/test_batch.bin", 1, 1);
    adj_dataset_free(dataset_of(py.s, ADJ_TEST, NULL));
    put_in(&here, "other/train", four, sizeof four - 1);
    expect_no_data(other.s, ADJ_TRAIN, NULL, "/train: is a Python pickle");
    put_in(&here, "other/train", "no pickle", 9);
    expect_no_data(other.s, ADJ_TRAIN, NULL, "no data set found");
}

/* ---- NumPy ---- */

Test(open, numpy)
{
    const sample whole = sample_of("keras.npz");
    put_sample(&here, "mnist.npz", "keras.npz");
    file_name path = in_folder(&here, "mnist.npz");
    scoped(release_dataset) adj_dataset *d = dataset_of(path.s, ADJ_TRAIN, NULL);
    expect_sizes(d, 2, 2, 3, 1, 2);
    for (int i = 0; i < 12; i++)
        cr_expect_eq(d->images[i], 7 * i);
    cr_expect(d->labels[0] == 1 && d->labels[1] == 0);
    scoped(release_dataset) adj_dataset *test =
        dataset_of(here.path, ADJ_TEST, &(adj_dataset_opts){.like = d}); /* the folder */
    cr_expect(test->n == 1 && test->images[0] == 43 && test->labels[0] == 1 && test->classes == 2);
    expect_no_data(path.s, ADJ_VALIDATION, NULL, "has no validation split");
    for (size_t n = 4; n < whole.n; n += 3) { /* cut anywhere */
        put_in(&here, "mnist.npz", whole.bytes, n);
        expect_no_data(path.s, ADJ_TRAIN, NULL, "mnist.npz: is not a complete archive");
    }
    sample damaged = whole;
    for (size_t n = 0; n + 7 <= whole.n; n++) /* under names that no reader looks for */
        if (memcmp(whole.bytes + n, "x_train", 7) == 0 ||
            memcmp(whole.bytes + n, "x_test.", 7) == 0)
            damaged.bytes[n] = 'z';
    put_in(&here, "mnist.npz", damaged.bytes, damaged.n);
    expect_no_data(path.s, ADJ_TRAIN, NULL, "expected such as x_train and y_train");
    damaged = whole;
    damaged.bytes[100] ^= 0x10; /* in the compressed data of the first array */
    put_in(&here, "mnist.npz", damaged.bytes, damaged.n);
    expect_no_data(path.s, ADJ_TRAIN, NULL, "mnist.npz");
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
        scoped(release_dataset) adj_dataset *d = dataset_of(f.path, ADJ_VALIDATION, NULL);
        cr_expect(d->n == 2 && d->labels[1] == 3 && !adj_dataset_has_part(f.path, ADJ_TRAIN));
    }
    put_in(&here, "b.npz", "x", 1);
    put_sample(&here, "a.npz", "keras.npz");
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    cr_expect_str_eq(d->left_out, "1 other .npz file");
}

Test(open, numpy_files)
{
    const sample u1 = sample_of("u1.npy");
    put_sample(&here, "x.npy", "be_f8.npy"); /* 0 .. 1: multiplied by 255 */
    put_sample(&here, "y.npy", "i8_labels.npy");
    float expected[6] = {42, 49, 56, 63, 70, 77};
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    cr_expect(d->n == 2 && d->classes == 4 && d->labels[0] == 1 && d->labels[1] == 3);
    expect_floats(d, 1, expected, 6);
    put_sample(&here, "x.npy", "u1.npy");
    put_sample(&here, "y.npy", "be_i2_labels.npy"); /* [n, 1] */
    scoped(release_dataset) adj_dataset *column = dataset_of(here.path, ADJ_TRAIN, NULL);
    cr_expect(column->labels[0] == 1 && column->labels[1] == 3);

    expect_no_data(here.path, ADJ_TRAIN, &(adj_dataset_opts){.classes = 3},
                   "label is out of range (got 3");
    sample labels = sample_of("i8_labels.npy");
    memset(labels.bytes + labels.n - 8, 0xff, 8); /* -1 */
    labels.bytes[labels.n - 8] = 0xfb;            /* -5 */
    put_in(&here, "y.npy", labels.bytes, labels.n);
    expect_no_data(here.path, ADJ_TRAIN, NULL,
                   "the label of image 1 is out of range (got -5, expected 0 to 99999)");
    put_sample(&here, "y.npy", "be_i2_labels.npy");
    put_sample(&here, "x.npy", "fortran.npy");
    expect_no_data(here.path, ADJ_TRAIN, NULL, "x.npy: is in Fortran order");
    put_sample(&here, "x.npy", "be_i2_labels.npy");
    expect_no_data(here.path, ADJ_TRAIN, NULL, "images (got rank 2 of i2");
    put_sample(&here, "x.npy", "u1.npy");
    put_sample(&here, "y.npy", "be_f8.npy");
    expect_no_data(here.path, ADJ_TRAIN, NULL, "labels (got rank 3 of f8");
    put_sample(&here, "y.npy", "i8_labels.npy");
    for (size_t n = 0; n < u1.n; n++) {
        put_in(&here, "x.npy", u1.bytes, n);
        expect_no_data(here.path, ADJ_TRAIN, NULL, "x.npy: ");
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
        expect_no_data(here.path, ADJ_TRAIN, NULL, shapes[i][2] != NULL ? shapes[i][2] : "x.npy: ");
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
        scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, &o);
        cr_assert_eq(adj_dataset_read(d, 1, got, NULL), ADJ_OK);
        cr_assert_eq(adj_image_decode(file.bytes, file.n, "", &of_file, from_file, NULL, NULL),
                     ADJ_OK);
        cr_expect_arr_eq(got, from_file, sizeof got);
        for (int k = 0; k < 18; k++)
            cr_expect_float_eq(got[k], cases[i].expected[k], 0.501f, "%d: %g", k, got[k]);
    }
}

/* ---- folders of images ---- */

static void expect_bytes(const adj_dataset *d, int64_t i, const uint8_t expected[18])
{
    float floats[18];
    for (int k = 0; k < 18; k++)
        floats[k] = expected[k];
    expect_floats(d, i, floats, 18);
}

Test(open, folder_of_classes)
{
    put_sample(&here, "Zebra/2.PNG", "rgb.png");
    put_sample(&here, "Zebra/1.jpeg", "rgb.jpg");
    put_in(&here, "Zebra/notes.txt", "x", 1);
    put_sample(&here, "b/x.png", "rgb.png");
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    expect_sizes(d, 3, 2, 3, 3, 2);
    cr_expect(strcmp(d->class_names[0], "Zebra") == 0 && strcmp(d->class_names[1], "b") == 0);
    cr_expect(d->labels[0] == 0 && d->labels[1] == 0 && d->labels[2] == 1 && d->images == NULL);
    cr_expect_eq(d->origin->resized, 0);
    expect_bytes(d, 0, turned[0]); /* 1.jpeg before 2.PNG */
    expect_bytes(d, 1, rgb_pixels);
    expect_bytes(d, 2, rgb_pixels);
    cr_expect_not(adj_dataset_has_part(here.path, ADJ_TEST));
    cr_expect_eq(adj_dataset_layout(here.path), ADJ_DATA_FOLDER);

    scoped(release_dataset) adj_dataset *small =
        dataset_of(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size = {1, 3, 1}});
    float luma[3];
    for (int i = 0; i < 3; i++)
        luma[i] = (rgb_luma[i] + rgb_luma[i + 3]) / 2;
    expect_floats(small, 1, luma, 3);
    cr_expect_eq(small->origin->resized, 3);

    put_sample(&here, "b/y.png", "gray.png");
    uint8_t repeated[18];
    for (int i = 0; i < 18; i++)
        repeated[i] = gray_pixels[i / 3];
    scoped(release_dataset) adj_dataset *mixed =
        dataset_of(here.path, ADJ_TRAIN, NULL); /* three in color, one gray */
    cr_expect(mixed->size.c == 3 && mixed->origin->recolored == 1);
    expect_bytes(mixed, 3, repeated);
    scoped(release_dataset) adj_dataset *gray =
        dataset_of(here.path, ADJ_TRAIN, &(adj_dataset_opts){.image.size.c = 1});
    cr_expect(gray->size.c == 1 && gray->origin->recolored == 3);
    put_start(&here, "b/y.png", "rgb.png", 20);
    expect_no_data(here.path, ADJ_TRAIN, NULL, "b/y.png: the file ends within its header");
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
    scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TRAIN, NULL);
    expect_sizes(d, 2, 3, 2, 3, 2);
    cr_expect_eq(d->origin->resized, 1);
    expect_bytes(d, 0, turned_pixels);
}

Test(open, folder_of_parts)
{
    put_sample(&here, "train/a/1.png", "rgb.png");
    put_sample(&here, "train/b/1.png", "rgb.png");
    put_sample(&here, "test/b/1.png", "gray.png");
    put_sample(&here, "val/b/1.jpg", "rgb.jpg");
    scoped(release_dataset) adj_dataset *d =
        dataset_of(here.path, ADJ_TRAIN, &(adj_dataset_opts){.val_split = 0.5});
    cr_expect_eq(d->n, 2, "there is a validation part: nothing is split");
    for (int part = ADJ_TEST; part <= ADJ_VALIDATION; part++) {
        scoped(release_dataset) adj_dataset *t =
            dataset_of(here.path, (adj_dataset_part)part, &(adj_dataset_opts){.like = d});
        expect_sizes(t, 1, 2, 3, 3, 2); /* a class has no image */
        cr_expect_eq(t->labels[0], 1);
        cr_expect_eq(t->mean[0], d->mean[0]);
    }
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
    expect_no_data(here.path, ADJ_TEST, NULL, "/test: Permission denied");
    cr_assert(me != 0 || seteuid(me) == 0);
    cr_assert(chmod(test.s, 0700) == 0);
}

Test(open, nothing_there)
{
    expect_no_data(here.path, ADJ_TRAIN, NULL, "class folders with images (.png, .jpg, .jpeg, ");
    expect_no_data("no such folder", ADJ_TRAIN, NULL, "no such folder: No such file or directory");
    put_in(&here, "a.npz", "PK", 2);
    expect_no_data(in_folder(&here, "a.npz").s, ADJ_TRAIN, NULL, "no data set found");
    adj_dataset *d = NULL;
    cr_expect_eq(adj_dataset_open(here.path, ADJ_TRAIN, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_dataset_open(here.path, (adj_dataset_part)3, NULL, &d), ADJ_EARG);
    adj_dataset_free(d);
    cr_expect_eq(adj_dataset_layout(here.path), ADJ_DATA_NUMPY);
}
