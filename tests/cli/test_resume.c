/* test_resume.c - resuming: files after a stop, a full disk or damage on the disk, and resuming in
 * another place. Finished runs that are extended with more --epochs: learning rates, for any split
 * of the epochs among processes. */
#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "cli/process.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

#define ADAM "--data . --model lenet5 --optimizer adam --batch 16 --lr 0.002"
#define TRAIN "train " ADAM " --checkpoint checkpoint "
#define RESUME "train --data . --resume --checkpoint checkpoint "

TestSuite(resume, .init = enter_small_data, .fini = leave);
TestSuite(prolong, .init = enter_small_data, .fini = leave);

/* A hundred bits, of every part of the file: refused with a sentence, or the same weights. */
Test(resume, a_hundred_flipped_bits)
{
    static uint8_t bytes[1 << 20];
    tool(0, TRAIN "--threads 1 --epochs 1 --out out.safetensors");
    size_t n = get_file("checkpoint", bytes, sizeof bytes);
    const size_t header = 8 + bytes[0] + 256U * bytes[1];
    const struct {
        size_t from, to;
        int bits;
    } parts[] = {{0, 8, 8}, {8, header, 46}, {header, n, 46}};
    int refused = 0, bits = 0;
    for (size_t i = 0; i < 3; i++)
        for (int k = 0; k < parts[i].bits; k++, bits++) {
            size_t of = 8 * (parts[i].to - parts[i].from),
                   bit = 8 * parts[i].from + of * (size_t)k / (size_t)parts[i].bits +
                         (size_t)(5 * k % 8);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            put_file("bad", bytes, n);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            tool(ANY_STATUS, "train --data . --resume --checkpoint bad --out again.safetensors");
            cr_expect(ran.status == 0 || ran.status == 1, "bit %zu: status %d", bit, ran.status);
            refused += ran.status == 1;
            if (ran.status == 0)
                cr_expect(same_file("out.safetensors", "again.safetensors"),
                          "bit %zu gives other weights", bit);
            else
                cr_expect_eq(strncmp(ran.err, "adjoint train: --resume: ", 25), 0, "%s", ran.err);
        }
    cr_expect_eq(bits, 100);
    cr_expect_geq(refused, 90, "%d", refused);
}

/* Waits until a new checkpoint has taken the name or the child has ended. */
static void wait_for_replacement(const child *c)
{
    struct stat before, now;
    cr_assert_eq(stat("checkpoint", &before), 0);
    while (stat("checkpoint", &now) == 0 && now.st_ino == before.st_ino && !has_ended(c))
        pause_ms(2);
}

/* Starts a long run and stops it after its first checkpoint. */
static void stop_a_long_run(int number)
{
    unlink("checkpoint");
    child c = tool_start(TRAIN "--epochs 100000 --threads 1 --out out.safetensors");
    wait_for_file(&c, "checkpoint", 1);
    stop_child(&c, number);
}

Test(resume, signals)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    for (int i = 0; i < 3; i++) {
        unlink("out.safetensors");
        stop_a_long_run(signals[i]);
        expect_text(ran.out, "stopped after a step");
        cr_expect_str_eq(entry_of("checkpoint", "model"), "lenet5");
        cr_expect_eq(access("out.safetensors", F_OK), 0, "no weights");
    }
}

/* A long run looks for the fastest kernels first; later ones find them - at once, unless time was
 * short for some on a busy machine - a short one and one without a cache go without. */
Test(resume, kernels_are_timed_once_and_kept)
{
    static const char found[] = "benchmarked kernels in ";
    scoped(folder_remove) folder home = folder_new();
    folder cache;
    snprintf(cache.path, sizeof cache.path, "%.50s/adjoint", home.path);
    setenv("ADJOINT_TUNE", "", 1);
    setenv("XDG_CACHE_HOME", home.path, 1);
    unsetenv("ADJOINT_PLAN");
    int is_timed = 1;
    for (int run = 0; run < 8 && is_timed; run++) {
        stop_a_long_run(SIGTERM);
        is_timed = strstr(ran.out, found) != NULL;
        cr_expect_eq(files_in(&cache), 1); /* on a busy machine the speed alone, in the first run */
    }
    cr_expect(!is_timed, "kernels are timed in every run: %s", ran.out);
    setenv("ADJOINT_TUNE", "off", 1);
    stop_a_long_run(SIGTERM);
    cr_expect_null(entry_of("checkpoint", "selection"));

    setenv("ADJOINT_TUNE", "", 1);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    stop_a_long_run(SIGTERM);
    expect_text(ran.err, "cannot be written");
    cr_expect_null(strstr(ran.out, "kept"), "%s", ran.out);
    tool(0, "train " ADAM " --epochs 1");
    cr_expect_str_empty(ran.err);
    cr_expect_null(strstr(ran.out, found), "%s", ran.out);
}

