/* test_eval.c - splits, classes and channels in eval, and what train and eval print about the data.
 * Numbers of images are counted by hand; eval's accuracy is the one that train's log has of the
 * same images. */
#include <criterion/criterion.h>

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

#define TRAIN "--epochs 1 --batch 8 --data data --size 8 --model lenet5 --out w.safetensors "

TestSuite(eval, .init = enter_empty, .fini = leave);
TestSuite(eval_digits, .init = enter_small_data, .fini = leave);

/* Folders with parts, and one without, which is taken whole; what train held out is found again. */
Test(eval, parts_of_a_folder)
{
    put_classes("data/a 10, data/b 6", 12, 1);
    put_classes("two/Training/a 3, two/Training/b 2, two/valid/a 4, two/valid/b 5", 12, 1);
    put_classes("three/Training/a 3, three/Training/b 2, three/valid/a 4, three/valid/b 5, "
                "three/test/a 1, three/test/b 1",
                12, 1);
    json_t *log = train_log(0, TRAIN "--val-split=0.25");
    prints(0, scores_of(log, 0, "validation", 5),
           "eval --weights w.safetensors --threads 1 --data data --val-split 0.25");
    expect_rows("parts of a folder");
}

/* The model knows a, b and c; the images of b are far brighter than those of a and c. */
Test(eval, classes_by_name)
{
    put_classes("data/a 8, data/b 8, data/c 8, two/b 8, two/c 8, three/b 8, three/c 8, three/a 0, "
                "other/b 1, other/zebra 1, colors/b 2",
                12, 1);
    put_classes("colors/a 2", 12, 3);
    tool(0, "train " TRAIN "--val-split=0.25 --threads 1");
    expect_rows("classes by name");
}

Test(eval, what_train_found)
{
    put_classes("data/train/cat 4, data/train/dog 5, data/train/misc 0, data/train/owl 0, "
                "data/val/dog 2, data/val/owl 1",
                12, 1);
    put_file("data/train/cat/1.bmp", "x", 1);
    put_file("data/val/notes.txt", "x", 1);
    expect_rows("what train found");
}

/* EMNIST's letters have the labels 1 to 26. */
Test(eval, labels_from_one)
{
    static const uint8_t x[9], y[9] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    put_idx("train-images-idx3-ubyte", 9, 1, 1, 1, x);
    put_idx("train-labels-idx1-ubyte", 9, 0, 0, 0, y);
    put_classes("named/a 2, named/b 2, named/c 2, named/d 2", 12, 1);
    expect_rows("labels from one");
}

/* Without mean and deviation eval takes pixels as predict does. */
Test(eval_digits, weights_without_mean_and_deviation)
{
    static finished zero;
    static const adj_metadata card[] = {{"model", "lenet5"},
                                        {"input", "[28,28,1]"},
                                        {"classes", "10"},
                                        {"mean", "[0]"}, /* leaves pixels as they are */
                                        {"deviation", "[1]"}};
    tool(0, "train --data . --model lenet5 --size 28 --epochs 2 --out w.safetensors");
    copy_tensors("w.safetensors", "bare", 3, card);
    copy_tensors("w.safetensors", "zero", 5, card);
    tool(0, "eval --weights zero --data . --threads 1");
    zero = ran;
    cr_expect_null(strstr(zero.err, "mean and deviation"), "%s", zero.err);
    tool(0, "eval --weights bare --data . --threads 1");
    cr_expect_str_eq(ran.out, zero.out);
    expect_text(ran.err, "bare has no mean or deviation; pixels are used unscaled, 0 to 255");
    cr_expect_eq(strncmp(ran.err, "note: ", 6), 0, "%s", ran.err); /* as those on the output */
}

/* A checkpoint at the end of a run is evaluated like its weights file. */
Test(eval_digits, checkpoint_like_weights)
{
    put_classes("png 3", 28, 1);
    expect_rows("checkpoint like weights");
}

/* eval computes in the precision of the training: it prints train's last held-out numbers. */
Test(eval_digits, precision_of_the_training)
{
    const char *const precisions[] = {"f32", "bf16", "f16"};
    for (int i = 0; i < 3; i++) {
        json_t *log = train_log(0,
                                "--model lenet5 --epochs 3 --batch 10 --backend naive --precision "
                                "%s --out w.safetensors",
                                precisions[i]);
        prints(0, scores_of(log, 2, "test", 43),
               "eval --weights w.safetensors --data . --threads 1 --backend naive");
    }
}

/* And in its math: the loss is train's to more digits than the algorithms of another math share. */
Test(eval_digits, math_of_the_training)
{
    const char *const maths[] = {"exact", "fast"};
    for (int i = 0; i < 2; i++) {
        json_t *log = train_log(
            0, "--model resnet20 --epochs 2 --batch 30 --math %s --out w.safetensors", maths[i]);
        const double loss = log_event_number(log, "epoch", 1, "held_out_loss");
        prints(0, scores_of(log, 1, "test", 43),
               "eval --weights w.safetensors --data . --threads 1");

        scoped(release_predictor) adj_predictor *p = predictor_from("w.safetensors");
        adj_score score = {0};
        adj_error error = {0};
        const adj_model_card *card = adj_predictor_card(p);
        cr_expect_eq(card->math, i == 1 ? ADJ_MATH_FAST : ADJ_MATH_EXACT);
        const adj_dataset_opts o = {.image.size = card->options.size};
        scoped(release_dataset) adj_dataset *d = dataset_of(here.path, ADJ_TEST, &o);
        cr_assert_eq(adj_predictor_evaluate(p, d, &score, NULL, &error), ADJ_OK, "%s",
                     error.message);
        cr_expect_float_eq(score.loss, loss, 1e-8 * loss, "%s: %.9g and %.9g", maths[i], score.loss,
                           loss);
    }
}

/* The embedded digits are the default data of a net whose classes have their names, not of any ten
 * classes. */
Test(eval_digits, data_by_default) { expect_rows("data by default"); }
