/* test_cli.c - the tool from the command line: exit statuses, messages, logs, weights, Ctrl-C. */
#include <criterion/criterion.h>

#include "adjoint_io.h"
#include "cli/process.h"
#include "cli/small_data.h"
#include "cli/train_log.h"

static const call calls[] = {
    {3, NULL, "usage: adjoint COMMAND", ""},
    {0, "  train ", NULL, "--help"},
    {0, "adjoint " ADJ_VERSION_TEXT "\n", NULL, "--version"},
    {3, NULL, "unknown command \"tran\" (did you mean train?)", "tran"},
    {3, NULL, "unknown command \"xyzzy\" (see adjoint --help)", "xyzzy"},
    {3, NULL, "unknown command \"\"", "''"},
    {0, "--optimizer LIST", NULL, "train --help"},
    {0, "--weights FILE", NULL, "eval --help"},
    {3, NULL, "unknown option --epohcs (did you mean --epochs?)", "train --epohcs 3"},
    {3, NULL, "unknown option --epohcs (did you mean --epochs?)", "train --epohcs=3"},
    {3, NULL, "--batch-size (did you mean --batch?)", "train --batch-size 64"},
    {3, NULL, "--momentum (did you mean --optimizer momentum?)", "train --momentum 0.9"},
    {3, NULL, "--warmup (did you mean --schedule warmup=X?)", "train --warmup 3"},
    {3, NULL, "--flip (did you mean --augment flip?)", "train --flip"},
    {0, "reported and skipped", NULL, "predict --help"},
    {3, NULL, "unknown option --perm (see adjoint train --help)", "train --perm 3"},
    {3, NULL, "--epochs: out of range (got 0,", "train --ep 0"},
    {3, NULL, "--epochs: out of range (got 0,", "train --ep=0"},
    {3, NULL, "ambiguous option --check (--checkpoint or --checkpoint-every)", "train --check 3"},
    {3, NULL, "ambiguous option --b (--backend or --batch)", "train --b=3"},
    {3, NULL, "unexpected argument \"--epochs\"", "train -- --epochs ten"},
    {3, NULL, "unexpected argument \"--\"", "models -- --"},
    {1, NULL, "-x.safetensors: No such file", "inspect -- -x.safetensors"},
    {3, NULL, "unexpected argument \"-\"", "train -"},
    {0, "usage: adjoint train", NULL, "train --hel"},
    {0, "usage: adjoint train", NULL, "help train"},
    {0, "usage: adjoint COMMAND", NULL, "help"},
    {3, NULL, "unknown command \"trian\" (did you mean train?)", "help trian"},
    {3, NULL, "--dtype: not available; training keeps f32 parameters", "train --dtype bf16"},
    {3, NULL, "unknown optimizer adagrad (expected sgd,", "train --optimizer adagrad"},
    {3, NULL, "unknown model gpt; see adjoint models", "train --model gpt"},
    {3, NULL, "--checkpoint: expected a file, not standard", "train --checkpoint - --resume"},
    {3, NULL, "--out and --log cannot both be standard output", "train --log - --out -"},
    {3, "", "--data: expected a file or folder", "train --data -"},
    {1, "", "adjoint train: unknown backend (got \"tensorflow\"", "train --backend tensorflow"},
    {3, NULL, "unknown option -q (see adjoint train --help)", "train -q"},
    {3, NULL, "unexpected argument \"lenet\"", "train lenet"},
    {3, NULL, "--epochs: value LIST is missing", "train --epochs"},
    {3, NULL, "--epochs: not a whole number (got \"ten\", expected 1 to 100000)",
     "train --epochs ten"},
    {3, NULL, "--epochs: not a whole number (got \"1.5\"", "train --epochs 1.5"},
    {3, NULL, "--epochs: got \"\", expected N or patience=N", "train --epochs="},
    {3, NULL, "--epochs: out of range (got 0, expected 1 to", "train --epochs 0"},
    {3, NULL, "--batch: out of range (got -5,", "train --batch -5"},
    {3, NULL, "--batch: not a whole number", "train --batch 99999999999999999999"},
    {3, NULL, "--lr: got \"nan\", expected a rate of 1e-12 to 1e+06, or auto", "train --lr nan"},
    {3, NULL, "--lr: got \"-1\", expected a rate of", "train --lr -1"},
    {3, NULL, "unknown optimizer momentun (did you mean momentum?)", "train --optimizer momentun"},
    {3, NULL, "unknown model lenett (did you mean lenet?)", "train --model lenett"},
    {1, "", "/nowhere: No such file", "train --data /nowhere"},
    {1, NULL, "/nowhere/weights: No such file", "train --out /nowhere/weights"},
    {1, NULL, "/dev/null: is not a folder", "train --out /dev/null"},
    {3, NULL, "--out: o.pt: expected NAME.safetensors, - or a folder", "train --out o.pt"},
    {1, NULL, "--resume: safetensors: /nowhere/c: No such file",
     "train --checkpoint /nowhere/c --resume"},
    {1, NULL, "/nowhere/file: No such file", "train --checkpoint /nowhere/file"},
    {3, NULL, "--resume requires --checkpoint FILE", "train --resume"},
    {3, NULL, "--parallel timeout requires mpirun", "train --parallel timeout=5"},
    {3, NULL, "--checkpoint-every requires --checkpoint FILE", "train --checkpoint-every 3"},
    {3, NULL, "expected off, short or full", "train --tune long"},
    {3, NULL, "--tune full cannot be combined with --resume, which keeps the checkpoint's kernels",
     "train --tune --resume --checkpoint x"},
    {3, NULL, "--resume: takes no value", "train --resume=yes"},
    {1, NULL, "/nowhere/log: No such file", "train --log /nowhere/log"},
    {1, "", "backendless", "train --backend backendless"},
    {3, NULL, "--weights FILE is missing", "eval"},
    {1, NULL, "/nowhere/weights", "eval --weights /nowhere/weights"},
    {3, NULL, "did you mean --weights?", "eval --wieghts x"},
    {1, NULL, "/nowhere/w: ", "eval --weight /nowhere/w"},
    {3, NULL, "unexpected argument", "models lenet"},
};

TestSuite(cli, .init = enter_small_data, .fini = leave);

Test(cli, exit_statuses_and_sentences) { expect_calls("", sizeof calls / sizeof calls[0], calls); }

Test(cli, models)
{
    tool(0, "models");
    static const char *const lines[] = {"lenet             454922 ",
                                        "lenet5             61706 ",
                                        "resnet8 ",
                                        "resnet20          272474 ",
                                        "mobilenet_v1      213586 ",
                                        "vgg6             2196810 ",
                                        "ds_cnn "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        expect_text(ran.out, lines[i]);
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

Test(cli, diverging_is_an_error)
{
    complains(1, "try a smaller --lr",
              "train --data . --model lenet --backend naive --optimizer sgd --lr 1e6 --batch 8");
}

Test(cli, interrupt_writes_weights)
{
    child c = tool_start("train --model lenet5 --data . --backend naive --epochs 100000 --log log "
                         "--out weights.safetensors");
    wait_for_file(&c, "log", 1000); /* of some epochs */
    stop_child(&c, SIGINT);
    expect_text(ran.out, "stopped after a step");

    json_t *lines = read_log("log");
    size_t last = json_array_size(lines) - 1;
    cr_expect_str_eq(log_word(lines, last, "event"), "end");
    cr_expect(json_is_true(log_entry(lines, last, "interrupted")));
    tool(0, "eval --weights weights.safetensors --data . --backend naive");
}
