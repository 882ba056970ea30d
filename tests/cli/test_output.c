/* test_output.c - output: every command fails if its output cannot be written, and text from files
 * or the command line cannot control the terminal. "-" where a command takes the name of a file:
 * standard input and output give the same results as files, or a message. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "io/sample.h"
#include "tests/plan.h"

enum { CLOSED = 1000 }; /* no file: it cannot take the place of the output */
enum { FULL_DEVICE, NO_OUTPUT, NO_READER, OUTPUTS };

/* Runs the tool with an output to which nothing can be written: a full device, none at all, or a
 * pipe whose reader has ended. */
static void run_without_output(const char *const words[], int kind)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), ends[2];
    cr_assert_geq(full, 0);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    fcntl(STDOUT_FILENO, F_SETFD, FD_CLOEXEC);
    signal(SIGPIPE, SIG_DFL);
    child c = child_start(words, kind == FULL_DEVICE ? full : kind == NO_OUTPUT ? CLOSED : ends[1]);
    child_finish(&c);
    close(ends[1]);
    close(full);
}

static const struct {
    int status; /* status of the command itself: 0 becomes 1, or 141 where a pipe has no reader */
    const char *line;
} calls[] = {
    {0, "--help"},
    {0, "-h"},
    {0, "help"},
    {0, "--version"},
    {0, "models"},
    {0, "models --help"},
    {0, "models --json"},
    {0, "version"},
    {0, "version --json"},
    {0, "ops"},
    {0, "ops conv2d"},
    {0, "ops --json"},
    {0, "help op"},
    {0, "--document bash"},
    {0, "--document commands"},
    {0, "--document bash"},
    {0, "--document zsh"},
    {0, "train --help"},
    {0, "train --model lenet5 --data . --backend naive --epochs 1 --out weights.safetensors"},
    {0, "train --model lenet5 --data . --backend naive --epochs 1 --log -"},
    {0, "train --model lenet5 --data . --backend naive --epochs 1 --out -"},
    {0, "predict --weights weights.safetensors --backend naive image.png"},
    {0, "predict --weights weights.safetensors --backend naive --json image.png"},
    {0, "inspect weights.safetensors"},
    {0, "inspect --json weights.safetensors"},
    {0, "convert weights.safetensors - --format safetensors"},
    {0, "convert --map pytorch --model lenet5"},
    {0, "summary --model lenet5"},
    {0, "graph --model lenet5"},
    {0, "emit --model lenet5"},
    {0, "op relu --in operands --out -"},
    {0, "eval --weights weights.safetensors --data . --backend naive"},
    {0, "gradcheck --op relu --in 2,3,3,4"},
    {0, "gradcheck --op relu --in 2,3,3,4 --json -"},
    {0, "gradcheck --op relu --in 2,3,3,4 --junit -"},
    {0, "compare --op relu --in 1,2,2,2 --runs 1"},
    {0, "compare --op relu --in 1,2,2,2 --runs 1 --json -"},
    {0, "bench --op relu --in 1,2,2,2 --seconds 0.01"},
    {0, "bench --op relu --in 1,2,2,2 --seconds 0.01 --json"},
    {0, "bench --model lenet5 --batch 1 --seconds 0.01 --profile"},
    {0, "bench --model lenet5 --batch 1 --seconds 0.01 --json"},
    {2, "gradcheck --model lenet --node 0"},
    {3, "train --epochs 0"},
    {3, "tran"},
};

/* True if a file takes the output's place; what is printed then goes to stderr. */
static int writes_file(const char *const words[])
{
    int is_file = 0;
    for (int i = 1; strcmp(words[0], "op") != 0 && words[i] != NULL; i++)
        is_file |= strcmp(words[i], "-") == 0 && strncmp(words[i - 1], "--j", 3) != 0;
    return is_file;
}

Test(output, that_cannot_be_written_is_a_failure)
{
    static const float x[] = {-1, 2};
    const adj_tensor operand = {"x0", ADJ_ELEM_F32, {1, {2}}, x};
    scoped(folder_remove) folder dir = small_data();
    put_sample(&dir, "image.png", "gray.png");
    enter(dir);
    cr_assert_eq(adj_tensors_write("operands", 1, &operand, 0, NULL, NULL), ADJ_OK);
    for (size_t i = 0; i < OUTPUTS * sizeof calls / sizeof calls[0]; i++) {
        const char *line = calls[i / OUTPUTS].line, *const *words = split(line);
        const int is_quiet = i % OUTPUTS == NO_READER && !writes_file(words);
        run_without_output(words, (int)(i % OUTPUTS));
        const int status = calls[i / OUTPUTS].status, lost = is_quiet ? 128 + SIGPIPE : 1;
        cr_expect_eq(ran.status, status == 0 ? lost : status, "%s: %d %s", line, ran.status,
                     ran.err);
        if (is_quiet)
            cr_expect_null(strstr(ran.err, "standard output"), "%s: %s", line, ran.err);
        else if (status == 0)
            cr_expect_not_null(strstr(ran.err, "standard output cannot be written"), "%s: %s", line,
                               ran.err);
    }
}

/* Every read ends with a whole line, so that a killed run leaves whole lines. */
Test(output, a_log_is_written_line_by_line, .timeout = 120)
{
    static char text[1 << 16];
    static const char line[] =
        "train --model lenet5 --limit 20 --backend naive --epochs 100000 --log -";
    int pipes[2];
    cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
    child c = child_start(split(line), pipes[1]);
    close(pipes[1]);
    for (int i = 0; i < 20; i++) {
        const ssize_t n = read(pipes[0], text, sizeof text);
        cr_assert(n > 0 && text[n - 1] == '\n', "%zd bytes, the last %c", n,
                  text[n > 0 ? n - 1 : 0]);
    }
    kill(c.pid, SIGKILL);
    for (ssize_t n; (n = read(pipes[0], text, sizeof text)) > 0;)
        cr_expect_eq(text[n - 1], '\n');
    close(pipes[0]);
    child_finish(&c);
}

