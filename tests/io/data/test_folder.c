/* test_folder.c - the files of a folder that make a part and its classes, and the sentence about
 * the others; image files that end too early or hold no image: all are named when the data set is
 * opened, in every part, or left out. The expected sentences and numbers are counted by hand. */
#include <criterion/criterion.h>
#include <omp.h>
#include <string.h>

#include "adjoint_data.h"
#include "io/data/files.h"
#include "io/data/origin.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

/* Files of the folder, with the folders that they are in: images by their endings, else text. */
static folder tree(const char *const files[])
{
    static const char *const endings[] = {".png", ".PNG", ".jpe", ".jpeg", ".Jpg", ".JFIF"};
    folder f = folder_new();
    for (int i = 0; files[i] != NULL; i++) {
        const char *end = strrchr(files[i], '.');
        int is_image = 0;
        for (size_t k = 0; end != NULL && k < sizeof endings / sizeof *endings; k++)
            is_image |= strcmp(end, endings[k]) == 0;
        if (is_image)
            put_sample(&f, files[i], "rgb.png");
        else
            put_in(&f, files[i], "x", 1);
    }
    return f;
}

static adj_dataset *open_part(const folder *f, adj_dataset_part part, const adj_dataset *like)
{
    return dataset_of(f->path, part, &(adj_dataset_opts){.like = like});
}

static void expect_refused(const folder *f, adj_dataset_part part, const adj_dataset *like,
                           const char *words)
{
    expect_no_data(f->path, part, &(adj_dataset_opts){.like = like}, words);
}

/* names: of all classes, with commas. */
static void expect_classes(const adj_dataset *d, int64_t n, const char *names)
{
    char got[200] = "";
    for (int i = 0; i < d->classes; i++) {
        strcat(got, i > 0 ? "," : "");
        strcat(got, d->class_names[i]);
    }
    cr_expect_eq(d->n, n, "%d images", (int)d->n);
    cr_expect_str_eq(got, names);
}

#define TREE(...) tree((const char *[]){__VA_ARGS__, NULL})

/* A split of a folder, which is then removed: images, classes, and what is left out. */
static void expect_split(folder f, adj_dataset_part part, int64_t n, const char *classes,
                         const char *left_out)
{
    scoped(release_dataset) adj_dataset *d = open_part(&f, part, NULL);
    expect_classes(d, n, classes);
    cr_expect_str_eq(d->left_out, left_out);
    folder_remove(&f);
}

/* An archive made on macOS has ._NAME beside each file and __MACOSX beside the classes. */
Test(folder, left_out_of_classes)
{
    expect_split(TREE("cat/1.png", "cat/2.png", "cat/3.jpe", "cat/4.JFIF", "cat/5.Jpg",
                      "cat/6.jpeg", "cat/7.PNG", "cat/._7.png", "cat/a.bmp", "cat/b.BMP",
                      "cat/c.bmp", "cat/d.txt", "cat/README", "cat/png", "cat/.hidden.jpg",
                      "cat/more/1.png", "dog/1.png", "dog/e.bmp", "dog/Thumbs.db",
                      "dog/desktop.ini", "misc/f.gif", "empty/", "notes.txt", ".git/1.png",
                      "__MACOSX/1.png"),
                 ADJ_TRAIN, 8, "cat,dog",
                 "8 files with other endings (.bmp 4, none 2, .gif 1, .txt 1), 6 hidden or system "
                 "names, 1 file outside class folders, 1 folder inside class folders, 2 folders "
                 "without images (empty, misc)");
    expect_split(TREE("a/1.png", "b/1.png"), ADJ_TRAIN, 2, "a,b", "");
    expect_split(TREE("a/1.png", "b/1.png", "c/1.q", "c/2.r", "c/3.s", "c/4.t", "c/5.u", "c/6.u"),
                 ADJ_TRAIN, 2, "a,b",
                 "6 files with other endings (.u 2, .q 1, .r 1, .s 1, others 1), folder c without "
                 "images");
}

