/* test_data_options.c - train on folders of PNG files: images that --val-split and --limit select,
 * effect of --size on the model, errors of resize=error. The expected numbers are counted by hand.
 */
#include <criterion/criterion.h>

#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

static finished r;

/* Ten images of class a and six of b, 12 x 12, gray. */
static folder ten_and_six(void)
{
    folder f = folder_new();
    put_class(&f, "data/a", "", 10, 12, 12, 1);
    put_class(&f, "data/b", "", 6, 12, 12, 1);
    return f;
}

/* One epoch on the folder's data. */
static json_t *train(const folder *f, const char *const more[])
{
    const file_name data = in_folder(f, "data");
    const char *words[ARGUMENTS] = {"--epochs", "1", "--batch", "8", "--data", data.s};
    for (int i = 0; more[i] != NULL; i++)
        words[6 + i] = more[i];
    return train_with(f, words, &r);
}

static void expect_counts(const folder *f, const char *const more[], int n_train, int n_test)
{
    json_t *log = train(f, more);
    cr_assert_eq(r.status, 0, "%s: %s", more[0], r.err);
    cr_expect_eq(log_number(log, 0, "train_images"), n_train, "%s %s", more[0], r.out);
    cr_expect_eq(log_number(log, 0, "held_out_images"), n_test, "%s %s", more[0], r.out);
    json_decref(log);
}

#define SMALL "--size", "8", "--model", "lenet5"

/* The split takes the rounded fraction of each class, with at least one image on either side. */
Test(data_options, val_split)
{
    scoped(folder_remove) folder f = ten_and_six();
    expect_counts(&f, WORDS(SMALL), 13, 3); /* a fifth: 2 and 1.2 */
    expect_text(r.out, "has no validation or test split; holding out 20 % of each class");
    expect_counts(&f, WORDS("--val-split", "0.5", SMALL), 8, 8);
    cr_expect_null(strstr(r.out, "20 %"), "%s", r.out);
    expect_counts(&f, WORDS("--val-split", "0.25", SMALL), 11, 5); /* 2.5 and 1.5 */
    expect_counts(&f, WORDS("--val-split", "0.9", SMALL), 2, 14);
    expect_counts(&f, WORDS("--val-split", "0.01", SMALL), 14, 2);
}

/* The parts that a folder has go before a split. */
Test(data_options, parts_of_the_folder)
{
    scoped(folder_remove) folder f = folder_new();
    put_class(&f, "data/train/a", "", 7, 8, 8, 1);
    put_class(&f, "data/train/b", "", 5, 8, 8, 1);
    put_class(&f, "data/test/a", "", 2, 8, 8, 1);
    put_class(&f, "data/test/b", "", 2, 8, 8, 1);
    expect_counts(&f, WORDS(SMALL), 12, 4);
    expect_text(r.out, "test accuracy");
    expect_counts(&f, WORDS("--val-split", "0.2", SMALL), 10, 2); /* 1.4 and 1 */
    expect_text(r.out, "validation accuracy");
    put_class(&f, "data/val/a", "", 1, 8, 8, 1);
    put_class(&f, "data/val/b", "", 4, 8, 8, 1);
    expect_counts(&f, WORDS(SMALL), 12, 5);
    expect_text(r.out, "validation accuracy");
    expect_counts(&f, WORDS("--val-split", "0.5", SMALL), 12, 5);
}

/* The limit applies to each split of the data, after holding out. */
Test(data_options, limit)
{
    scoped(folder_remove) folder f = ten_and_six();
    expect_counts(&f, WORDS("--limit", "8", SMALL), 8, 3);
    expect_counts(&f, WORDS("--limit", "8", "--val-split", "0.5", SMALL), 8, 8);
    expect_counts(&f, WORDS("--limit", "4", "--val-split", "0.5", SMALL), 4, 4);
    expect_counts(&f, WORDS("--limit", "1000", SMALL), 13, 3);
}

/* A batch is no larger than the training images after split and limit; --resume compares it so. */
Test(data_options, batch_is_cut)
{
    scoped(folder_remove) folder f = ten_and_six();
    const file_name file = in_folder(&f, "run.ckpt");
    json_t *log =
        train(&f, WORDS("--limit", "8", "--batch", "5000", "--checkpoint", file.s, SMALL));
    cr_assert_eq(r.status, 0, "%s", r.err);
    cr_expect_eq(log_number(log, 0, "batch"), 8);
    json_decref(log);
    expect_text(r.err, "note: --batch is reduced to 8: the data have 8 training images (got 5000)");
    log = train(&f, WORDS("--limit", "8", "--batch", "4,accumulate=9", SMALL));
    json_decref(log);
    expect_text(r.err, "note: --batch accumulate is reduced to 2: the data have 8");
    json_decref(train(&f, WORDS("--limit", "1", "--batch", "2", SMALL)));
    expect_text(r.err, "reduced to 1: the data have 1 training image (got 2)");
    const file_name data = in_folder(&f, "data");
    tool(&r, 0, "train --data %s --checkpoint %s --resume --epochs 2 --threads 1", data.s, file.s);
    cr_expect_null(strstr(r.err, "is reduced to"), "%s", r.err);
}