Test(resume, nohup_is_respected)
{
    signal(SIGHUP, SIG_IGN);
    child c = tool_start(TRAIN "--epochs 100000");
    wait_for_file(&c, "checkpoint", 1);
    kill(c.pid, SIGHUP);
    for (int i = 0; i < 2; i++) /* the second is of an epoch that began after the signal */
        wait_for_replacement(&c);
    stop_child(&c, SIGTERM);
}

/* Two threads by default, then one core alone: the checkpoint's two are used, with a note. */
Test(resume, elsewhere_with_the_same_threads)
{
    cpu_set_t all, one;
    setenv("OMP_NUM_THREADS", "2", 1);
    tool(0, "train " ADAM " --epochs 10 --out out0.safetensors");
    child c = tool_start(TRAIN "--epochs 10");
    wait_for_file(&c, "checkpoint", 1);
    kill(c.pid, SIGINT);
    child_finish(&c);
    cr_expect_str_eq(entry_of("checkpoint", "threads"), "2");

    unsetenv("OMP_NUM_THREADS");
    CPU_ZERO(&one);
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    complains(0, "2 threads, as in the checkpoint, on 1 processor\n",
              RESUME "--out out.safetensors");
    cr_expect(same_file("out0.safetensors", "out.safetensors"),
              "other weights than without a stop");

    complains(0, "--threads differs from the checkpoint (got 1, expected 2)", RESUME "--threads 1");
}

/* A checkpoint with a pattern that has spaces and UTF-8 is resumed. */
Test(resume, patterns_with_spaces) { expect_rows("patterns with spaces"); }

/* The checkpoint with adam's state is three times as long as the weights, and does not fit. */
Test(resume, disk_full) { expect_rows("disk full"); }

/* A full disk left half a line of the log: the next run's begin on a line of their own. */
Test(resume, half_a_line_of_the_log) { expect_rows("half a line of the log"); }

/* ---- finished runs that are extended; 90 images in batches of 16 are 6 steps an epoch ---- */

#define MODEL "--model lenet5 --batch 16 --lr 0.008 --schedule "

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
}

/* Goes on with a checkpoint to more epochs. */
static json_t *prolong(const char *checkpoint, const char *epochs)
{
    return train_log(0, "--resume --checkpoint %s --epochs %s", checkpoint, epochs);
}

/* Runs of three epochs that are prolonged to five at once, and by one and one: the rates of epochs
 * 4 and 5 at once, and the same weights. */
static void expect_prolonged(const char *schedule, const double first[3], const double more[2])
{
    expect_rates(train_log(0, MODEL "%s --epochs 3 --checkpoint a", schedule), 1, 3, first);
    cr_assert_eq(shell("cp a b"), 0);
    expect_rates(prolong("a", "5 --out at-once.safetensors"), 4, 2, more);
    prolong("b", "4");
    prolong("b", "5 --out by-one.safetensors");
    cr_expect(same_file("at-once.safetensors", "by-one.safetensors"));
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
    train_log(0, MODEL "step,warmup=0 --epochs 3 --checkpoint a");
    expect_rates(prolong("a", "4 --lr 0.8"), 4, 1, (double[]){0.0008});
}

/* A warm-up that was longer than the run was cut to it, and is as long when the rate begins anew.
 */
Test(prolong, warmup)
{
    expect_rates(train_log(0, MODEL "constant,warmup=9 --epochs 1 --checkpoint a"), 1, 1,
                 (double[]){0.008});
    expect_rates(prolong("a", "3"), 2, 2, (double[]){0.008, 0.008});
}

/* Two epochs, then two more, of which the last is done by a third process: a cosine begins anew
 * with them, and where a process ended is not seen. */
Test(prolong, cosine)
{
    const double factor[] = {(1 + cos(M_PI * 5 / 12)) / 2, (1 + cos(M_PI * 11 / 12)) / 2};
    expect_rates(train_log(0, MODEL "warmup=0 --epochs 2 --checkpoint checkpoint"), 1, 2,
                 (double[]){0.008 * factor[0], 0.008 * factor[1]});
    cr_assert_eq(shell("cp checkpoint first"), 0);
    expect_rates(prolong("first", "4 --lr 0.001 --out out0.safetensors"), 3, 2,
                 (double[]){0.001 * factor[0], 0.001 * factor[1]});

    child c = tool_start(RESUME "--threads 1 --epochs 4 --lr 0.001 --checkpoint-every 1");
    wait_for_replacement(&c);
    kill(c.pid, SIGINT);
    child_finish(&c);
    cr_expect(ran.status == 130 || ran.status == 0, "%d: %s", ran.status, ran.err);
    tool(0, RESUME "--threads 1 --out out.safetensors");
    cr_expect(same_file("out0.safetensors", "out.safetensors"));
}

/* Only what is done is prolonged, and by more epochs. */
Test(prolong, refused)
{
    tool(0, "train --data . --model lenet5 --threads 1 --lr 1e-12 --schedule constant --optimizer "
            "sgd,weight-decay=0 --epochs 4,patience=1 --checkpoint a");
    expect_rows("refused");
}
