/* test_output.c - output: every command fails if its output cannot be written, and text from files
 * or the command line cannot control the terminal. "-" where a command takes the name of a file:
 * standard input and output give the same results as files, or a message. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "cli/child.h"
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
    int status; /* of the command itself: 0 becomes 1, or 141 where a pipe has no reader */
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

/* No file may grow beyond a few bytes: the old report stays, and no file is left beside it. */
Test(output, a_full_disk_leaves_the_report_of_before)
{
    static const char *const reports[] = {"version --json report", "models --json report",
                                          "gradcheck --op relu --in 1,2,2,1 --junit report",
                                          "emit --model lenet --out report",
                                          "compare --op relu --in 1,2,2,1 --json report"};
    enter_empty();
    struct rlimit all, few;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = (struct rlimit){16, all.rlim_max};
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        char text[64];
        put_file("report", "before", 6);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &few), 0);
        child c = child_start(split(reports[i]), -1);
        setrlimit(RLIMIT_FSIZE, &all);
        child_finish(&c);
        cr_expect_eq(ran.status, 1, "%s: %d", reports[i], ran.status);
        get_file("report", text, sizeof text);
        cr_expect_str_eq(text, "before");
        cr_expect_eq(files_in(&here), 1);
    }
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

/* Runs the lines by a shell, where the tool is adjoint, and expects what their rows have. */
static void expect_lines(size_t n, const call lines[])
{
    for (size_t i = 0; i < n; i++) {
        shell("%s", lines[i].line);
        expect_call(lines[i].line, &lines[i]);
    }
}

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

Test(standard, inspect)
{
    static const call lines[] = {
        {0, "", NULL,
         "adjoint inspect t.safetensors >file; adjoint inspect - <t.safetensors >in; "
         "test -s in && cmp file in"},
        {0, NULL, NULL,
         "cat t.safetensors | adjoint inspect --json - | grep -q '\"file\": *\"-\"'"},
        /* NumPy's file has no name for its array */
        {0, "\narr_0 ", "",
         "adjoint convert t.safetensors b.npy --tensor b && adjoint inspect - <b.npy"},
        {1, NULL, "standard input: ", "head -c 20 t.safetensors | adjoint inspect -"},
        {1, NULL, "", "adjoint inspect - <&-"},
    };
    expect_lines(sizeof lines / sizeof *lines, lines);
    cr_expect_eq(shell("head -c 20 t.safetensors | adjoint inspect -"), 1);
    cr_expect_null(strstr(ran.err, "/proc/"), "%s", ran.err);
}

Test(standard, convert)
{
    static const char *const formats[] = {"safetensors", "npz", "npy", "h"};
    static const call lines[] = {
        {0, "1 tensor, 6 elements, 24 bytes", NULL, "adjoint inspect file.safetensors"},
        /* through all of them and back, with what the header says of the first */
        {0, "", "",
         "adjoint convert - - --format safetensors <t.safetensors | "
         "adjoint convert - same.safetensors && cmp same.safetensors t.safetensors"},
        {0, "2 tensors, 9 elements, 48 bytes", "",
         "adjoint convert t.safetensors - --format npz | "
         "adjoint convert - odd.name --format npz && adjoint inspect odd.name"},
        {3, NULL, "or --format (got -)", "adjoint convert t.safetensors -"},
        {1, NULL, "holds one tensor (got 2; select one with --tensor NAME)",
         "adjoint convert - - --format npy <t.safetensors"},
        {1, NULL, "standard output cannot be written",
         "adjoint convert - - --format npz <t.safetensors >/dev/full"},
        {3, NULL, "IN and --map cannot both be standard input",
         "adjoint convert - x.npz --map - <t.safetensors"},
    };
    for (int i = 0; i < 4; i++) {
        char line[600];
        snprintf(line, sizeof line,
                 "adjoint convert t.safetensors file.%s --tensor a && "
                 "adjoint convert - - --tensor a --format %s <t.safetensors >piped && "
                 "cmp file.%s piped",
                 formats[i], formats[i], formats[i]);
        const call c = {0, "", "1 tensor written to standard output", line};
        expect_lines(1, &c);
    }
    expect_lines(sizeof lines / sizeof *lines, lines);
}

