/* test_prolong.c - finished runs that are extended with more --epochs: learning rates, for any
 * split of the epochs among processes. 90 images in batches of 16 are 6 steps an epoch. */
#include <criterion/criterion.h>
#include <math.h>

#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

static finished r;

#define MODEL "--model", "lenet5", "--batch", "16", "--lr", "0.008", "--schedule"

/* The rate of the epoch's last step. */
static double rate_of(const json_t *log, int epoch)
{
    for (int i = 0; i < log_count(log, "epoch"); i++)
        if (log_event_number(log, "epoch", i, "epoch") == epoch)
            return log_event_number(log, "epoch", i, "lr");
    cr_assert_fail("no epoch %d", epoch);
    return 0;
}

/* To the digits that a log has. */
static void expect_rates(json_t *log, int first, int n, const double expected[])
{
    cr_expect_eq(log_count(log, "epoch"), n);
    for (int i = 0; i < n; i++)
        cr_expect_float_eq(rate_of(log, first + i), expected[i], 1e-5 * expected[i], "%d: %g",
                           first + i, rate_of(log, first + i));
    json_decref(log);
}

static void copy_file(const char *from, const char *to)
{
    char command[900];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
    cr_assert_eq(system(command), 0); // NOLINT(cert-env33-c): the test's own words
}

/* Runs of three epochs that are prolonged to five at once, and by one and one: the rates of epochs
 * 4 and 5 at once, and the same weights. */
static void expect_prolonged(const char *schedule, const double first[3], const double more[2])
{
    scoped(folder_remove) folder f = small_data();
    const file_name a = in_folder(&f, "a"), b = in_folder(&f, "b"),
                    at_once = in_folder(&f, "at once.safetensors"),
                    by_one = in_folder(&f, "by one.safetensors");
    expect_rates(train_to(&f, WORDS(MODEL, schedule, "--epochs", "3", "--checkpoint", a.s), NULL),
                 1, 3, first);
    copy_file(a.s, b.s);
    expect_rates(train_to(&f, WORDS("--resume", "--checkpoint", a.s, "--epochs", "5"), at_once.s),
                 4, 2, more);
    json_decref(train_to(&f, WORDS("--resume", "--checkpoint", b.s, "--epochs", "4"), NULL));
    json_decref(train_to(&f, WORDS("--resume", "--checkpoint", b.s, "--epochs", "5"), by_one.s));
    cr_expect(same_file(at_once.s, by_one.s));
}

/* A third of 18 steps is the period: a tenth after each epoch, in the added ones as well. */
Test(prolong, step)
{
    expect_prolonged("step,warmup=0", (double[]){0.008, 0.0008, 0.00008}, (double[]){8e-6, 8e-7});
}

/* 6 steps of warm-up, then a tenth in each 4: the last step of epoch e is step 6 e - 7 of these. */
Test(prolong, exponential)
{
    expect_prolonged("exponential,warmup=1",
                     (double[]){0.008, 0.008 * pow(10, -5.0 / 4), 0.008 * pow(10, -11.0 / 4)},
                     (double[]){0.008 * pow(10, -17.0 / 4), 0.008 * pow(10, -23.0 / 4)});
}

/* --lr is what the rate falls from. */
Test(prolong, from_another_rate)
{
    scoped(folder_remove) folder f = small_data();
    const file_name a = in_folder(&f, "a");
    json_decref(
        train_to(&f, WORDS(MODEL, "step,warmup=0", "--epochs", "3", "--checkpoint", a.s), NULL));
    expect_rates(
        train_to(&f, WORDS("--resume", "--checkpoint", a.s, "--epochs", "4", "--lr", "0.8"), NULL),
        4, 1, (double[]){0.0008});
}

/* A warm-up that was longer than the run was cut to it, and is as long when the rate begins anew.
 */
Test(prolong, warmup)
{
    scoped(folder_remove) folder f = small_data();
    const file_name a = in_folder(&f, "a");
    expect_rates(
        train_to(&f, WORDS(MODEL, "constant,warmup=9", "--epochs", "1", "--checkpoint", a.s), NULL),
        1, 1, (double[]){0.008});
    expect_rates(train_to(&f, WORDS("--resume", "--checkpoint", a.s, "--epochs", "3"), NULL), 2, 2,
                 (double[]){0.008, 0.008});
}

static void wait_for_change(const char *path, const char *before)
{
    while (same_file(path, before))
        usleep(2000);
}

/* Two epochs, then two more, of which the last is done by a third process: a cosine begins anew
 * with them, and where a process ended is not seen. */
Test(prolong, cosine)
{
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint"), first = in_folder(&f, "first"),
                    out = in_folder(&f, "out.safetensors"),
                    out0 = in_folder(&f, "out0.safetensors");
    expect_rates(
        train_to(&f, WORDS(MODEL, "warmup=0", "--epochs", "2", "--checkpoint", file.s), NULL), 1, 2,
        (double[]){0.008 * (1 + cos(M_PI * 5 / 12)) / 2, 0.008 * (1 + cos(M_PI * 11 / 12)) / 2});
    copy_file(file.s, first.s);
    expect_rates(
        train_to(&f, WORDS("--resume", "--checkpoint", first.s, "--epochs", "4", "--lr", "0.001"),
                 out0.s),
        3, 2,
        (double[]){0.001 * (1 + cos(M_PI * 5 / 12)) / 2, 0.001 * (1 + cos(M_PI * 11 / 12)) / 2});

    copy_file(file.s, first.s);
    child c =
        child_start(WORDS("train", "--data", f.path, "--threads", "1", "--resume", "--checkpoint",
                          file.s, "--epochs", "4", "--lr", "0.001", "--checkpoint-every", "1"),
                    -1);
    wait_for_change(file.s, first.s);
    kill(c.pid, SIGINT);
    child_finish(&c, &r);
    cr_expect(r.status == 130 || r.status == 0, "%d: %s", r.status, r.err);
    json_decref(train_to(&f, WORDS("--resume", "--checkpoint", file.s), out.s));
    cr_expect(same_file(out0.s, out.s));
}

/* Only what is done is prolonged, and by more epochs. */
Test(prolong, refused)
{
    scoped(folder_remove) folder f = small_data();
    const file_name a = in_folder(&f, "a");
    json_decref(train_to(&f,
                         WORDS("--model", "lenet5", "--lr", "1e-12", "--schedule", "constant",
                               "--optimizer", "sgd,weight-decay=0", "--epochs", "4,patience=1",
                               "--checkpoint", a.s),
                         NULL));
    json_decref(train_with(&f, WORDS("--resume", "--checkpoint", a.s, "--epochs", "5"), &r));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "only after its run is complete (2 of 4 epochs are done)");
    json_decref(train_with(&f, WORDS("--resume", "--checkpoint", a.s, "--epochs", "3"), &r));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "--epochs differs from the checkpoint (got 3, expected 4");
}
