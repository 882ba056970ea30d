/* test_cli.c - the tool from the command line: exit statuses, messages, logs, weights, Ctrl-C. */
#include <criterion/criterion.h>

#include "adjoint_io.h"
#include "cli/process.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"

TestSuite(cli, .init = enter_small_data, .fini = leave);

Test(cli, exit_statuses_and_sentences)
{
    prints(0, "adjoint " ADJ_VERSION_TEXT "\n", "--version");
    expect_rows("exit statuses and sentences");
}

/* Trains lenet5 for three epochs on the small data. */
static void train(const char *log, const char *out, const char *threads)
{
    tool(0,
         "train --model lenet5 --data . --backend naive --epochs 3 --batch 32 --lr 0.02 --threads "
         "%s --log %s --out %s",
         threads, log, out);
    cr_expect_null(strchr(ran.out, '\r')); /* plain lines: this is no terminal */
    expect_text(ran.out, ": train 90 images in 10 classes (9 each), test 43\n");
    expect_text(ran.out, "epoch  3/3  loss ");
    expect_text(ran.out, "best: ");
}

Test(cli, train_log_and_eval)
{
    train("log", "weights.safetensors", "1");

    json_t *log = read_log("log");
    cr_assert_eq(json_array_size(log), 5);
    cr_expect_str_eq(log_word(log, 0, "event"), "start");
    cr_expect_eq(log_number(log, 0, "parameters"), 61706);
    cr_expect_eq(log_number(log, 0, "train_images"), 90);
    cr_expect_eq(log_number(log, 0, "held_out_images"), 43);
    double best = 0;
    for (size_t i = 1; i <= 3; i++) {
        const double accuracy = log_number(log, i, "held_out_accuracy");
        cr_expect_str_eq(log_word(log, i, "event"), "epoch");
        cr_expect_eq(log_number(log, i, "epoch"), i);
        /* every image counts once: the accuracies are whole numbers of 90 and 43 images */
        double train_right = log_number(log, i, "accuracy") * 0.90, test_right = accuracy * 0.43;
        cr_expect_float_eq(train_right, (double)(int)(train_right + 0.5), 1e-6);
        cr_expect_float_eq(test_right, (double)(int)(test_right + 0.5), 1e-6);
        best = accuracy > best ? accuracy : best;
    }
    cr_expect_lt(log_number(log, 3, "loss"), log_number(log, 1, "loss"));
    cr_expect_str_eq(log_word(log, 4, "event"), "end");
    cr_expect_eq(log_number(log, 4, "best_accuracy"), best);
    cr_expect(json_is_false(log_entry(log, 4, "interrupted")));

    /* eval reads the model from the file and finds the last epoch's accuracy */
    prints(0, scores_of(log, 2, "test", 43),
           "eval --weights weights.safetensors --data . --backend naive");

    complains(1, "holds another model (got lenet5, expected lenet)",
              "eval --weights weights.safetensors --data . --backend naive --model lenet");

    /* another number of threads changes nothing */
    train("log2", "weights2.safetensors", "3");
    cr_expect(same_file("weights.safetensors", "weights2.safetensors"));
}

/* Exactly one of a run's files is standard output; other messages go to stderr. */
Test(cli, standard_output_and_input)
{
    tool(0, "train --model lenet5 --data . --epochs 1 --threads 1 --log -");
    json_t *event = NULL;
    for (char *line = strtok(ran.out, "\n"); line != NULL; line = strtok(NULL, "\n"))
        event = json_of(line);
    cr_assert_str_eq(word_in(event, "event"), "end");
    expect_text(ran.err, "epoch  1/1  loss ");

    cr_assert_eq(shell("adjoint train --model lenet5 --data . --epochs 1 --threads 1 --out - | "
                       "cat >piped && adjoint eval --weights - --data . <piped"),
                 0, "%s", ran.err);
    expect_text(ran.out, "lenet5 on ");
    expect_text(ran.out, " test accuracy");
    tool(0, "train --model lenet5 --data . --epochs 1 --threads 1 --out named.safetensors");
    cr_expect(same_file("piped", "named.safetensors"));
}

/* The second run finds what the first has written, and both give the same weights. */
Test(cli, train_with_tune)
{
    static const char *const weights[] = {"a.safetensors", "b.safetensors"};
    int runs = 0, is_whole = 0;
    setenv("ADJOINT_TUNE", "tune", 1);
    put_file("tune", "adjoint tune 0\n", 15);
    /* A plan times for some seconds at most; on a busy machine the next one goes on with it. */
    for (; !is_whole && runs < 20; runs++) {
        cr_assert_eq(shell("cp tune before"), 0);
        tool(0, "train --data . --epochs 1 --batch 8 --threads 1 --tune --out %s",
             weights[runs % 2]);
        cr_assert((strstr(ran.err, "tune file") != NULL) == (runs == 0), "%s", ran.err);
        is_whole = same_file("tune", "before");
    }
    cr_assert(is_whole && runs >= 2);
    cr_assert(same_file(weights[0], weights[1]));
}
