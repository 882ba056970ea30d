/* test_data_options.c - train on folders of PNG files: images that --val-split and --limit select,
 * effect of --size on the model, errors of resize=error. The expected numbers are counted by hand.
 */
#include <criterion/criterion.h>

#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

/* Ten images of class a and six of b, 12 x 12, gray. */
static void enter_ten_and_six(void)
{
    enter_empty();
    put_classes("data/a 10, data/b 6", 12, 1);
}

TestSuite(data_options, .init = enter_ten_and_six, .fini = leave);
TestSuite(data_folders, .init = enter_empty, .fini = leave);

/* One epoch on the folder "data", with more options. */
static json_t *train(int status, const char *more)
{
    return train_log(status, "--epochs 1 --batch 8 --data data %s", more);
}

static void expect_counts(const char *more, int n_train, int n_test)
{
    json_t *log = train(0, more);
    cr_expect_eq(log_number(log, 0, "train_images"), n_train, "%s %s", more, ran.out);
    cr_expect_eq(log_number(log, 0, "held_out_images"), n_test, "%s %s", more, ran.out);
}

static void expect_parameters(const char *more, int parameters)
{
    json_t *log = train(0, more);
    cr_expect_eq(log_number(log, 0, "parameters"), parameters, "%s %s", more, ran.out);
}

/* It fails with this status and these words in its message. */
static void expect_failure(const char *more, int status, const char *words)
{
    train(status, more);
    expect_text(ran.err, words);
}

#define SMALL "--size 8 --model lenet5 "

/* The split takes the rounded fraction of each class, with at least one image on either side. */
Test(data_options, val_split)
{
    expect_counts(SMALL, 13, 3); /* a fifth: 2 and 1.2 */
    expect_text(ran.out, "has no validation or test split; holding out 20 % of each class");
    expect_counts("--val-split 0.5 " SMALL, 8, 8);
    cr_expect_null(strstr(ran.out, "20 %"), "%s", ran.out);
    expect_counts("--val-split 0.25 " SMALL, 11, 5); /* 2.5 and 1.5 */
    expect_counts("--val-split 0.9 " SMALL, 2, 14);
    expect_counts("--val-split 0.01 " SMALL, 14, 2);
}

/* The parts that a folder has go before a split. */
Test(data_folders, parts_of_the_folder)
{
    put_classes("data/train/a 7, data/train/b 5, data/test/a 2, data/test/b 2", 8, 1);
    expect_counts(SMALL, 12, 4);
    expect_text(ran.out, "test accuracy");
    expect_counts("--val-split 0.2 " SMALL, 10, 2); /* 1.4 and 1 */
    expect_text(ran.out, "validation accuracy");
    put_classes("data/val/a 1, data/val/b 4", 8, 1);
    expect_counts(SMALL, 12, 5);
    expect_text(ran.out, "validation accuracy");
    expect_counts("--val-split 0.5 " SMALL, 12, 5);
}

/* The limit applies to each split of the data, after holding out. */
Test(data_options, limit)
{
    expect_counts("--limit 8 " SMALL, 8, 3);
    expect_counts("--limit 8 --val-split 0.5 " SMALL, 8, 8);
    expect_counts("--limit 4 --val-split 0.5 " SMALL, 4, 4);
    expect_counts("--limit 1000 " SMALL, 13, 3);
}

/* A batch is no larger than the training images after split and limit; --resume compares it so. */
Test(data_options, batch_is_cut)
{
    json_t *log = train(0, "--limit 8 --batch 5000 --checkpoint run.ckpt " SMALL);
    cr_expect_eq(log_number(log, 0, "batch"), 8);
    expect_text(ran.err,
                "note: --batch is reduced to 8: the data have 8 training images (got 5000)");
    train(0, "--limit 8 --batch 4,accumulate=9 " SMALL);
    expect_text(ran.err, "note: --batch accumulate is reduced to 2: the data have 8");
    train(0, "--limit 1 --batch 2 " SMALL);
    expect_text(ran.err, "reduced to 1: the data have 1 training image (got 2)");
    tool(0, "train --data data --checkpoint run.ckpt --resume --epochs 2 --threads 1");
    cr_expect_null(strstr(ran.err, "is reduced to"), "%s", ran.err);
}