/* Names are listed as far as 100 bytes have room. */
Test(folder, many_left_out)
{
    scoped(folder_remove) folder f = TREE("a/1.png", "b/1.png");
    for (int i = 0; i < 30; i++) {
        char name[40];
        snprintf(name, sizeof name, "empty-%02d", i);
        (void)mkdir(in_folder(&f, name).s, 0700);
    }
    scoped(release_dataset) adj_dataset *d = open_part(&f, ADJ_TRAIN, NULL);
    cr_expect_str_eq(d->left_out,
                     "30 folders without images (empty-00, empty-01, empty-02, empty-03, empty-04, "
                     "empty-05, empty-06, empty-07, empty-08, ...)");
}

/* The training split's sentence has what lies beside the folders of the parts. */
Test(folder, left_out_of_parts)
{
    scoped(folder_remove) folder f =
        TREE("train/a/1.png", "train/b/1.png", "val/a/1.png", "val/a/x.bmp", "val/x.csv",
             "valid/a/1.png", "test/1.png", "extra/a/1.png", "labels.csv", "__MACOSX/x");
    scoped(release_dataset) adj_dataset *d = open_part(&f, ADJ_TRAIN, NULL);
    cr_expect_str_eq(d->left_out,
                     "1 hidden or system name, 1 file outside class folders, folder test without "
                     "class folders, 2 folders beside the folders of the parts (extra, valid)");
    cr_expect_not(adj_dataset_has_part(f.path, ADJ_TEST));
    scoped(release_dataset) adj_dataset *val = open_part(&f, ADJ_VALIDATION, d);
    cr_expect_str_eq(val->left_out,
                     "1 file with other endings (.bmp 1), 1 file outside class folders");
}

Test(folder, names_of_parts)
{
    static const char *const names[][2] = {
        {"TRAIN", "Valid"}, {"Training", "VAL"}, {"train", "Validation"}};
    for (int i = 0; i < 3; i++) {
        char a[40], b[40], c[40];
        snprintf(a, sizeof a, "%s/a/1.png", names[i][0]);
        snprintf(b, sizeof b, "%s/b/1.png", names[i][0]);
        snprintf(c, sizeof c, "%s/b/1.png", names[i][1]);
        scoped(folder_remove) folder f = TREE(a, b, c, "Testing/a/1.png", "Testing/a/2.png");
        scoped(release_dataset) adj_dataset *train = open_part(&f, ADJ_TRAIN, NULL);
        expect_classes(train, 2, "a,b");
        cr_expect_str_empty(train->left_out);
        scoped(release_dataset) adj_dataset *val = open_part(&f, ADJ_VALIDATION, train);
        cr_expect(val->n == 1 && val->labels[0] == 1);
        scoped(release_dataset) adj_dataset *test = open_part(&f, ADJ_TEST, train);
        cr_expect(test->n == 2 && test->labels[0] == 0);
    }
}

/* Classes beside val/ are the training split; images in test/ alone have no class. */
Test(folder, classes_beside_parts)
{
    folder f = TREE("a/1.png", "b/1.png", "val/b/1.png", "test/1.png");
    scoped(release_dataset) adj_dataset *d = open_part(&f, ADJ_VALIDATION, NULL);
    expect_classes(d, 1, "a,b");
    cr_expect_eq(d->labels[0], 1);
    expect_split(f, ADJ_TRAIN, 2, "a,b", "folder test without class folders");

    f = TREE("test/a/1.png", "test/b/1.png", "notes/x.txt");
    cr_expect_not(adj_dataset_has_part(f.path, ADJ_TRAIN));
    expect_split(f, ADJ_TEST, 2, "a,b", "");
}

/* A folder train may be a class of vehicles; a folder test or val without class folders is none. */
Test(folder, class_with_a_name_of_a_part)
{
    expect_split(TREE("bus/1.png", "train/1.png", "train/2.png", "val/1.png"), ADJ_TRAIN, 3,
                 "bus,train", "folder val without class folders");
    scoped(folder_remove) folder f = TREE("train/1.png", "test/1.png");
    expect_refused(&f, ADJ_TRAIN, NULL, "no data set found");
}

