/* test_broken.c - folders with image files that end too early or hold no image: all are named when
 * the data set is opened, in every part, or left out. */
#include <criterion/criterion.h>
#include <omp.h>
#include <string.h>

#include "adjoint_data.h"
#include "io/data/files.h"
#include "io/data/origin.h"
#include "io/data/webp_files.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

/* Two good images of each class in either part; of the held-out split, one cut file of each format
 * with a whole header, and one that is no image. */
static folder broken_data(void)
{
    folder f = folder_new();
    put_in(&f, "train/a/1.png", rgb_png, sizeof rgb_png);
    put_in(&f, "train/a/2.png", rgb_png, sizeof rgb_png);
    put_in(&f, "train/b/1.jpg", rgb_jpeg, sizeof rgb_jpeg);
    put_in(&f, "train/b/2.jpg", rgb_jpeg, sizeof rgb_jpeg);
    put_in(&f, "val/a/1.png", rgb_png, sizeof rgb_png);
    put_in(&f, "val/a/2.png", rgb_png, sizeof rgb_png - 20);
    put_in(&f, "val/a/3.jpg", rgb_jpeg, sizeof rgb_jpeg - 10);
    put_in(&f, "val/a/4.webp", lossless_webp, sizeof lossless_webp - 10);
    put_in(&f, "val/b/1.jpg", rgb_jpeg, sizeof rgb_jpeg);
    put_in(&f, "val/b/2.jpg", "<html>", 6);
    put_in(&f, "val/b/3.jpg", rgb_jpeg, sizeof rgb_jpeg);
    return f;
}

static adj_dataset *open_part(const folder *f, adj_dataset_part part, const adj_dataset_opts *o,
                              adj_status expected)
{
    adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_open(f->path, part, o, &d), expected, "%s", d->message);
    return d;
}

static void expect_broken(const adj_dataset *d)
{
    static const char *const names[] = {"val/a/2.png: ", "val/a/3.jpg: ", "val/a/4.webp: ",
                                        "val/b/2.jpg: is neither PNG, JPEG nor WEBP"};
    cr_assert_eq(d->origin->n_broken, 4);
    for (int i = 0; i < 4; i++)
        cr_expect_not_null(strstr(d->origin->broken[i], names[i]), "%s, expected %s",
                           d->origin->broken[i], names[i]);
}

Test(broken, of_the_held_out_part)
{
    scoped(folder_remove) folder f = broken_data();
    scoped(release_dataset) adj_dataset *train = open_part(&f, ADJ_TRAIN, NULL, ADJ_OK);
    adj_dataset *d = open_part(&f, ADJ_VALIDATION, &(adj_dataset_opts){.like = train}, ADJ_EIO);
    cr_expect_eq(d->n, 0);
    cr_expect_not_null(strstr(d->message, "val/a/2.png: "), "%s", d->message);
    cr_expect_not_null(strstr(d->message, ", and 3 more of 7 files cannot be read: a/3.jpg, "
                                          "a/4.webp, b/2.jpg"),
                       "%s", d->message);
    expect_broken(d);
    adj_dataset_free(d);

    d = open_part(&f, ADJ_VALIDATION, &(adj_dataset_opts){.like = train, .skip_broken = 1}, ADJ_OK);
    cr_assert_eq(d->n, 3);
    cr_expect(d->labels[0] == 0 && d->labels[1] == 1 && d->labels[2] == 1 &&
              d->origin->resized == 0);
    expect_broken(d);
    for (int i = 0; i < 3; i++) {
        const uint8_t *expected = i == 0 ? rgb_pixels : turned[0];
        float got[18];
        cr_assert_eq(adj_dataset_read(d, i, got, NULL), ADJ_OK);
        for (int k = 0; k < 18; k++)
            cr_expect_eq(got[k], expected[k]);
    }
    adj_dataset_free(d);
}

/* Mean and deviation are those of the images that can be read; of rgb_png by NumPy:
 * np.array(rgb_pixels).reshape(6, 3), mean(0), std(0). */
Test(broken, of_the_training_part)
{
    static const float mean[] = {143.66667f, 137.66667f, 163},
                       deviation[] = {82.457396f, 57.803306f, 45.445939f};
    scoped(folder_remove) folder f = folder_new();
    put_in(&f, "a/1.png", rgb_png, sizeof rgb_png - 20);
    put_in(&f, "a/2.png", rgb_png, sizeof rgb_png);
    put_in(&f, "b/1.png", rgb_png, sizeof rgb_png);
    put_in(&f, "b/2.png", gray_png, 20);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        adj_dataset_free(open_part(&f, ADJ_TRAIN, NULL, ADJ_EIO));
        scoped(release_dataset) adj_dataset *d =
            open_part(&f, ADJ_TRAIN, &(adj_dataset_opts){.skip_broken = 1}, ADJ_OK);
        cr_expect(d->n == 2 && d->origin->n_broken == 2 && d->size.h == 2 && d->size.w == 3 &&
                  d->size.c == 3);
        for (int c = 0; c < 3; c++) {
            cr_expect_float_eq(d->mean[c], mean[c], 1e-3, "%g", d->mean[c]);
            cr_expect_float_eq(d->deviation[c], deviation[c], 1e-3, "%g", d->deviation[c]);
        }
    }
    put_in(&f, "b/1.png", rgb_png, 50);
    adj_dataset *d = open_part(&f, ADJ_TRAIN, &(adj_dataset_opts){.skip_broken = 1}, ADJ_EIO);
    cr_expect_not_null(strstr(d->message, "no image of class b can be read"), "%s", d->message);
    adj_dataset_free(d);
    put_in(&f, "a/2.png", rgb_png, 50);
    d = open_part(&f, ADJ_TRAIN, &(adj_dataset_opts){.skip_broken = 1}, ADJ_EIO);
    cr_expect_not_null(strstr(d->message, ", and 3 more of 4 files cannot be read"), "%s",
                       d->message);
    adj_dataset_free(d);
}

static void count_progress(void *user, int64_t done, int64_t n)
{
    int64_t *last = user;
    cr_expect(done == *last + 1 && n == 12, "%d of %d", (int)done, (int)n);
    *last = done;
}

Test(broken, more_than_fit_a_sentence)
{
    scoped(folder_remove) folder f = folder_new();
    char name[20];
    int64_t last = 0;
    put_in(&f, "a/1.png", rgb_png, sizeof rgb_png);
    put_in(&f, "b/1.png", rgb_png, sizeof rgb_png);
    for (int i = 10; i < 20; i++) {
        snprintf(name, sizeof name, "b/%d.png", i);
        put_in(&f, name, rgb_png, sizeof rgb_png - 20);
    }
    const adj_dataset_opts o = {.progress = count_progress, .user = &last};
    scoped(release_dataset) adj_dataset *d = open_part(&f, ADJ_TRAIN, &o, ADJ_EIO);
    cr_expect_eq(d->origin->n_broken, 10);
    cr_expect_not_null(strstr(d->message, ", and 9 more of 12 files cannot be read: b/11.png, "
                                          "b/12.png, b/13.png, b/14.png, b/15.png and 4 more"),
                       "%s", d->message);
    cr_expect_eq(last, 12);
}
