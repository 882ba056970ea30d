/* test_output.c - what the tool prints: an output that cannot be written is a failure of every
 * command, and nothing from a file or a command line acts on the terminal. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "cli/child.h"
#include "cli/small_data.h"

static finished f;

enum { CLOSED = 1000 }; /* no file: it cannot take the place of the output */

/* Runs the tool with an output to which nothing can be written: a full device, or none at all. */
static void run_without_output(const char *const words[], int closed)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    cr_assert_geq(full, 0);
    fcntl(STDOUT_FILENO, F_SETFD, FD_CLOEXEC);
    child c = child_start(words, closed ? CLOSED : full);
    child_finish(&c, &f);
    close(full);
}

#define DATA "(data)" /* stands for the folder */
#define WEIGHTS "(weights)"
#define OUT "(out)"

static const struct {
    int status; /* of the command itself: 0 becomes 1 */
    const char *words[16];
} calls[] = {
    {0, {"--help"}},
    {0, {"-h"}},
    {0, {"help"}},
    {0, {"--version"}},
    {0, {"models"}},
    {0, {"models", "--help"}},
    {0, {"train", "--help"}},
    {0,
     {"train", "--model", "lenet5", "--data", DATA, "--backend", "naive", "--epochs", "1", "--out",
      WEIGHTS}},
    {0, {"eval", "--weights", WEIGHTS, "--data", DATA, "--backend", "naive"}},
    {0, {"gradcheck", "--op", "relu", "--in", "2,3,3,4"}},
    {0, {"gradcheck", "--op", "relu", "--in", "2,3,3,4", "--json", "-"}},
    {0, {"gradcheck", "--op", "relu", "--in", "2,3,3,4", "--junit", "-"}},
    {0, {"compare", "--op", "relu", "--in", "1,2,2,2", "--runs", "1"}},
    {0, {"compare", "--op", "relu", "--in", "1,2,2,2", "--runs", "1", "--json", "-"}},
    {0, {"compare", "--op", "relu", "--in", "1,2,2,2", "--runs", "1", "--csv", "-"}},
    {0, {"compare", "--op", "relu", "--in", "1,2,2,2", "--runs", "1", "--html", "-"}},
    {0, {"bench", "--op", "relu", "--in", "1,2,2,2", "--seconds", "0.01"}},
    {0, {"bench", "--op", "relu", "--in", "1,2,2,2", "--seconds", "0.01", "--json"}},
    {0, {"bench", "--model", "lenet5", "--batch", "1", "--seconds", "0.01", "--profile"}},
    {0, {"bench", "--model", "lenet5", "--batch", "1", "--seconds", "0.01", "--json"}},
    {0, {"selftest", "--cases", "1", "--kernel", "1", "--size", "15", "--out", OUT}},
    {2, {"gradcheck", "--model", "lenet", "--node", "0"}},
    {3, {"train", "--epochs", "0"}},
    {3, {"tran"}},
};

Test(output, that_cannot_be_written_is_a_failure)
{
    folder dir = small_data();
    const file_name weights = in_folder(&dir, "weights.safetensors"), out = in_folder(&dir, "out");
    for (size_t i = 0; i < 2 * sizeof calls / sizeof calls[0]; i++) {
        const char *words[ARGUMENTS] = {NULL};
        for (int k = 0; calls[i / 2].words[k] != NULL; k++) {
            const char *word = calls[i / 2].words[k];
            words[k] = strcmp(word, DATA) == 0      ? dir.path
                       : strcmp(word, WEIGHTS) == 0 ? weights.s
                       : strcmp(word, OUT) == 0     ? out.s
                                                    : word;
        }
        run_without_output(words, i % 2 != 0);
        int status = calls[i / 2].status;
        cr_expect_eq(f.status, status == 0 ? 1 : status, "%s %s: %d %s", words[0], words[1],
                     f.status, f.err);
        if (status == 0)
            cr_expect_not_null(strstr(f.err, "standard output cannot be written"), "%s %s: %s",
                               words[0], words[1], f.err);
        unlink(out.s);
    }
    folder_remove(&dir);
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
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "file");
    const char *words[] = {"eval", "--weights", file.s, "--backend", "naive", NULL};
    put_tensor(file.s,
               "\"__metadata__\":{\"model\":\"\\u001b[2J\\nlenet \\u009b2J \\u202e\\u2028\"},",
               "w");
    run_harmlessly(
        words, 1,
        "is of a model \\x1b[2J\\x0alenet \\xc2\\x9b2J \\xe2\\x80\\xae\\xe2\\x80\\xa8 that");
    put_tensor(file.s, "", "\\u0007a \\u009b2J \\u202e");
    run_harmlessly(words, 1, "");
    const char *resume[] = {"train", "--checkpoint", file.s, "--resume", NULL};
    put_tensor(file.s, "\"__metadata__\":{\"checkpoint\":\"adjoint 2\",\"model\":\"\\u009b2J\"},",
               "w");
    run_harmlessly(resume, 1, "");
    folder_remove(&dir);
}

Test(output, paths)
{
    static const char nowhere[] = "/nowhere/" WILD;
    run_harmlessly((const char *[]){"eval", "--weights", nowhere, NULL}, 1,
                   " \\xc2\\x9b2J \\xe2\\x80\\xae: ");
    run_harmlessly((const char *[]){"train", "--data", nowhere, NULL}, 1, "No such file");
    run_harmlessly((const char *[]){"train", "--out", nowhere, NULL}, 1, "No such file");
    run_harmlessly((const char *[]){"train", "--" WILD, NULL}, 3, "unknown option --\\x1b");
    run_harmlessly((const char *[]){WILD, NULL}, 3, "unknown command");
    run_harmlessly((const char *[]){"gradcheck", "--op", "relu", "--in", "1,1,1,2", "--quarantine",
                                    nowhere, NULL},
                   1, "quarantine file");
    run_harmlessly((const char *[]){"compare", "--op", "relu", "--in", "1,1,1,2", "--quarantine",
                                    nowhere, NULL},
                   1, "quarantine file");
    folder dir = small_data();
    char wild[300];
    snprintf(wild, sizeof wild, "%s/" WILD "\n", dir.path);
    cr_assert_eq(symlink(dir.path, wild), 0);
    run_harmlessly((const char *[]){"train", "--model", "lenet5", "--data", wild, "--backend",
                                    "naive", "--epochs", "1", NULL},
                   0, "\\xe2\\x80\\xae\\x0a: train 90 images in 10 classes");
    folder_remove(&dir);
}

/* What is taken without timing: whatever plans all tests are run with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }

/* The reason of a row, which a table shows where an implementation is left out. */
Test(output, reasons_of_a_quarantine_file, .init = plan_as_usual)
{
    folder dir = folder_new();
    const file_name file = in_folder(&dir, "file");
    const char *words[] = {"compare",          "--op",      "conv2d", "--in", "1,8,8,16",
                           "--filter",         "3,3,16,16", "--runs", "1",    "--configs",
                           "naive:f64,onednn", "--csv",     "-",      NULL};
    static const char row[] = "* * forward f32 * kh=1.. because of " C1 "\n";
    put_file(file.s, row, sizeof row - 1);
    setenv("ADJOINT_QUARANTINE", file.s, 1);
    run_harmlessly(words, 0, "because of \\xc2\\x9b2J \\xe2\\x80\\xae");
    folder_remove(&dir);
}