/* A class without images in the training split stays if another part has some. */
Test(folder, classes_without_images)
{
    folder f = TREE("train/a/1.png", "train/b/1.png", "train/c/", "train/d/x.txt", "test/c/1.png",
                    "test/d/", "test/e/");
    scoped(release_dataset) adj_dataset *test = open_part(&f, ADJ_TEST, NULL);
    expect_classes(test, 1, "a,b,c");
    cr_expect_eq(test->labels[0], 2);
    put_sample(&f, "test/e/1.png", "rgb.png");
    expect_refused(&f, ADJ_TEST, NULL, "/test: unknown class e (expected a, b, c)");
    unlink(in_folder(&f, "test/e/1.png").s);
    expect_split(f, ADJ_TRAIN, 2, "a,b,c",
                 "1 file with other endings (.txt 1), 2 folders without images (c, d)");

    scoped(folder_remove) folder one = TREE("a/1.png", "b/x.bmp"),
                                 none = TREE("a/1.bmp", "b/x.bmp");
    expect_refused(&one, ADJ_TRAIN, NULL, "number of classes is out of range (got 1, expected 2 ");
    expect_refused(&none, ADJ_TRAIN, NULL,
                   ": no images (left out: 2 files with other endings (.bmp 2), 2 folders without "
                   "images (a, b); expected files .png, ");
}

/* Labels follow the order of like's class names. */
Test(folder, classes_by_name)
{
    static const char *const names[] = {"owl", "cat", "dog"};
    const adj_dataset like = {.size = {2, 3, 3}, .classes = 3, .class_names = names};
    scoped(folder_remove) folder f = TREE("dog/1.png", "owl/1.png", "owl/2.png", "none/");
    scoped(release_dataset) adj_dataset *d = open_part(&f, ADJ_TRAIN, &like);
    expect_classes(d, 3, "owl,cat,dog");
    cr_expect(d->labels[0] == 2 && d->labels[1] == 0 && d->labels[2] == 0);
    put_sample(&f, "none/1.png", "rgb.png");
    expect_refused(&f, ADJ_TRAIN, &like, "unknown class none (expected owl, cat, dog)");
}

/* Without names a folder's number is the label; other names need a folder for each class. */
Test(folder, classes_by_number)
{
    const adj_dataset like = {.size = {2, 3, 3}, .classes = 12},
                      three = {.size = {2, 3, 3}, .classes = 3};
    scoped(folder_remove) folder numbers = TREE("2/1.png", "10/1.png"),
                                 names = TREE("a/1.png", "b/1.png", "12/1.png");
    scoped(release_dataset) adj_dataset *d = open_part(&numbers, ADJ_TRAIN, &like);
    cr_expect(d->n == 2 && d->classes == 12 && d->class_names == NULL);
    cr_expect(d->labels[0] == 10 && d->labels[1] == 2, "%d %d", d->labels[0], d->labels[1]);

    expect_refused(&names, ADJ_TRAIN, &like,
                   "number of class folders does not fit (got 3, expected one for each of 12 ");
    scoped(release_dataset) adj_dataset *named = open_part(&names, ADJ_TRAIN, &three);
    cr_expect(named->n == 3 && named->labels[0] == 0 && named->labels[2] == 2);
}

/* Two good images of each class in either part; of the held-out split, one cut file of each format
 * with a whole header, and one that is no image. */
static folder broken_data(void)
{
    folder f = folder_new();
    put_sample(&f, "train/a/1.png", "rgb.png");
    put_sample(&f, "train/a/2.png", "rgb.png");
    put_sample(&f, "train/b/1.jpg", "rgb.jpg");
    put_sample(&f, "train/b/2.jpg", "rgb.jpg");
    put_sample(&f, "val/a/1.png", "rgb.png");
    put_start(&f, "val/a/2.png", "rgb.png", 66);
    put_start(&f, "val/a/3.jpg", "rgb.jpg", 320);
    put_start(&f, "val/a/4.webp", "lossless.webp", 74);
    put_sample(&f, "val/b/1.jpg", "rgb.jpg");
    put_in(&f, "val/b/2.jpg", "<html>", 6);
    put_sample(&f, "val/b/3.jpg", "rgb.jpg");
    return f;
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

/* Returns the data set that is refused, which knows the broken files. */
static adj_dataset *open_broken(const folder *f, adj_dataset_part part, const adj_dataset_opts *o)
{
    adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_open(f->path, part, o, &d), ADJ_EIO, "%s", d->message);
    cr_expect_eq(d->n, 0);
    return d;
}