/* Messages that say what is there, or what to do. */
Test(standard, messages_about_files)
{
    static const call lines[] = {
        {1, NULL, "adjoint inspect: cut.onnx: is not an ONNX file",
         "printf x >cut.onnx; adjoint inspect cut.onnx"},
        {3, NULL,
         "--model: expected a model's name or an ONNX file; m.txt: not a file of tensors (got "
         "text, ",
         "printf hello >m.txt; adjoint train --model m.txt --data digits"},
        {3, NULL, "t.safetensors holds weights (set --weights FILE)",
         "adjoint train --model t.safetensors --data digits"},
        {1, NULL,
         "has no tensor conv1.weight (for conv1/w); other names need a map file: edit that of "
         "adjoint convert --map pytorch --model lenet\n",
         "adjoint convert t.safetensors m.npz --map pytorch --model lenet"},
    };
    expect_lines(sizeof lines / sizeof *lines, lines);
}

/* A map file as well; an unknown model is reported. */
Test(standard, convert_maps)
{
    static const call lines[] = {
        {0, "\nours ", "",
         "echo 'ours = a, permute 1 0' | adjoint convert t.safetensors m.npz --map - && "
         "adjoint inspect m.npz"},
        {0, "[3, 2]", "", "adjoint inspect m.npz"},
        {1, NULL, "standard input: line 1",
         "echo 'ours = ' | adjoint convert t.safetensors m.npz --map -"},
        {3, NULL, "unknown model zzzzqq", "adjoint convert --map pytorch --model zzzzqq"},
    };
    expect_lines(sizeof lines / sizeof *lines, lines);
}

Test(output, standard_weights)
{
    static const call lines[] = {
        {0, "", "",
         "adjoint train --data . --model lenet5 --epochs 1 --out w.safetensors >/dev/null"},
        {0, "", "",
         "adjoint eval --data . --weights w.safetensors >file && "
         "adjoint eval --data . --weights - <w.safetensors >in && cmp file in"},
        {0, "", "",
         "adjoint predict --weights w.safetensors gray.png >file && "
         "adjoint predict --weights - gray.png <w.safetensors >in && cmp file in"},
        {0, "", "",
         "adjoint convert w.safetensors theirs.safetensors --map pytorch --to-theirs && "
         "adjoint convert --map pytorch --model lenet5 >map && "
         "adjoint predict --weights theirs.safetensors --model lenet5 --map map gray.png >file && "
         "adjoint predict --weights theirs.safetensors --model lenet5 --map - gray.png <map >in "
         "&& cmp file in"},
        {0, "states loaded from standard input, ", "",
         "adjoint train --data . --model lenet5 --epochs 1 --weights w.safetensors "
         "--out file.safetensors && adjoint train --data . --model lenet5 --epochs 1 "
         "--weights - --out in.safetensors <w.safetensors && cmp file.safetensors in.safetensors"},
        {1, NULL,
         "standard input: ", "head -c 500 w.safetensors | adjoint predict --weights - gray.png"},
        {3, NULL, "standard input can be given once (got - 2 times)",
         "adjoint predict --weights - - <w.safetensors"},
        {3, NULL, "", "adjoint predict --weights w.safetensors - - <gray.png"},
        {3, NULL, "--weights and --map cannot both be standard input",
         "adjoint eval --data . --weights - --map - <w.safetensors"},
        {3, "", "", "adjoint train --data . --weights - --map - <w.safetensors"},
    };
    scoped(folder_remove) folder dir = small_data();
    put_sample(&dir, "gray.png", "gray.png");
    enter(dir);
    expect_lines(sizeof lines / sizeof *lines, lines);
}
