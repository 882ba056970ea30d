/* test_cli.c - the tool from the command line: exit statuses, messages, logs, weights, Ctrl-C. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/small_data.h"
#include "tests/plan.h"

typedef struct {
    int status;
    const char *out, *err; /* words that are printed; NULL: any */
    const char *line;
} call;

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
    {3, NULL, "--data: expected a file or folder", "train --data -"},
    {1, NULL, "adjoint train: unknown backend (got \"tensorflow\"", "train --backend tensorflow"},
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
    {1, NULL, "/nowhere: No such file", "train --data /nowhere"},
    {1, NULL, "/nowhere/weights: No such file", "train --out /nowhere/weights"},
    {1, NULL, "/dev/null: is not a folder", "train --out /dev/null"},
    {3, NULL, "--out: o.pt: expected NAME.safetensors, - or a folder", "train --out o.pt"},
    {1, NULL, "--resume: safetensors: /nowhere/c: No such file",
     "train --checkpoint /nowhere/c --resume"},
    {1, NULL, "/nowhere/file: No such file", "train --checkpoint /nowhere/file"},
    {3, NULL, "--resume requires --checkpoint FILE", "train --resume"},
    {3, NULL, "--checkpoint-every requires --checkpoint FILE", "train --checkpoint-every 3"},
    {3, NULL, "expected off, short or full", "train --tune long"},
    {3, NULL, "--tune full cannot be combined with --resume, which keeps the checkpoint's kernels",
     "train --tune --resume --checkpoint x"},
    {3, NULL, "--resume: takes no value", "train --resume=yes"},
    {1, NULL, "/nowhere/log: No such file", "train --log /nowhere/log"},
    {1, NULL, "backendless", "train --backend backendless"},
    {3, NULL, "--weights FILE is missing", "eval"},
    {1, NULL, "/nowhere/weights", "eval --weights /nowhere/weights"},
    {3, NULL, "did you mean --weights?", "eval --wieghts x"},
    {1, NULL, "/nowhere/w: ", "eval --weight /nowhere/w"},
    {3, NULL, "unexpected argument", "models lenet"},
};

Test(cli, exit_statuses_and_sentences)
{
    static finished f;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        run_line(&f, calls[i].line);
        cr_expect_eq(f.status, calls[i].status, "%s: status %d, %s", calls[i].line, f.status,
                     f.err);
        if (calls[i].out != NULL)
            cr_expect_not_null(strstr(f.out, calls[i].out), "%s printed %s", calls[i].line, f.out);
        if (calls[i].err != NULL)
            cr_expect_not_null(strstr(f.err, calls[i].err), "%s complained %s", calls[i].line,
                               f.err);
        else
            cr_expect_str_empty(f.err);
        cr_expect_null(strstr(f.err, "adj_"), "%s names a function: %s", calls[i].line, f.err);
    }
}

Test(cli, models)
{
    static finished f;
    tool(&f, 0, "models");
    static const char *const lines[] = {"lenet             454922 ",
                                        "lenet5             61706 ",
                                        "resnet8 ",
                                        "resnet20          272474 ",
                                        "mobilenet_v1      213586 ",
                                        "vgg6             2196810 ",
                                        "ds_cnn "};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        cr_expect_not_null(strstr(f.out, lines[i]), "%s is not in\n%s", lines[i], f.out);
}

/* The log's lines as objects; the caller decrefs. */
static json_t *read_log(const char *path)
{
    json_t *lines = json_array();
    char line[1024];
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    while (fgets(line, sizeof line, f) != NULL) {
        json_error_t error;
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, &error);
        cr_assert(json_is_object(object), "%s: %s", error.text, line);
        json_array_append_new(lines, object);
    }
    fclose(f);
    return lines;
}

static const char *event(const json_t *lines, size_t i)
{
    return json_string_value(json_object_get(json_array_get(lines, i), "event"));
}

static double number(const json_t *lines, size_t i, const char *key)
{
    const json_t *value = json_object_get(json_array_get(lines, i), key);
    cr_assert(json_is_number(value), "line %zu has no number %s", i, key);
    return json_number_value(value);
}

