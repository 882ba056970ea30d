/* test_train_out.c - files in the folder of --out. */
#include <criterion/criterion.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli/process.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"

#define TRAIN "train --data . --model lenet5 --threads 1 --lr 0.02 --batch 64 --out run "

static char *read_text(const char *path)
{
    static char text[1 << 20];
    get_file(path, text, sizeof text);
    return text;
}

enum { KINDS = 5 };

/* Expects a log of whole lines with so many events of each kind, and no others. */
static void expect_events(const char *path, const int counts[KINDS])
{
    static const char *const kinds[KINDS] = {"start", "step", "epoch", "resume", "end"};
    json_t *log = read_log(path);
    int all = 0;
    for (int i = 0; i < KINDS; i++) {
        cr_expect_eq(log_count(log, kinds[i]), counts[i], "%s", kinds[i]);
        all += counts[i];
    }
    cr_expect_eq(json_array_size(log), all);
}

static void expect_report(const char *path)
{
    static const char *const parts[] = {"<title>lenet5 on ",
                                        "<figcaption>Loss<",
                                        "aria-label=\"Confusion matrix\"",
                                        "<h2>Precision and recall</h2>",
                                        "<h2>Most confident mistakes</h2>",
                                        "--lr 0.02 --batch 64 --out ",
                                        "<dt>seed</dt><dd>1</dd>"};
    const char *page = read_text(path);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        expect_text(page, parts[i]);
    expect_text(page, "</html>\n");
}

TestSuite(train_out, .init = enter_small_data, .fini = leave);

Test(train_out, folder_and_resumption, .timeout = 300)
{
    static const char *const names[] = {"run/weights.safetensors", "run/best.safetensors",
                                        "run/metrics.jsonl", "run/report.html"};
    tool(0, TRAIN "--epochs 4");
    for (int i = 0; i < 4; i++)
        cr_expect_eq(access(names[i], R_OK), 0, "%s", names[i]);
    expect_text(ran.out, "report written to ");
    /* 90 images in batches of 64: two steps */
    expect_events("run/metrics.jsonl", (const int[KINDS]){1, 8, 4, 0, 1});
    expect_report("run/report.html");
    cr_expect_null(strstr(ran.err, "are replaced"), "%s", ran.err);
    complains(0, "run: the files of an older run are replaced", TRAIN "--epochs 4");

    tool(0, TRAIN "--epochs 4 --out w.safetensors");
    cr_expect(same_file("w.safetensors", "run/weights.safetensors"),
              "the folder's weights are others than the file's");
    char best[80];
    const char *said = strstr(ran.out, "best: ");
    cr_assert_not_null(said);
    /* the file has the last epoch's weights */
    char last[80];
    const char *at = strstr(ran.out, "epoch  4/4");
    cr_assert_not_null(at);
    at = strstr(at, "test accuracy ") + strlen("test accuracy ");
    snprintf(last, sizeof last, "(epoch 4, accuracy %.*s", (int)(strcspn(at, "%") + 1), at);
    expect_text(ran.out, last);
    snprintf(best, sizeof best, "test accuracy %.*s", (int)(strcspn(said + 6, "%") + 1), said + 6);
    prints(0, best, "eval --weights run/best.safetensors --data .");

    /* in two parts: the same weights, one log, one curve */
    tool(0, TRAIN "--out half --epochs 4 --checkpoint c");
    prints(0, "note: the run is complete", "train --checkpoint c --resume --data . --out half");
    expect_same_tensors("half/weights.safetensors", "run/weights.safetensors");
    const char *accuracy = entry_of("run/weights.safetensors", "accuracy");
    cr_assert_not_null(accuracy);
    cr_expect_str_eq(entry_of("half/weights.safetensors", "accuracy"), accuracy);
    expect_events("half/metrics.jsonl", (const int[KINDS]){2, 8, 4, 1, 2});
    expect_text(read_text("half/report.html"), "<figcaption>Loss<");
}

Test(train_out, notes, .timeout = 300) { expect_rows("notes"); }

/* A disk that is full after the first epoch, whose scores are printed: nothing was resumed. */
Test(train_out, full_disk) { expect_rows("full disk"); }

