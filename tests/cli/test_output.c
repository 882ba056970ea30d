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
#include "io/data/files.h"
#include "tests/plan.h"

static finished f;

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
    child_finish(&c, &f);
    close(ends[1]);
    close(full);
}

#define DATA "(data)" /* stands for the folder */
#define WEIGHTS "(weights)"
#define OUT "(out)"
#define IMAGE "(image)"
#define OPERANDS "(operands)"

static const struct {
    int status; /* of the command itself: 0 becomes 1, or 141 where a pipe has no reader */
    const char *words[16];
} calls[] = {
    {0, {"--help"}},
    {0, {"-h"}},
    {0, {"help"}},
    {0, {"--version"}},
    {0, {"models"}},
    {0, {"models", "--help"}},
    {0, {"models", "--json"}},
    {0, {"version"}},
    {0, {"version", "--json"}},
    {0, {"ops"}},
    {0, {"ops", "conv2d"}},
    {0, {"ops", "--json"}},
    {0, {"help", "op"}},
    {0, {"--document", "bash"}},
    {0, {"--document", "commands"}},
    {0, {"--document", "bash"}},
    {0, {"--document", "zsh"}},
    {0, {"train", "--help"}},
    {0,
     {"train", "--model", "lenet5", "--data", DATA, "--backend", "naive", "--epochs", "1", "--out",
      WEIGHTS}},
    {0,
     {"train", "--model", "lenet5", "--data", DATA, "--backend", "naive", "--epochs", "1", "--log",
      "-"}},
    {0,
     {"train", "--model", "lenet5", "--data", DATA, "--backend", "naive", "--epochs", "1", "--out",
      "-"}},
    {0, {"predict", "--weights", WEIGHTS, "--backend", "naive", IMAGE}},
    {0, {"predict", "--weights", WEIGHTS, "--backend", "naive", "--json", IMAGE}},
    {0, {"inspect", WEIGHTS}},
    {0, {"inspect", "--json", WEIGHTS}},
    {0, {"convert", WEIGHTS, "-", "--format", "safetensors"}},
    {0, {"convert", "--map", "pytorch", "--model", "lenet5"}},
    {0, {"summary", "--model", "lenet5"}},
    {0, {"graph", "--model", "lenet5"}},
    {0, {"emit", "--model", "lenet5"}},
    {0, {"op", "relu", "--in", OPERANDS, "--out", "-"}},
    {0, {"eval", "--weights", WEIGHTS, "--data", DATA, "--backend", "naive"}},
    {0, {"gradcheck", "--op", "relu", "--in", "2,3,3,4"}},
    {0, {"gradcheck", "--op", "relu", "--in", "2,3,3,4", "--json", "-"}},
    {0, {"gradcheck", "--op", "relu", "--in", "2,3,3,4", "--junit", "-"}},
    {0, {"compare", "--op", "relu", "--in", "1,2,2,2", "--runs", "1"}},
    {0, {"compare", "--op", "relu", "--in", "1,2,2,2", "--runs", "1", "--json", "-"}},
    {0, {"bench", "--op", "relu", "--in", "1,2,2,2", "--seconds", "0.01"}},
    {0, {"bench", "--op", "relu", "--in", "1,2,2,2", "--seconds", "0.01", "--json"}},
    {0, {"bench", "--model", "lenet5", "--batch", "1", "--seconds", "0.01", "--profile"}},
    {0, {"bench", "--model", "lenet5", "--batch", "1", "--seconds", "0.01", "--json"}},
    {2, {"gradcheck", "--model", "lenet", "--node", "0"}},
    {3, {"train", "--epochs", "0"}},
    {3, {"tran"}},
};

/* Files that the calls name. */
typedef struct {
    folder dir;
    file_name weights, out, image, operands;
} call_files;

static call_files make_files(void)
{
    static const float x[] = {-1, 2};
    const adj_tensor operand = {"x0", ADJ_ELEM_F32, {1, {2}}, x};
    call_files c = {.dir = small_data()};
    c.weights = in_folder(&c.dir, "weights.safetensors");
    c.out = in_folder(&c.dir, "out");
    c.image = in_folder(&c.dir, "image.png");
    c.operands = in_folder(&c.dir, "operands");
    put_sample(&c.dir, "image.png", "gray.png");
    cr_assert_eq(adj_tensors_write(c.operands.s, 1, &operand, 0, NULL, NULL), ADJ_OK);
    return c;
}