/* Trains lenet5 for three epochs on the small data. */
static void train(const folder *f, const char *log, const char *out, const char *threads)
{
    static finished r;
    tool(&r, 0,
         "train --model lenet5 --data %s --backend naive --epochs 3 --batch 32 --lr 0.02 --threads "
         "%s --log %s --out %s",
         f->path, threads, in_folder(f, log).s, in_folder(f, out).s);
    cr_expect_null(strchr(r.out, '\r')); /* plain lines: this is no terminal */
    expect_text(r.out, ": train 90 images in 10 classes (9 each), test 43\n");
    expect_text(r.out, "epoch  3/3  loss ");
    expect_text(r.out, "best: ");
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 16];
    FILE *f = fopen(from, "rb");
    cr_assert_not_null(f, "%s", from);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    cr_assert_lt(n, sizeof bytes);
    put_file(to, bytes, n);
}

Test(cli, train_log_and_eval)
{
    static finished r;
    scoped(folder_remove) folder f = small_data();
    file_name weights = in_folder(&f, "weights.safetensors");
    train(&f, "log", "weights.safetensors", "1");

    json_t *log = read_log(in_folder(&f, "log").s);
    cr_assert_eq(json_array_size(log), 5);
    cr_expect_str_eq(event(log, 0), "start");
    cr_expect_eq(number(log, 0, "parameters"), 61706);
    double best = 0;
    for (size_t i = 1; i <= 3; i++) {
        cr_expect_str_eq(event(log, i), "epoch");
        cr_expect_eq(number(log, i, "epoch"), i);
        /* every image counts once: the accuracies are whole numbers of 90 and 43 images */
        double train_right = number(log, i, "accuracy") * 0.90;
        double test_right = number(log, i, "held_out_accuracy") * 0.43;
        cr_expect_float_eq(train_right, (double)(int)(train_right + 0.5), 1e-6);
        cr_expect_float_eq(test_right, (double)(int)(test_right + 0.5), 1e-6);
        best =
            number(log, i, "held_out_accuracy") > best ? number(log, i, "held_out_accuracy") : best;
    }
    cr_expect_lt(number(log, 3, "loss"), number(log, 1, "loss"));
    cr_expect_str_eq(event(log, 4), "end");
    cr_expect_eq(number(log, 4, "best_accuracy"), best);
    cr_expect(json_is_false(json_object_get(json_array_get(log, 4), "interrupted")));

    /* eval reads the model from the file and finds the last epoch's accuracy */
    char expected[80];
    snprintf(expected, sizeof expected, "test loss %.4f  test accuracy %.2f %% (%.0f of 43)",
             number(log, 3, "held_out_loss"), number(log, 3, "held_out_accuracy"),
             number(log, 3, "held_out_accuracy") * 0.43);
    tool(&r, 0, "eval --weights %s --data %s --backend naive", weights.s, f.path);
    expect_text(r.out, expected);
    json_decref(log);

    tool(&r, 1, "eval --weights %s --data %s --backend naive --model lenet", weights.s, f.path);
    expect_text(r.err, "holds another model (got lenet5, expected lenet)");

    /* another number of threads changes nothing */
    train(&f, "log2", "weights2.safetensors", "3");
    cr_expect(same_file(weights.s, in_folder(&f, "weights2.safetensors").s));
}