/* Which images are drawn, and so their mean, does not depend on the seed. */
Test(data_options, the_same_for_every_seed)
{
    static const char *const seeds[] = {"1", "2", "3", "4"};
    char first[100];
    for (int i = 0; i < 4; i++) {
        tool(0,
             "train --data data --epochs 1 --batch 8 --val-split 0.5 --limit 4 --seed %s --out "
             "w.safetensors " SMALL,
             seeds[i]);
        const char *mean = entry_of("w.safetensors", "mean");
        cr_assert_not_null(mean);
        if (i == 0)
            snprintf(first, sizeof first, "%s", mean);
        cr_expect_str_eq(mean, first);
        cr_expect_str_eq(entry_of("w.safetensors", "seed"), seeds[i]);
    }
}

/* lenet: 5x5 filters c to 32 and 32 to 64, a pool of two after each, then 128 and 2 units. */
static int lenet_parameters(int h, int w, int c)
{
    return 25 * c * 32 + 32 + 25 * 32 * 64 + 64 + h / 4 * (w / 4) * 64 * 128 + 128 + 128 * 2 + 2;
}

Test(data_options, size_and_channels)
{
    expect_parameters("--model lenet", lenet_parameters(28, 28, 1));
    expect_text(ran.out, "16 of 16 images are resized to 28x28");
    expect_parameters("--size 12", lenet_parameters(12, 12, 1));
    cr_expect_null(strstr(ran.out, "resized"), "%s", ran.out);
    expect_parameters("--size 20x12", lenet_parameters(20, 12, 1));
    expect_text(ran.out, "resized to 20x12");
    expect_parameters("--size 8,channels=3", lenet_parameters(8, 8, 3));
    expect_parameters("--size 8,channels=4", lenet_parameters(8, 8, 4));
    expect_failure("--size 7x3 --model lenet", 1, /* the second pool */
                   "net lenet, images of 7x3x1: max_pool: output width is empty");
}

Test(data_folders, colors)
{
    put_classes("data/a 5, data/b 5", 8, 3);
    expect_parameters("--size 8", lenet_parameters(8, 8, 3));
    expect_parameters("--size 8,channels=1", lenet_parameters(8, 8, 1));
    put_class("data/b", "gray", 1, 8, 8, 1);
    expect_parameters("--size 8,channels=3", lenet_parameters(8, 8, 3));
}

static int lenet5_parameters(int c)
{
    return 25 * c * 6 + 6 + 25 * 6 * 16 + 16 + 400 * 120 + 120 + 120 * 84 + 84 + 84 * 2 + 2;
}

/* A net has the channels of its model or of most images, whichever are more; eval and predict obey
 * the card. */
Test(data_folders, gray_among_colors)
{
    put_class("data/train/a", "", 5, 8, 8, 3);
    put_class("data/train/a", "gray", 1, 8, 8, 1);
    put_class("data/train/b", "gray", 4, 8, 8, 1);
    put_class("data/test/a", "gray", 3, 8, 8, 1);
    put_class("data/test/b", "", 1, 8, 8, 3);
    expect_parameters("--model lenet5 --out w.safetensors", lenet5_parameters(3));
    expect_text(ran.out, "note: 8 of 14 images in all splits are gray and become color");
    prints(0, "note: 3 of 4 images are gray", "eval --weights w.safetensors --data data");

    /* one more, and they are the majority */
    put_class("data/train/b", "more", 1, 8, 8, 1);
    expect_parameters("--model lenet5 --out w.safetensors", lenet5_parameters(1));
    expect_text(ran.out, "note: 6 of 15 images in all splits are in color and become gray "
                         "(--size channels=3 keeps colors)");
    prints(0, "note: 1 of 4 images are in color and become gray",
           "eval --weights w.safetensors --data data");
    expect_parameters("--model lenet5 --size channels=3", lenet5_parameters(3));
    train(0, "--model resnet8 --out w.safetensors");
    cr_expect_str_eq(entry_of("w.safetensors", "input"), "[32,32,3]");
    expect_text(ran.out, "note: 9 of 15 images in all splits are gray and become color (--size ");
}