static const char *word_of(const call_files *c, const char *word)
{
    return strcmp(word, DATA) == 0       ? c->dir.path
           : strcmp(word, WEIGHTS) == 0  ? c->weights.s
           : strcmp(word, OUT) == 0      ? c->out.s
           : strcmp(word, IMAGE) == 0    ? c->image.s
           : strcmp(word, OPERANDS) == 0 ? c->operands.s
                                         : word;
}

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
    const call_files c = make_files();
    for (size_t i = 0; i < OUTPUTS * sizeof calls / sizeof calls[0]; i++) {
        const size_t n = i / OUTPUTS;
        const char *words[ARGUMENTS] = {NULL};
        for (int k = 0; calls[n].words[k] != NULL; k++)
            words[k] = word_of(&c, calls[n].words[k]);
        run_without_output(words, (int)(i % OUTPUTS));
        int status = calls[n].status;
        const int is_quiet = i % OUTPUTS == NO_READER && !writes_file(words);
        const int lost = is_quiet ? 128 + SIGPIPE : 1;
        cr_expect_eq(f.status, status == 0 ? lost : status, "%s %s: %d %s", words[0], words[1],
                     f.status, f.err);
        if (is_quiet)
            cr_expect_null(strstr(f.err, "standard output"), "%s %s: %s", words[0], words[1],
                           f.err);
        else if (status == 0)
            cr_expect_not_null(strstr(f.err, "standard output cannot be written"), "%s %s: %s",
                               words[0], words[1], f.err);
        unlink(c.out.s);
    }
    folder_remove(&c.dir);
}

/* Every read ends with a whole line, so that a killed run leaves whole lines. */
Test(output, a_log_is_written_line_by_line, .timeout = 120)
{
    static char text[1 << 16];
    const char *words[] = {"train", "--model",  "lenet5", "--limit", "20", "--backend",
                           "naive", "--epochs", "100000", "--log",   "-",  NULL};
    int pipes[2];
    cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
    child c = child_start(words, pipes[1]);
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
    child_finish(&c, &f);
}

/* No file may grow beyond a few bytes: the old report stays, and no file is left beside it. */
Test(output, a_full_disk_leaves_the_report_of_before)
{
    static const char *const reports[][8] = {
        {"version", "--json"},
        {"models", "--json"},
        {"gradcheck", "--op", "relu", "--in", "1,2,2,1", "--junit"},
        {"emit", "--model", "lenet", "--out"},
        {"compare", "--op", "relu", "--in", "1,2,2,1", "--json"}};
    static const char before[] = "before";
    scoped(folder_remove) const folder dir = folder_new();
    const file_name report = in_folder(&dir, "report");
    struct rlimit all, few;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    few = (struct rlimit){16, all.rlim_max};
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        const char *words[ARGUMENTS] = {NULL};
        char text[64] = "";
        int n = 0;
        for (; n < 8 && reports[i][n] != NULL; n++)
            words[n] = reports[i][n];
        words[n] = report.s;
        put_file(report.s, before, sizeof before);
        cr_assert_eq(setrlimit(RLIMIT_FSIZE, &few), 0);
        child c = child_start(words, -1);
        setrlimit(RLIMIT_FSIZE, &all);
        child_finish(&c, &f);
        cr_expect_eq(f.status, 1, "%s: %d", words[0], f.status);
        FILE *kept = fopen(report.s, "r");
        cr_assert(kept != NULL && fread(text, 1, sizeof text, kept) == sizeof before);
        fclose(kept);
        cr_expect_str_eq(text, before);
        cr_expect_eq(files_in(&dir), 1);
    }
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
    run_tool(words, &f);
    cr_expect_eq(f.status, status, "%s: %d %s", words[0], f.status, f.err);
    expect_harmless(f.out);
    expect_harmless(f.err);
    cr_expect(strstr(f.err, says) != NULL || strstr(f.out, says) != NULL, "%s: %s%s", says, f.out,
              f.err);
}