/* No file may grow: the old report stays, and no file is left beside it. */
Test(output, a_full_disk_leaves_the_report_of_before)
{
    enter_empty();
    expect_rows("a full disk");
    leave();
}

/* ---- text from files ---- */

/* An escape sequence, a C1 character, one that turns the direction. */
#define C1                                                                                         \
    "\xc2\x9b"                                                                                     \
    "2J \xe2\x80\xae"
#define WILD "\x1b]0;x\x07 " C1

/* Nothing but text, lines and tabs. */
static void expect_harmless(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char b = (unsigned char)*c;
        cr_expect(b >= ' ' || b == '\n', "byte %#x in %s", b, text);
        cr_expect(b != 0x7f && b != 0x9b, "byte %#x in %s", b, text);
        cr_expect(strncmp(c, "\xe2\x80\xae", 3) != 0, "U+202E in %s", text);
    }
}

/* A safetensors file with one tensor; JSON may hold characters as their numbers. */
static void put_tensor(const char *path, const char *metadata, const char *name)
{
    char bytes[1024] = "";
    int n = snprintf(bytes + 8, sizeof bytes - 8,
                     "{%s\"%s\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                     metadata, name);
    bytes[0] = (char)(n & 255);
    bytes[1] = (char)(n >> 8);
    put_file(path, bytes, (size_t)n + 8 + 4);
}

static void run_harmlessly(const char *const words[], int status, const char *says)
{
    run_tool(words);
    cr_expect_eq(ran.status, status, "%s: %d %s", words[0], ran.status, ran.err);
    expect_harmless(ran.out);
    expect_harmless(ran.err);
    cr_expect(strstr(ran.err, says) != NULL || strstr(ran.out, says) != NULL, "%s: %s%s", says,
              ran.out, ran.err);
}

Test(output, names_from_a_weight_file)
{
    enter_empty();
    put_tensor("file",
               "\"__metadata__\":{\"model\":\"\\u001b[2J\\nlenet \\u009b2J \\u202e\\u2028\"},",
               "w");
    run_harmlessly(
        WORDS("eval", "--weights", "file", "--backend", "naive"), 1,
        "model \\x1b[2J\\x0alenet \\xc2\\x9b2J \\xe2\\x80\\xae\\xe2\\x80\\xa8 is not built in");
    put_tensor("file", "", "\\u0007a \\u009B2J \\u202E");
    run_harmlessly(WORDS("eval", "--weights", "file", "--backend", "naive"), 1, "");
    run_harmlessly(WORDS("inspect", "file"), 0, "\\xe2\\x80\\xae");
    run_harmlessly(WORDS("inspect", "--json", "file"), 0, "\\u0007a \\u009B2J \\u202E");
    run_harmlessly(WORDS("convert", "file", "-", "--format", "h"), 0,
                   "/* \\x07a \\xc2\\x9b2J \\xe2\\x80\\xae: f32 [1] */");
    put_tensor("file", "\"__metadata__\":{\"checkpoint\":\"adjoint 2\",\"model\":\"\\u009b2J\"},",
               "w");
    run_harmlessly(WORDS("train", "--checkpoint", "file", "--resume"), 1, "");
    leave();
}

Test(output, paths)
{
    static const char nowhere[] = "/nowhere/" WILD;
    run_harmlessly(WORDS("eval", "--weights", nowhere), 1, " \\xc2\\x9b2J \\xe2\\x80\\xae: ");
    run_harmlessly(WORDS("train", "--data", nowhere), 1, "No such file");
    run_harmlessly(WORDS("train", "--out", nowhere), 1, "No such file");
    run_harmlessly(WORDS("train", "--" WILD), 3, "unknown option --\\x1b");
    run_harmlessly(WORDS(WILD), 3, "unknown command");
    scoped(folder_remove) folder dir = small_data();
    char wild[300];
    snprintf(wild, sizeof wild, "%s/" WILD "\n", dir.path);
    cr_assert_eq(symlink(dir.path, wild), 0);
    run_harmlessly(
        WORDS("train", "--model", "lenet5", "--data", wild, "--backend", "naive", "--epochs", "1"),
        0, "\\xe2\\x80\\xae\\x0a: train 90 images in 10 classes");
}

/* ---- "-" where a command takes the name of a file ---- */

/* t.safetensors: a tensor each of 6 and 3 elements. */
static void enter_tensors(void)
{
    static const float a[6] = {0.5F, -1, 2, 3, 4, 5};
    static const int64_t b[3] = {1, -2, 3};
    const adj_tensor tensors[] = {{"a", ADJ_ELEM_F32, {2, {2, 3}}, a},
                                  {"b", ADJ_ELEM_I64, {1, {3}}, b}};
    const adj_metadata note = {"note", "kept"};
    enter_empty();
    cr_assert_eq(adj_tensors_write("t.safetensors", 2, tensors, 1, &note, NULL), ADJ_OK);
}

TestSuite(standard, .init = enter_tensors, .fini = leave);

Test(standard, inspect) { expect_rows("inspect"); }

Test(standard, convert) { expect_rows("convert"); }

/* Messages that say what is there, or what to do. */
Test(standard, messages_about_files) { expect_rows("messages about files"); }

/* A map file as well; an unknown model is reported. */
Test(standard, convert_maps) { expect_rows("convert maps"); }

Test(output, standard_weights)
{
    scoped(folder_remove) folder dir = small_data();
    put_sample(&dir, "gray.png", "gray.png");
    enter(dir);
    expect_rows("standard weights");
}