/* Gray images, in files or in an array, become a color model's channels, with a note. */
Test(data_folders, gray_for_a_color_model)
{
    put_classes("data/train/a 5, data/train/b 5, data/test/a 1", 8, 1);
    expect_rows("gray for a color model");
    cr_expect_str_eq(entry_of("color.safetensors", "input"), "[32,32,3]");
    cr_expect_str_eq(entry_of("gray.safetensors", "input"), "[32,32,1]");
}

/* Messages name the folder without images, and the option that makes a split. */
Test(data_folders, what_is_missing_is_named)
{
    put_classes("data/cats 5, data/dogs 0", 8, 1);
    expect_rows("one class");
    put_classes("data/dogs 5", 8, 1);
    expect_rows("no validation split");
}

/* Overwrites an image with its first 60 bytes, which hold the header. */
static void cut(const char *name) { cr_assert_eq(truncate(name, 60), 0, "%s", name); }

/* Cut files of both parts are named before the first step, or left out. */
Test(data_folders, broken_files)
{
    put_classes("data/train/a 5, data/train/b 5, data/val/a 3, data/val/b 25", 8, 1);
    cut("data/val/a/1.png");
    cut("data/val/a/2.png");
    cr_expect_eq(json_array_size(train(1, SMALL)), 0, "a step was done");
    expect_text(ran.err, "/val/a/1.png: ");
    expect_text(ran.err, "/val/a/2.png: ");
    expect_text(ran.err, "2 image files cannot be read (--skip-broken skips them)");
    cut("data/train/b/4.png");
    expect_failure(SMALL, 1, "/train/b/4.png: ");
    expect_text(ran.err, "/val/a/2.png: ");

    expect_counts("--skip-broken --out w.safetensors " SMALL, 9, 26);
    expect_text(ran.err, "/train/b/4.png: ");
    expect_text(ran.err, "/val/a/2.png: ");
    expect_text(ran.err, "note: ");
    expect_text(ran.err, "left out 2 unreadable image files");
    put_classes("data/train/b 5", 8, 1); /* whole again */
    complains(1, "/val/a/1.png: ", "eval --weights w.safetensors --data data");
    prints(0, " of 26)", "eval --skip-broken --weights w.safetensors --data data");
    for (int i = 0; i < 23; i++) {
        char name[40];
        snprintf(name, sizeof name, "data/val/b/%d.png", i);
        cut(name);
    }
    complains(1, "and 5 more\n", "eval --weights w.safetensors --data data");
    expect_text(ran.err, "25 image files cannot be read");
}

/* One image of another size among all. */
Test(data_options, resize_error)
{
    train(0, "--size 12,resize=error");
    expect_failure("--size resize=error", 1,
                   "(use --size resize=auto, or set the model's size with --size HxW");
    expect_text(ran.err, "12x12");
    expect_text(ran.err, "28x28");
    put_class("data/b", "odd", 1, 12, 13, 1);
    expect_failure("--size 12,resize=error", 1, "/b/odd0.png");
    train(0, "--size 12");
    /* of data that have one size, the model's own */
    scoped(folder_remove) folder small = small_data();
    complains(1, "image size differs (got 28x28, expected 32x32)",
              "train --data %s --model lenet5 --size resize=error", small.path);
    tool(0, "train --data %s --model lenet5 --size resize=error --size 28 --epochs 1", small.path);
}

Test(data_options, refused) { expect_rows("refused"); }