Test(output, names_from_a_weight_file)
{
    scoped(folder_remove) folder dir = folder_new();
    const file_name file = in_folder(&dir, "file");
    const char *words[] = {"eval", "--weights", file.s, "--backend", "naive", NULL};
    put_tensor(file.s,
               "\"__metadata__\":{\"model\":\"\\u001b[2J\\nlenet \\u009b2J \\u202e\\u2028\"},",
               "w");
    run_harmlessly(
        words, 1,
        "model \\x1b[2J\\x0alenet \\xc2\\x9b2J \\xe2\\x80\\xae\\xe2\\x80\\xa8 is not built in");
    put_tensor(file.s, "", "\\u0007a \\u009B2J \\u202E");
    run_harmlessly(words, 1, "");
    run_harmlessly(WORDS("inspect", file.s), 0, "\\xe2\\x80\\xae");
    run_harmlessly(WORDS("inspect", "--json", file.s), 0, "\\u0007a \\u009B2J \\u202E");
    run_harmlessly(WORDS("convert", file.s, "-", "--format", "h"), 0,
                   "/* \\x07a \\xc2\\x9b2J \\xe2\\x80\\xae: f32 [1] */");
    const char *resume[] = {"train", "--checkpoint", file.s, "--resume", NULL};
    put_tensor(file.s, "\"__metadata__\":{\"checkpoint\":\"adjoint 2\",\"model\":\"\\u009b2J\"},",
               "w");
    run_harmlessly(resume, 1, "");
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

static finished r;

/* Runs the line in the folder of the test, where the shell finds the tool as $tool. Its status; r
 * has what it printed. */
static int shell(const folder *f, const char *line)
{
    static char command[2048];
    const char *build = getenv("BUILD");
    char tool[4096];
    const file_name out = in_folder(f, ".out"), err = in_folder(f, ".err");
    cr_assert_not_null(realpath(build != NULL ? build : "build", tool));
    setenv("build", tool, 1);
    snprintf(command, sizeof command,
             "cd '%s' && tool=\"$build/adjoint\" && { %s; } >.out 2>.err </dev/null", f->path,
             line);
    r.status = exit_status(system(command)); // NOLINT(cert-env33-c): the test's own words
    FILE *printed = fopen(out.s, "r"), *complained = fopen(err.s, "r");
    cr_assert(printed != NULL && complained != NULL);
    take(printed, r.out);
    take(complained, r.err);
    unlink(out.s);
    unlink(err.s);
    return r.status;
}

static void expect_success(const folder *f, const char *line)
{
    cr_expect_eq(shell(f, line), 0, "%s: %d\n%s%s", line, r.status, r.out, r.err);
}

/* A tensor each of 6 and 3 elements. */
static folder put_tensors(void)
{
    static const float a[6] = {0.5F, -1, 2, 3, 4, 5};
    static const int64_t b[3] = {1, -2, 3};
    const adj_tensor tensors[] = {{"a", ADJ_ELEM_F32, {2, {2, 3}}, a},
                                  {"b", ADJ_ELEM_I64, {1, {3}}, b}};
    const adj_metadata note = {"note", "kept"};
    folder f = folder_new();
    cr_assert_eq(adj_tensors_write(in_folder(&f, "t.safetensors").s, 2, tensors, 1, &note, NULL),
                 ADJ_OK);
    return f;
}

Test(standard, inspect)
{
    scoped(folder_remove) folder f = put_tensors();
    expect_success(&f, "$tool inspect t.safetensors >file; $tool inspect - <t.safetensors >in; "
                       "test -s in && cmp file in");
    expect_success(&f, "cat t.safetensors | $tool inspect --json - | grep -q '\"file\": *\"-\"'");
    /* NumPy's file has no name for its array */
    expect_success(&f, "$tool convert t.safetensors b.npy --tensor b && $tool inspect - <b.npy");
    expect_text(r.out, "\narr_0 ");
    cr_expect_eq(shell(&f, "head -c 20 t.safetensors | $tool inspect -"), 1);
    expect_text(r.err, "standard input: ");
    cr_expect_null(strstr(r.err, "/proc/"), "%s", r.err);
    cr_expect_eq(shell(&f, "$tool inspect - <&-"), 1, "%d", r.status);
}

Test(standard, convert)
{
    static const char *const formats[] = {"safetensors", "npz", "npy", "h"};
    scoped(folder_remove) folder f = put_tensors();
    for (int i = 0; i < 4; i++) {
        char line[600];
        snprintf(line, sizeof line,
                 "$tool convert t.safetensors file.%s --tensor a && "
                 "$tool convert - - --tensor a --format %s <t.safetensors >piped && "
                 "cmp file.%s piped",
                 formats[i], formats[i], formats[i]);
        expect_success(&f, line);
        expect_text(r.err, "1 tensor written to standard output");
    }
    expect_success(&f, "$tool inspect file.safetensors");
    expect_text(r.out, "1 tensor, 6 elements, 24 bytes");
    /* through all of them and back, with what the header says of the first */
    expect_success(&f, "$tool convert - - --format safetensors <t.safetensors | "
                       "$tool convert - same.safetensors && cmp same.safetensors t.safetensors");
    expect_success(&f, "$tool convert t.safetensors - --format npz | "
                       "$tool convert - odd.name --format npz && $tool inspect odd.name");
    expect_text(r.out, "2 tensors, 9 elements, 48 bytes");
    cr_expect_eq(shell(&f, "$tool convert t.safetensors -"), 3);
    expect_text(r.err, "or --format (got -)");
    cr_expect_eq(shell(&f, "$tool convert - - --format npy <t.safetensors"), 1);
    expect_text(r.err, "holds one tensor (got 2; select one with --tensor NAME)");
    cr_expect_str_empty(r.out);
    cr_expect_eq(shell(&f, "$tool convert - - --format npz <t.safetensors >/dev/full"), 1);
    expect_text(r.err, "standard output cannot be written");
    cr_expect_eq(shell(&f, "$tool convert - x.npz --map - <t.safetensors"), 3);
    expect_text(r.err, "IN and --map cannot both be standard input");
}

/* Messages that say what is there, or what to do. */
Test(standard, messages_about_files)
{
    scoped(folder_remove) folder f = put_tensors();
    cr_expect_eq(shell(&f, "printf x >cut.onnx; $tool inspect cut.onnx"), 1);
    cr_expect(strncmp(r.err, "adjoint inspect: cut.onnx: is not an ONNX file", 46) == 0, "%s",
              r.err);
    cr_expect_eq(shell(&f, "printf hello >m.txt; $tool train --model m.txt --data digits"), 3);
    expect_text(r.err, "--model: expected a model's name or an ONNX file; m.txt: not "
                       "a file of tensors (got text, ");
    cr_expect_eq(shell(&f, "$tool train --model t.safetensors --data digits"), 3);
    expect_text(r.err, "t.safetensors holds weights (set --weights FILE)");
    cr_expect_eq(shell(&f, "$tool convert t.safetensors m.npz --map pytorch --model lenet"), 1);
    expect_text(r.err, "has no tensor conv1.weight (for conv1/w); other names need a "
                       "map file: edit that of adjoint convert --map pytorch "
                       "--model lenet\n");
}

/* A map file as well; an unknown model is reported. */
Test(standard, convert_maps)
{
    scoped(folder_remove) folder f = put_tensors();
    expect_success(&f, "echo 'ours = a, permute 1 0' | $tool convert t.safetensors m.npz --map - "
                       "&& $tool inspect m.npz");
    expect_text(r.out, "\nours ");
    expect_text(r.out, "[3, 2]");
    cr_expect_eq(shell(&f, "echo 'ours = ' | $tool convert t.safetensors m.npz --map -"), 1);
    cr_expect(strstr(r.err, "standard input: line 1") != NULL, "%s", r.err);
    cr_expect_eq(shell(&f, "$tool convert --map pytorch --model zzzzqq"), 3);
    expect_text(r.err, "unknown model zzzzqq");
}

Test(standard, weights)
{
    scoped(folder_remove) folder f = small_data();
    put_sample(&f, "gray.png", "gray.png");
    expect_success(&f,
                   "$tool train --data . --model lenet5 --epochs 1 --out w.safetensors >/dev/null");
    expect_success(&f, "$tool eval --data . --weights w.safetensors >file && "
                       "$tool eval --data . --weights - <w.safetensors >in && cmp file in");
    expect_success(&f, "$tool predict --weights w.safetensors gray.png >file && "
                       "$tool predict --weights - gray.png <w.safetensors >in && cmp file in");
    expect_success(
        &f, "$tool convert w.safetensors theirs.safetensors --map pytorch --to-theirs && "
            "$tool convert --map pytorch --model lenet5 >map && "
            "$tool predict --weights theirs.safetensors --model lenet5 --map map gray.png >file && "
            "$tool predict --weights theirs.safetensors --model lenet5 --map - gray.png <map >in "
            "&& cmp file in");
    expect_success(&f, "$tool train --data . --model lenet5 --epochs 1 --weights w.safetensors "
                       "--out file.safetensors && $tool train --data . --model lenet5 --epochs 1 "
                       "--weights - --out in.safetensors <w.safetensors && "
                       "cmp file.safetensors in.safetensors");
    expect_text(r.out, "states loaded from standard input, ");
    cr_expect_eq(shell(&f, "head -c 500 w.safetensors | $tool predict --weights - gray.png"), 1);
    expect_text(r.err, "standard input: ");
    cr_expect_eq(shell(&f, "$tool predict --weights - - <w.safetensors"), 3);
    expect_text(r.err, "standard input can be given once (got - 2 times)");
    cr_expect_eq(shell(&f, "$tool predict --weights w.safetensors - - <gray.png"), 3);
    cr_expect_eq(shell(&f, "$tool eval --data . --weights - --map - <w.safetensors"), 3);
    expect_text(r.err, "--weights and --map cannot both be standard input");
    cr_expect_eq(shell(&f, "$tool train --data . --weights - --map - <w.safetensors"), 3);
}