/* Writes 150 images as IDX: a disc, an upright and a level bar in turn, at varying places. */
static void put_shapes(const char *images, const char *labels)
{
    static uint8_t x[150 * 784], y[150];
    for (int k = 0; k < 150 * 784; k++) {
        const int i = k / 784, v = k % 784 / 28 - 11 - i % 7, h = k % 28 - 11 - i % 5;
        const int is_inside = i % 3 == 0   ? v * v + h * h < 49
                              : i % 3 == 1 ? v * v < 49 && h * h < 4
                                           : v * v < 4 && h * h < 49;
        x[k] = (uint8_t)((is_inside ? 230 : 20) + k * 7 % 17);
        y[i] = (uint8_t)(i % 3);
    }
    put_idx(images, 150, 28, 28, 1, x);
    put_idx(labels, 150, 0, 0, 0, y);
}

/* The test's 300 steps repeat the few images: a tenth of the rate of the least loss is too much. */
Test(train_out, range_test_of_few_images, .timeout = 300)
{
    put_shapes("train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    put_shapes("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    for (int seed = 1; seed <= 2; seed++) {
        tool(0, "train --data . --lr auto --seed %d --epochs 5", seed);
        const char *last = strstr(ran.out, "\nepoch  5/5");
        last = last != NULL ? last : strstr(ran.out, "\nepoch 5/5");
        const char *accuracy = last != NULL ? strstr(last, "test accuracy ") : NULL;
        cr_expect(accuracy != NULL && atof(accuracy + 14) > 90, "seed %d: %s", seed, ran.out);
    }
}

/* Neither a folder nor files where training could not begin. */
Test(train_out, nothing_is_left_of_what_failed) { expect_rows("nothing is left of what failed"); }

/* A folder's name that a card cannot hold is found before the first epoch. */
Test(train_out, a_class_name_that_is_not_utf8)
{
    /* 1 x 1, gray: by Pillow, Image.new("L", (1, 1)).save(...) */
    static const char png[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx"
        "\x9c"
        "c`\0\0\0\2\0\1H\xaf\xa4q\0\0\0\0IEND\xae"
        "B`\x82";
    static const char *const classes[] = {"a", "caf\xe9"};
    for (int i = 0; i < 20; i++) {
        char name[24];
        snprintf(name, sizeof name, "photos/%s/%d.png", classes[i % 2], i / 2);
        put_in(&here, name, png, sizeof png - 1);
    }
    complains(1, "the name of class 1 is not UTF-8 (got caf\\xe9; rename the class or its folder)",
              "train --data photos --epochs 1 --out out");
    cr_expect_null(strstr(ran.out, "epoch"), "%s", ran.out);
    cr_expect_neq(access("out", F_OK), 0, "a folder is left");
}

/* Two files of the run that are one, or one that cannot be replaced. */
Test(train_out, files_in_the_folder_are_checked) { expect_rows("files in the folder are checked"); }

/* A training whose folder or log another one holds is refused, and the other's lines stay. */
Test(train_out, one_training_at_a_time) { expect_rows("one training at a time"); }

/* Starts a long training and stops it by the signal when its log has some lines. */
static void stop_by(int number)
{
    child c = tool_start(
        "train --model lenet5 --data . --backend naive --batch 8 --epochs 100000 --out run");
    wait_for_file(&c, "run/metrics.jsonl", 5000);
    stop_child(&c, number);
}

Test(train_out, a_killed_run_leaves_whole_lines, .timeout = 120)
{
    stop_by(SIGKILL);
    json_t *log = read_log("run/metrics.jsonl");
    cr_expect_gt(json_array_size(log), 30);
    cr_expect_gt(log_count(log, "step"), 20);
}

/* On Ctrl-C the weights are written, and report and log say so. */
Test(train_out, an_interrupted_run_is_reported, .timeout = 120)
{
    stop_by(SIGINT);
    expect_text(ran.out, "stopped after a step");
    expect_text(read_text("run/report.html"), "<p>Interrupted after ");
    json_t *log = read_log("run/metrics.jsonl");
    const size_t last = json_array_size(log) - 1;
    cr_expect_str_eq(log_word(log, last, "event"), "end");
    cr_expect(json_is_true(log_entry(log, last, "interrupted")));
    tool(0, "eval --weights run/weights.safetensors --data . --backend naive");
}

/* A file that is replaced is held by its FILE.lock. A killed training leaves that unlocked. */
Test(train_out, one_training_at_a_time_replaces_a_file)
{
    expect_rows("one training replaces a file");
}

/* A file among the images is refused, also behind a link, unless a command wrote it. */
Test(train_out, data_are_not_written_over) { expect_rows("data are not written over"); }