/* The mean of the training images, which depends on which they are. */
static void mean_of(const folder *f, const char *seed, char mean[100])
{
    const file_name w = in_folder(f, "w.safetensors");
    scoped(release_tensors) adj_tensors *t = NULL;
    json_decref(
        train(f, WORDS("--val-split", "0.5", "--limit", "4", "--seed", seed, "--out", w.s, SMALL)));
    cr_assert_eq(r.status, 0, "%s", r.err);
    cr_assert_eq(adj_tensors_read(w.s, &t), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(t, "seed"), seed);
    snprintf(mean, 100, "%s", adj_tensors_metadata(t, "mean"));
}

/* Which images are drawn does not depend on the seed. */
Test(data_options, the_same_for_every_seed)
{
    scoped(folder_remove) folder f = ten_and_six();
    char first[100], other[100];
    mean_of(&f, "1", first);
    for (int i = 2; i < 5; i++) {
        mean_of(&f, (const char *[]){"2", "3", "4"}[i - 2], other);
        cr_expect_str_eq(other, first);
    }
}

static void expect_parameters(const folder *f, const char *const more[], int parameters)
{
    json_t *log = train(f, more);
    cr_assert_eq(r.status, 0, "%s: %s", more[0], r.err);
    cr_expect_eq(log_number(log, 0, "parameters"), parameters, "%s %s", more[0], r.out);
    json_decref(log);
}

/* lenet: 5x5 filters c to 32 and 32 to 64, a pool of two after each, then 128 and 2 units. */
static int lenet_parameters(int h, int w, int c)
{
    return 25 * c * 32 + 32 + 25 * 32 * 64 + 64 + h / 4 * (w / 4) * 64 * 128 + 128 + 128 * 2 + 2;
}

Test(data_options, size_and_channels)
{
    scoped(folder_remove) folder f = ten_and_six();
    expect_parameters(&f, WORDS("--model", "lenet"), lenet_parameters(28, 28, 1));
    expect_text(r.out, "16 of 16 images are resized to 28x28");
    expect_parameters(&f, WORDS("--size", "12"), lenet_parameters(12, 12, 1));
    cr_expect_null(strstr(r.out, "resized"), "%s", r.out);
    expect_parameters(&f, WORDS("--size", "20x12"), lenet_parameters(20, 12, 1));
    expect_text(r.out, "resized to 20x12");
    expect_parameters(&f, WORDS("--size", "8,channels=3"), lenet_parameters(8, 8, 3));
    expect_parameters(&f, WORDS("--size", "8,channels=4"), lenet_parameters(8, 8, 4));
    json_decref(train(&f, WORDS("--size", "7x3", "--model", "lenet"))); /* the second pool */
    cr_expect(r.status == 1 && strstr(r.err, "net lenet, images of 7x3x1: max_pool: output width "
                                             "is empty") != NULL,
              "%s", r.err);
}

Test(data_options, colors)
{
    scoped(folder_remove) folder f = folder_new();
    put_class(&f, "data/a", "", 5, 8, 8, 3);
    put_class(&f, "data/b", "", 5, 8, 8, 3);
    expect_parameters(&f, WORDS("--size", "8"), lenet_parameters(8, 8, 3));
    expect_parameters(&f, WORDS("--size", "8,channels=1"), lenet_parameters(8, 8, 1));
    put_class(&f, "data/b", "gray", 1, 8, 8, 1);
    expect_parameters(&f, WORDS("--size", "8,channels=3"), lenet_parameters(8, 8, 3));
}

static int lenet5_parameters(int c)
{
    return 25 * c * 6 + 6 + 25 * 6 * 16 + 16 + 400 * 120 + 120 + 120 * 84 + 84 + 84 * 2 + 2;
}

/* A net has the channels of its model or of most images, whichever are more; eval and predict obey
 * the card. */
