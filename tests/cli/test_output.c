/* test_output.c - what the tool prints: an output that cannot be written is a failure of every
 * command. */
#include <criterion/criterion.h>
#include <fcntl.h>

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
    const file_name weights = in_folder(&dir, "weights"), out = in_folder(&dir, "out");
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
