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

static void unwrap(char *text)
{
    for (; *text != '\0'; text++)
        *text = *text == '\n' ? ' ' : *text;
}

#define EVAL "eval --weights w.safetensors --threads 1 --data "

/* Expects eval with these options to print the texts, whatever lines they are wrapped to. */
static void expect_eval(const char *options, const char *const said[])
{
    tool(0, EVAL "%s", options);
    unwrap(ran.out);
    for (int i = 0; said[i] != NULL; i++)
        expect_text(ran.out, said[i]);
}

TestSuite(eval, .init = enter_empty, .fini = leave);
TestSuite(eval_digits, .init = enter_small_data, .fini = leave);

Test(eval, parts_of_a_folder)
{
    put_classes("data/a 10, data/b 6", 12, 1);
    json_t *log = train_log(0, TRAIN "--val-split=0.25");
    /* a folder without parts is taken whole; what train held out is found again */
    expect_eval("data --part all", WORDS("all 16 images in 2 classes (a 10, b 6)"));
    expect_eval("data", WORDS("all 16 images in 2 classes (a 10, b 6)", "lenet5 on all of ",
                              ": loss ", "  accuracy ", " of 16)"));
    cr_expect_null(strstr(ran.out, "test"), "%s", ran.out);
    expect_eval("data --val-split 0.25", WORDS("validation 5 images in 2 classes (a 3, b 2)",
                                               scores_of(log, 0, "validation", 5)));
    expect_eval("data --val-split 0.25 --part train",
                WORDS("train 11 images in 2 classes (a 7, b 4)", "train accuracy ", " of 11)"));
    expect_rows("parts of a folder");

    put_classes("parts/Training/a 3, parts/Training/b 2, parts/valid/a 4, parts/valid/b 5", 12, 1);
    expect_eval("parts", WORDS("validation 9 images in 2 classes (a 4, b 5)",
                               "validation accuracy ", " of 9)"));
    expect_eval("parts --part all",
                WORDS("train 5 images in 2 classes (a 3, b 2), validation 9", " of 14)"));
    put_classes("parts/test/a 1, parts/test/b 1", 12, 1);
    expect_eval("parts", WORDS("test accuracy ", " of 2)"));
    expect_eval("parts --part train", WORDS("train accuracy ", " of 5)"));
    static const char *const names[] = {"parts --part val", "parts --part valid",
                                        "parts --part validation"};
    for (int i = 0; i < 3; i++)
        expect_eval(names[i], WORDS("validation accuracy", " of 9)"));
    expect_eval("parts --part training", WORDS("train accuracy ", " of 5)"));
    expect_eval("parts --part testing", WORDS("test accuracy ", " of 2)"));
    expect_eval("parts --part all", WORDS(" of 16)"));
}

/* The model knows a, b and c; the images of b are far brighter than those of a and c. */
Test(eval, classes_by_name)
{
    put_classes("data/a 8, data/b 8, data/c 8", 12, 1);
    tool(0, "train " TRAIN "--val-split=0.25 --threads 1");
    char right[2][40];
    for (int i = 0; i < 2; i++) { /* a model that says b of all images, or of none */
        put_classes(i == 0 ? "two/b 8, two/c 8" : "three/b 8, three/c 8, three/a 0", 12, 1);
        expect_eval(i == 0 ? "two" : "three", WORDS("all 16 images in 2 of 3 classes (b 8, c 8)"));
        snprintf(right[i], sizeof right[i], "%s", strstr(ran.out, "accuracy"));
    }
    cr_expect_str_eq(right[0], right[1]);
    expect_text(ran.out, "left out: folder a without images");
    put_classes("two/zebra 1", 12, 1);
    complains(1, "two: unknown class zebra (expected a, b, c)", EVAL "two");
    expect_eval("data --part all", WORDS(" of 24)"));
    /* colors are brought to the net's channels */
    put_classes("colors/a 2", 12, 3);
    put_classes("colors/b 2", 12, 1);
    expect_eval("colors", WORDS(" of 4)"));
    /* the embedded digits have other classes */
    complains(3,
              "--data PATH is missing: the default is the embedded digits, but the net has 3 "
              "classes: a, b, c",
              "eval --weights w.safetensors");
    complains(1,
              "(the file has 3 classes; --data is missing: the default is the 10 "
              "embedded digits)",
              "train --model lenet5 --size 8 --weights w.safetensors");
}

Test(eval, what_train_found)
{
    put_classes("data/train/cat 4, data/train/dog 5, data/train/misc 0, data/train/owl 0, "
                "data/val/dog 2, data/val/owl 1",
                12, 1);
    put_file("data/train/cat/1.bmp", "x", 1);
    put_file("data/val/notes.txt", "x", 1);
    tool(0, "train " TRAIN "--threads 1");
    unwrap(ran.out);
    static const char *const said[] = {
        "data: train 9 images in 2 of 3 classes (cat 4, dog 5), validation 3 in 2 of 3 classes",
        "left out of train: 1 file with other endings (.bmp 1), 2 folders without images (misc, "
        "owl)",
        "left out of validation: 1 file outside class folders",
        "note: class owl has no images to train on"};
    for (int i = 0; i < 4; i++)
        expect_text(ran.out, said[i]);
}

/* EMNIST's letters have the labels 1 to 26. */
Test(eval, labels_from_one)
{
    static const uint8_t x[9], y[9] = {1, 2, 3, 1, 2, 3, 1, 2, 3};
    put_idx("train-images-idx3-ubyte", 9, 1, 1, 1, x);
    put_idx("train-labels-idx1-ubyte", 9, 0, 0, 0, y);
    tool(0, "train --data . --epochs 1 --size 8 --model lenet5 --threads 1 --out w.safetensors");
    unwrap(ran.out);
    expect_text(ran.out,
                ": train 6 images in 3 of 4 classes (2 each), validation 3 in 3 of 4 classes ");
    expect_text(ran.out, "note: class 0 of 4 has no images; if the labels count from 1, subtract 1 "
                         "for 3 classes");
    put_classes("named/a 2, named/b 2, named/c 2, named/d 2", 12, 1);
    complains(0, "w.safetensors has no class names", "eval --weights w.safetensors --data named");
    tool(0, "eval --weights w.safetensors --data . --val-split 0.2");
    cr_expect_null(strstr(ran.err, "matched by number"), "%s", ran.err);
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
    static finished before;
    put_classes("png 3", 28, 1);
    tool(0, "train --data . --model lenet5 --epochs 2 --checkpoint checkpoint --out w.safetensors");
    tool(0, "eval --threads 1 --data . --weights w.safetensors");
    before = ran;
    cr_expect_str_eq(before.err, "");
    tool(0, "eval --threads 1 --data . --weights checkpoint");
    cr_expect_str_eq(ran.err, "");
    cr_expect_str_eq(ran.out, before.out);
    tool(0, "predict --threads 1 --json --top 10 --weights w.safetensors png");
    before = ran;
    tool(0, "predict --threads 1 --json --top 10 --weights checkpoint png");
    cr_expect_str_eq(ran.out, before.out);
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
Test(eval_digits, data_by_default)
{
    tool(0, "train --data . --model lenet5 --epochs 1 --out w.safetensors");
    complains(3, "but the net has 10 classes without names", "eval --weights w.safetensors");
    tool(0, "train --model lenet5 --epochs 1 --limit 40 --out w.safetensors");
    prints(0, "(0 3, 1 3, 2 3, 3 3, 4 3, 5 3, 6 3, 7 3, 8 3, 9 3)",
           "eval --weights w.safetensors --limit 30");
}
