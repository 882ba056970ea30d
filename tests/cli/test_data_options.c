/* test_data_options.c - train on folders of PNG files: images that --val-split and --limit select,
 * effect of --size on the model, errors of resize=error. The expected numbers are counted by hand.
 */
#include <criterion/criterion.h>

#include "cli/rows.h"
#include "cli/small_data.h"
#include "tests/plan.h"

/* Ten images of class a and six of b, 12 x 12, gray. */
static void enter_ten_and_six(void)
{
    enter_empty();
    put_classes("data/a 10, data/b 6", 12, 1);
}

TestSuite(data_options, .init = enter_ten_and_six, .fini = leave);
TestSuite(data_folders, .init = enter_empty, .fini = leave);

Test(data_options, val_split_and_limit) { expect_rows("val split and limit"); }
Test(data_options, batch_is_cut) { expect_rows("batch is cut"); }
Test(data_options, size_and_channels) { expect_rows("size and channels"); }
Test(data_options, refused) { expect_rows("refused"); }

/* The parts that a folder has go before a split. */
Test(data_folders, parts_of_the_folder)
{
    put_classes("data/train/a 7, data/train/b 5, data/test/a 2, data/test/b 2", 8, 1);
    expect_rows("train and test");
    put_classes("data/val/a 1, data/val/b 4", 8, 1);
    expect_rows("validation");
}

/* Which images are drawn, and so their mean, does not depend on the seed. */
Test(data_options, the_same_for_every_seed)
{
    static const char *const seeds[] = {"1", "2", "3", "4"};
    char first[100];
    for (int i = 0; i < 4; i++) {
        tool(0,
             "train --data data --epochs 1 --batch 8 --val-split 0.5 --limit 4 --seed %s --size 8 "
             "--model lenet5 --out w.safetensors",
             seeds[i]);
        const char *mean = entry_of("w.safetensors", "mean");
        cr_assert_not_null(mean);
        if (i == 0)
            snprintf(first, sizeof first, "%s", mean);
        cr_expect_str_eq(mean, first);
        cr_expect_str_eq(entry_of("w.safetensors", "seed"), seeds[i]);
    }
}

Test(data_folders, colors)
{
    put_classes("data/a 5, data/b 5", 8, 3);
    expect_rows("colors");
    put_class("data/b", "gray", 1, 8, 8, 1);
    expect_rows("colors and a gray image");
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
    expect_rows("gray among colors");
    put_class("data/train/b", "more", 1, 8, 8, 1);
    expect_rows("more gray than colors");
    cr_expect_str_eq(entry_of("w.safetensors", "input"), "[32,32,3]");
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

/* Cut files of both parts are named before the first step, or left out. */
Test(data_folders, broken_files)
{
    put_classes("data/train/a 5, data/train/b 5, data/val/a 3, data/val/b 25", 8, 1);
    expect_rows("broken files");
}

/* One image of another size among all; and data that have one size, the model's own. */
Test(data_options, resize_error)
{
    expect_rows("resize error");
    put_class("data/b", "odd", 1, 12, 13, 1);
    expect_rows("resize error of one image");
    scoped(folder_remove) folder small = small_data();
    cr_assert_eq(symlink(small.path, "small"), 0);
    expect_rows("resize error of all images");
}