/* The second run finds what the first has written, and both give the same weights. */
/* Exactly one of a run's files is standard output; other messages go to stderr. */
Test(cli, standard_output_and_input)
{
    scoped(folder_remove) folder f = small_data();
    static finished r;
    const char *words[] = {"train", "--model",   "lenet5", "--data", f.path, "--epochs",
                           "1",     "--threads", "1",      "--log",  "-",    NULL};
    run_tool(words, &r);
    cr_assert_eq(r.status, 0, "%s", r.err);
    json_t *last = NULL;
    for (char *line = strtok(r.out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_decref(last);
        last = json_loads(line, 0, NULL);
        cr_assert_not_null(last, "no JSON: %s", line);
    }
    cr_assert_str_eq(json_string_value(json_object_get(last, "event")), "end");
    json_decref(last);
    expect_text(r.err, "epoch  1/1  loss ");

    const char *build = getenv("BUILD");
    char line[2048];
    snprintf(line, sizeof line,
             "exec 2>/dev/null; tool=%s/adjoint; $tool train --model lenet5 --data %s --epochs 1 "
             "--threads 1 --out - | cat >%s && cat %s | $tool eval --weights - --data %s >%s",
             build != NULL ? build : "build", f.path, in_folder(&f, "piped").s,
             in_folder(&f, "piped").s, f.path, in_folder(&f, "told").s);
    cr_assert_eq(system(line), 0); // NOLINT(cert-env33-c): the test's own words
    words[9] = "--out";
    words[10] = in_folder(&f, "named.safetensors").s;
    run_tool(words, &r);
    cr_assert_eq(r.status, 0, "%s", r.err);
    snprintf(line, sizeof line, "cmp %s %s && grep -q 'lenet5 on .* test accuracy' %s",
             in_folder(&f, "piped").s, in_folder(&f, "named.safetensors").s,
             in_folder(&f, "told").s);
    cr_assert_eq(system(line), 0); // NOLINT(cert-env33-c): the test's own words
}

Test(cli, train_with_tune)
{
    static finished r;
    scoped(folder_remove) folder f = small_data();
    file_name tune = in_folder(&f, "tune"), before = in_folder(&f, "before");
    file_name weights[] = {in_folder(&f, "a.safetensors"), in_folder(&f, "b.safetensors")};
    int runs = 0, is_whole = 0;
    setenv("ADJOINT_TUNE", tune.s, 1);
    put_file(tune.s, "adjoint tune 0\n", 15);
    /* A plan times for some seconds at most; on a busy machine the next one goes on with it. */
    for (; !is_whole && runs < 20; runs++) {
        copy_file(tune.s, before.s);
        tool(&r, 0, "train --data %s --epochs 1 --batch 8 --threads 1 --tune --out %s", f.path,
             weights[runs % 2].s);
        cr_assert((strstr(r.err, "tune file") != NULL) == (runs == 0), "%s", r.err);
        is_whole = same_file(tune.s, before.s);
    }
    cr_assert(is_whole && runs >= 2);
    cr_assert(same_file(weights[0].s, weights[1].s));
}

Test(cli, diverging_is_an_error)
{
    static finished r;
    scoped(folder_remove) folder f = small_data();
    tool(&r, ANY_STATUS,
         "train --data %s --model lenet --backend naive --optimizer sgd --lr 1e6 --batch 8",
         f.path);
    cr_expect_eq(r.status, 1, "%d %s", r.status, r.out);
    expect_text(r.err, "try a smaller --lr");
}

static void wait_for_line(const char *path, int lines)
{
    for (int i = 0; i < 3000; i++) {
        int seen = 0;
        FILE *f = fopen(path, "r");
        for (int c; f != NULL && (c = fgetc(f)) != EOF;)
            seen += c == '\n';
        if (f != NULL)
            fclose(f);
        if (seen >= lines)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    cr_assert(0, "%s has not got %d lines", path, lines);
}

Test(cli, interrupt_writes_weights)
{
    static finished r;
    scoped(folder_remove) folder f = small_data();
    file_name log = in_folder(&f, "log"), weights = in_folder(&f, "weights.safetensors");
    child c = tool_start(
        "train --model lenet5 --data %s --backend naive --epochs 100000 --log %s --out %s", f.path,
        log.s, weights.s);
    wait_for_line(log.s, 3);
    kill(c.pid, SIGINT);
    child_finish(&c, &r);
    cr_expect_eq(r.status, 130, "%d %s", r.status, r.err);
    expect_text(r.out, "stopped after a step");

    json_t *lines = read_log(log.s);
    size_t last = json_array_size(lines) - 1;
    cr_expect_str_eq(event(lines, last), "end");
    cr_expect(json_is_true(json_object_get(json_array_get(lines, last), "interrupted")));
    json_decref(lines);
    tool(&r, 0, "eval --weights %s --data %s --backend naive", weights.s, f.path);
}

Test(cli, terminal_has_one_line)
{
    static finished r;
    static char shown[PRINTED];
    scoped(folder_remove) folder f = small_data();
    size_t n = 0;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0)
        cr_skip_test("no pseudo terminals here");
    int inside = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    cr_assert_geq(inside, 0);
    cr_assert_eq(ioctl(inside, TIOCSWINSZ, &(struct winsize){.ws_col = 200}), 0);
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1); /* no curve at the end */
    child c = child_start(
        WORDS("train", "--data", f.path, "--backend", "naive", "--epochs", "2", "--batch", "16"),
        inside);
    close(inside);
    for (ssize_t got;
         n < sizeof shown - 1 && (got = read(terminal, shown + n, sizeof shown - 1 - n)) > 0;)
        n += (size_t)got;
    child_finish(&c, &r);
    close(terminal);
    cr_expect_eq(r.status, 0, "%s", r.err);
    expect_text(shown, "\r\033[K1/2 ");
    expect_text(shown, " left");
    int lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += shown[i] == '\n';
    lines -= strstr(shown, "other processes keep ") != NULL; /* while tests run beside it */
    cr_expect_eq(lines, 7, "note, data, model, settings, two epochs, best: %s", shown);
}