Test(data_options, gray_among_colors)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors"), data = in_folder(&f, "data");
    put_class(&f, "data/train/a", "", 5, 8, 8, 3);
    put_class(&f, "data/train/a", "gray", 1, 8, 8, 1);
    put_class(&f, "data/train/b", "gray", 4, 8, 8, 1);
    put_class(&f, "data/test/a", "gray", 3, 8, 8, 1);
    put_class(&f, "data/test/b", "", 1, 8, 8, 3);
    expect_parameters(&f, WORDS("--model", "lenet5", "--out", w.s), lenet5_parameters(3));
    expect_text(r.out, "note: 8 of 14 images in all splits are gray and become color");
    const char *const eval[] = {"eval", "--weights", w.s, "--data", data.s, NULL};
    run_tool(eval, &r);
    cr_expect_eq(r.status, 0, "%s", r.err);
    expect_text(r.out, "note: 3 of 4 images are gray");

    /* one more, and they are the majority */
    put_class(&f, "data/train/b", "more", 1, 8, 8, 1);
    expect_parameters(&f, WORDS("--model", "lenet5", "--out", w.s), lenet5_parameters(1));
    expect_text(r.out, "note: 6 of 15 images in all splits are in color and become gray "
                       "(--size channels=3 keeps colors)");
    run_tool(eval, &r);
    cr_expect_eq(r.status, 0, "%s", r.err);
    expect_text(r.out, "note: 1 of 4 images are in color and become gray");
    expect_parameters(&f, WORDS("--model", "lenet5", "--size", "channels=3"), lenet5_parameters(3));
    json_decref(train(&f, WORDS("--model", "resnet8", "--out", w.s)));
    cr_assert_eq(r.status, 0, "%s", r.err);
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(w.s, &t), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(t, "input"), "[32,32,3]");
    expect_text(r.out, "note: 9 of 15 images in all splits are gray and become color (--size ");
}

/* Gray images, in files or in an array, become a color model's channels, with a note. */
Test(data_options, gray_for_a_color_model)
{
    static const char note[] =
        "note: 11 of 11 images in all splits are gray and become color (--size "
        "channels=1 makes all gray)";
    folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors");
    put_class(&f, "data/train/a", "", 5, 8, 8, 1);
    put_class(&f, "data/train/b", "", 5, 8, 8, 1);
    put_class(&f, "data/test/a", "", 1, 8, 8, 1);
    for (int channels = 1; channels <= 3; channels += 2) {
        json_decref(train(
            &f, channels == 3 ? WORDS("--model", "resnet8", "--out", w.s)
                              : WORDS("--model", "resnet8", "--out", w.s, "--size", "channels=1")));
        cr_assert_eq(r.status, 0, "%s", r.err);
        cr_expect_eq(strstr(r.out, note) != NULL, channels == 3, "%s", r.out);
        scoped(release_tensors) adj_tensors *t = NULL;
        cr_assert_eq(adj_tensors_read(w.s, &t), ADJ_OK);
        cr_expect_str_eq(adj_tensors_metadata(t, "input"),
                         channels == 3 ? "[32,32,3]" : "[32,32,1]");
    }
    folder_remove(&f);
    tool(&r, 0, "train --model resnet8 --limit 20 --epochs 1");
    expect_text(r.out, "note: 40 of 40 images in all splits are gray and become color");
}

/* Messages name the folder without images, and the option that makes a split. */
Test(data_options, what_is_missing_is_named)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors"), data = in_folder(&f, "data");
    put_class(&f, "data/cats", "", 5, 8, 8, 1);
    put_class(&f, "data/dogs", "", 0, 8, 8, 1);
    json_decref(train(&f, WORDS(SMALL)));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "number of classes is out of range (got 1, expected 2 to "
                       "100000); left out: folder dogs without images");
    put_class(&f, "data/dogs", "", 5, 8, 8, 1);
    json_decref(train(&f, WORDS(SMALL, "--out", w.s)));
    cr_assert_eq(r.status, 0, "%s", r.err);
    const char *const eval[] = {"eval", "--weights", w.s, "--data", data.s, "--part", "val", NULL};
    run_tool(eval, &r);
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "has no validation split (--val-split, ");
}

/* Overwrites an image with its first 60 bytes, which hold the header. */
static void cut(const folder *f, const char *name)
{
    const file_name path = in_folder(f, name);
    cr_assert_eq(truncate(path.s, 60), 0, "%s", path.s);
}

static void expect_in_err(const char *word) { expect_text(r.err, word); }