Test(broken, of_the_held_out_part)
{
    scoped(folder_remove) folder f = broken_data();
    scoped(release_dataset) adj_dataset *train = open_part(&f, ADJ_TRAIN, NULL);
    adj_dataset_opts o = {.like = train};
    scoped(release_dataset) adj_dataset *refused = open_broken(&f, ADJ_VALIDATION, &o);
    expect_text(refused->message, "val/a/2.png: ");
    expect_text(refused->message, ", and 3 more of 7 files cannot be read: a/3.jpg, "
                                  "a/4.webp, b/2.jpg");
    expect_broken(refused);

    o.skip_broken = 1;
    scoped(release_dataset) adj_dataset *d = dataset_of(f.path, ADJ_VALIDATION, &o);
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
}

/* Mean and deviation are those of the images that can be read; of rgb.png by NumPy:
 * np.array(rgb_pixels).reshape(6, 3), mean(0), std(0). */
Test(broken, of_the_training_part)
{
    static const float mean[] = {143.66667f, 137.66667f, 163},
                       deviation[] = {82.457396f, 57.803306f, 45.445939f};
    const adj_dataset_opts skip = {.skip_broken = 1};
    scoped(folder_remove) folder f = folder_new();
    put_start(&f, "a/1.png", "rgb.png", 66);
    put_sample(&f, "a/2.png", "rgb.png");
    put_sample(&f, "b/1.png", "rgb.png");
    put_start(&f, "b/2.png", "gray.png", 20);
    for (int threads = 1; threads <= 3; threads++) {
        omp_set_num_threads(threads);
        adj_dataset_free(open_broken(&f, ADJ_TRAIN, NULL));
        scoped(release_dataset) adj_dataset *d = dataset_of(f.path, ADJ_TRAIN, &skip);
        expect_sizes(d, 2, 2, 3, 3, 2);
        cr_expect_eq(d->origin->n_broken, 2);
        for (int c = 0; c < 3; c++) {
            cr_expect_float_eq(d->mean[c], mean[c], 1e-3, "%g", d->mean[c]);
            cr_expect_float_eq(d->deviation[c], deviation[c], 1e-3, "%g", d->deviation[c]);
        }
    }
    put_start(&f, "b/1.png", "rgb.png", 50);
    scoped(release_dataset) adj_dataset *no_b = open_broken(&f, ADJ_TRAIN, &skip);
    expect_text(no_b->message, "no image of class b can be read");
    put_start(&f, "a/2.png", "rgb.png", 50);
    scoped(release_dataset) adj_dataset *none = open_broken(&f, ADJ_TRAIN, &skip);
    expect_text(none->message, ", and 3 more of 4 files cannot be read");
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
    put_sample(&f, "a/1.png", "rgb.png");
    put_sample(&f, "b/1.png", "rgb.png");
    for (int i = 10; i < 20; i++) {
        snprintf(name, sizeof name, "b/%d.png", i);
        put_start(&f, name, "rgb.png", 66);
    }
    const adj_dataset_opts o = {.progress = count_progress, .user = &last};
    scoped(release_dataset) adj_dataset *d = open_broken(&f, ADJ_TRAIN, &o);
    cr_expect_eq(d->origin->n_broken, 10);
    expect_text(d->message, ", and 9 more of 12 files cannot be read: b/11.png, "
                            "b/12.png, b/13.png, b/14.png, b/15.png and 4 more");
    cr_expect_eq(last, 12);
}