/* Cut files of both parts are named before the first step, or left out. */
Test(data_options, broken_files)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors"), data = in_folder(&f, "data");
    put_class(&f, "data/train/a", "", 5, 8, 8, 1);
    put_class(&f, "data/train/b", "", 5, 8, 8, 1);
    put_class(&f, "data/val/a", "", 3, 8, 8, 1);
    put_class(&f, "data/val/b", "", 25, 8, 8, 1);
    cut(&f, "data/val/a/1.png");
    cut(&f, "data/val/a/2.png");
    json_t *log = train(&f, WORDS(SMALL));
    cr_expect_eq(r.status, 1);
    cr_expect_eq(json_array_size(log), 0, "a step was done");
    json_decref(log);
    expect_in_err("/val/a/1.png: ");
    expect_in_err("/val/a/2.png: ");
    expect_in_err("2 image files cannot be read (--skip-broken skips them)");
    cut(&f, "data/train/b/4.png");
    json_decref(train(&f, WORDS(SMALL)));
    cr_expect_eq(r.status, 1);
    expect_in_err("/train/b/4.png: ");
    expect_in_err("/val/a/2.png: ");

    expect_counts(&f, WORDS("--skip-broken", "--out", w.s, SMALL), 9, 26);
    expect_in_err("/train/b/4.png: ");
    expect_in_err("/val/a/2.png: ");
    expect_in_err("note: ");
    expect_in_err("left out 2 unreadable image files");
    put_class(&f, "data/train/b", "", 5, 8, 8, 1); /* whole again */
    tool(&r, 1, "eval --weights %s --data %s", w.s, data.s);
    expect_in_err("/val/a/1.png: ");
    tool(&r, 0, "eval --skip-broken --weights %s --data %s", w.s, data.s);
    expect_text(r.out, " of 26)");
    for (int i = 0; i < 23; i++) {
        char name[40];
        snprintf(name, sizeof name, "data/val/b/%d.png", i);
        cut(&f, name);
    }
    tool(&r, 1, "eval --weights %s --data %s", w.s, data.s);
    expect_in_err("and 5 more\n");
    expect_in_err("25 image files cannot be read");
}

/* One image of another size among all. */
Test(data_options, resize_error)
{
    folder f = ten_and_six();
    json_decref(train(&f, WORDS("--size", "12,resize=error")));
    cr_expect_eq(r.status, 0, "%s", r.err);
    json_decref(train(&f, WORDS("--size", "resize=error")));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "(use --size resize=auto, or set the model's size with --size HxW");
    expect_text(r.err, "12x12");
    expect_text(r.err, "28x28");
    put_class(&f, "data/b", "odd", 1, 12, 13, 1);
    json_decref(train(&f, WORDS("--size", "12,resize=error")));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "/b/odd0.png");
    json_decref(train(&f, WORDS("--size", "12")));
    cr_expect_eq(r.status, 0, "%s", r.err);
    folder_remove(&f);
    /* of data that have one size, the model's own */
    f = small_data();
    json_decref(train_with(&f, WORDS("--model", "lenet5", "--size", "resize=error"), &r));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "image size differs (got 28x28, expected 32x32)");
    json_decref(train_with(
        &f, WORDS("--model", "lenet5", "--size", "resize=error", "--size", "28", "--epochs", "1"),
        &r));
    cr_expect_eq(r.status, 0, "%s", r.err);
    folder_remove(&f);
}

static const struct {
    const char *option, *value, *err;
} refused[] = {
    {"--size", "0", "--size: expected N or HxW, 1 to 32768, channels=N or resize=R (got 0)"},
    {"--size", "12y", "(got 12y)"},
    {"--size", "12x", "(got 12x)"},
    {"--size", "x12", "(got x12)"},
    {"--size", "12x12x12", "(got 12x12x12)"},
    {"--size", "32769", "(got 32769)"},
    {"--size", "channels=0", "--size channels: out of range (got 0, expected 1 to 4)"},
    {"--size", "8,channels=5", "--size channels: out of range"},
    {"--val-split", "0", "--val-split: out of range (got 0, expected 0.001 to 0.9)"},
    {"--size", "channels=2", "--size channels: got 2, expected 1, 3 or 4"},
    {"--size", "resize=none", "--size resize: got \"none\", expected auto or error"},
    {"--limit", "0", "--limit: out of range"},
    {"--limit", "ten", "--limit: not a whole number"},
    {"--val-split", "0.95", "--val-split: out of range (got 0.95, expected 0.001 to 0.9)"},
    {"--val-split", "-0.1", "--val-split: out of range"},
};

Test(data_options, refused)
{
    scoped(folder_remove) folder f = ten_and_six();
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        json_decref(train(&f, WORDS(refused[i].option, refused[i].value)));
        cr_expect_eq(r.status, 3, "%s %s: %d", refused[i].option, refused[i].value, r.status);
        expect_text(r.err, refused[i].err);
    }
}
