/* test_resume.c - resuming: files after a stop, a full disk or damage on the disk, and resuming in
 * another place. Finished runs that are extended with more --epochs: learning rates, for any split
 * of the epochs among processes. */
#include <criterion/criterion.h>
#include <math.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

static finished r;

enum { MAX = 1 << 20 };

static void pause_ms(long ms) { nanosleep(&(struct timespec){0, ms * 1000000}, NULL); }

static size_t read_file(const char *path, uint8_t bytes[MAX])
{
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    size_t n = fread(bytes, 1, MAX, f);
    fclose(f);
    cr_assert_lt(n, MAX);
    return n;
}

/* Every file whole: the checkpoint that is there can be read. */
static void expect_checkpoint(const char *path, const char *key, const char *value)
{
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(path, &t), ADJ_OK, "%s", t->message);
    cr_expect_str_eq(adj_tensors_metadata(t, key), value);
}

#define WITH_ADAM "--model lenet5 --optimizer adam --batch 16 --lr 0.002"

/* A hundred bits, of every part of the file: refused with a sentence, or the same weights. */
Test(resume, a_hundred_flipped_bits)
{
    static uint8_t bytes[MAX];
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint"), out = in_folder(&f, "out.safetensors"),
                    bad = in_folder(&f, "bad"), again = in_folder(&f, "again.safetensors");
    tool(&r, 0, "train --data %s " WITH_ADAM " --threads 1 --epochs 1 --checkpoint %s --out %s",
         f.path, file.s, out.s);
    size_t n = read_file(file.s, bytes), header = 8 + bytes[0] + 256U * bytes[1];
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
            put_file(bad.s, bytes, n);
            bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            tool(&r, ANY_STATUS, "train --data %s --resume --checkpoint %s --out %s", f.path, bad.s,
                 again.s);
            cr_expect(r.status == 0 || r.status == 1, "bit %zu: status %d", bit, r.status);
            refused += r.status == 1;
            if (r.status == 0)
                cr_expect(same_file(out.s, again.s), "bit %zu gives other weights", bit);
            else
                cr_expect_eq(strncmp(r.err, "adjoint train: --resume: ", 25), 0, "%s", r.err);
        }
    cr_expect_eq(bits, 100);
    cr_expect_geq(refused, 90, "%d", refused);
}

static int has_ended(const child *c)
{
    siginfo_t ended = {0};
    cr_assert_eq(waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    return ended.si_pid != 0;
}

/* Waits until the file is there or the child has ended. */
static void wait_for_file(const child *c, const char *path)
{
    while (access(path, F_OK) != 0 && !has_ended(c))
        pause_ms(2);
}

/* Waits until a new file has taken the name or the child has ended. */
static void wait_for_replacement(const child *c, const char *path)
{
    struct stat before, now;
    cr_assert_eq(stat(path, &before), 0);
    while (stat(path, &now) == 0 && now.st_ino == before.st_ino && !has_ended(c))
        pause_ms(2);
}

/* Waits until the first checkpoint is there, then sends the signal; the exit status. */
static int stop_by(int number, child c, const char *checkpoint, finished *r)
{
    wait_for_file(&c, checkpoint);
    kill(c.pid, number);
    child_finish(&c, r);
    return r->status;
}

Test(resume, signals)
{
    static const struct {
        int number, status;
    } signals[] = {{SIGHUP, 129}, {SIGINT, 130}, {SIGTERM, 143}};
    for (int i = 0; i < 3; i++) {
        scoped(folder_remove) folder f = small_data();
        const file_name file = in_folder(&f, "checkpoint"), out = in_folder(&f, "out.safetensors");
        int status = stop_by(signals[i].number,
                             tool_start("train --data %s " WITH_ADAM
                                        " --epochs 100000 --checkpoint %s --out %s",
                                        f.path, file.s, out.s),
                             file.s, &r);
        cr_expect_eq(status, signals[i].status, "%d: %s", status, r.err);
        expect_text(r.out, "stopped after a step");
        expect_checkpoint(file.s, "model", "lenet5");
        cr_expect_eq(access(out.s, F_OK), 0, "no weights");
    }
}

static child start_long(const folder *f, const file_name *checkpoint)
{
    return tool_start("train --data %s " WITH_ADAM " --epochs 100000 --checkpoint %s --threads 1",
                      f->path, checkpoint->s);
}

/* A long run looks for the fastest kernels first; later ones find them - at once, unless time was
 * short for some on a busy machine - a short one and one without a cache go without. */
Test(resume, kernels_are_timed_once_and_kept)
{
    static const char found[] = "benchmarked kernels in ";
    folder f = small_data(), home = folder_new(), cache;
    const file_name file = in_folder(&f, "checkpoint");
    snprintf(cache.path, sizeof cache.path, "%.50s/adjoint", home.path);
    setenv("ADJOINT_TUNE", "", 1);
    setenv("XDG_CACHE_HOME", home.path, 1);
    unsetenv("ADJOINT_PLAN");
    int is_timed = 1;
    for (int run = 0; run < 8 && is_timed; run++) {
        cr_assert_eq(stop_by(SIGTERM, start_long(&f, &file), file.s, &r), 143, "%s", r.err);
        is_timed = strstr(r.out, found) != NULL;
        cr_expect_eq(files_in(&cache), 1); /* on a busy machine the speed alone, in the first run */
        unlink(file.s);
    }
    cr_expect(!is_timed, "kernels are timed in every run: %s", r.out);
    setenv("ADJOINT_TUNE", "off", 1);
    cr_assert_eq(stop_by(SIGTERM, start_long(&f, &file), file.s, &r), 143, "%s", r.err);
    adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(file.s, &t), ADJ_OK);
    cr_expect_null(adj_tensors_metadata(t, "selection"));
    adj_tensors_free(t);

    setenv("ADJOINT_TUNE", "", 1);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    unlink(file.s);
    cr_assert_eq(stop_by(SIGTERM, start_long(&f, &file), file.s, &r), 143, "%s", r.err);
    expect_text(r.err, "cannot be written");
    cr_expect_null(strstr(r.out, "kept"), "%s", r.out);
    tool(&r, ANY_STATUS, "train --data %s " WITH_ADAM " --epochs 1", f.path);
    cr_expect(r.status == 0 && r.err[0] == '\0' && strstr(r.out, found) == NULL, "%s", r.err);
    folder_remove(&cache);
    folder_remove(&home);
    folder_remove(&f);
}

Test(resume, nohup_is_respected)
{
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint");
    signal(SIGHUP, SIG_IGN);
    child c =
        tool_start("train --data %s " WITH_ADAM " --epochs 100000 --checkpoint %s", f.path, file.s);
    wait_for_file(&c, file.s);
    kill(c.pid, SIGHUP);
    for (int i = 0; i < 2; i++) /* the second is of an epoch that began after the signal */
        wait_for_replacement(&c, file.s);
    kill(c.pid, SIGTERM);
    child_finish(&c, &r);
    cr_expect_eq(r.status, 143, "%d: %s", r.status, r.err);
}

/* Two threads by default, then one core alone: the checkpoint's two are used, with a note. */
Test(resume, elsewhere_with_the_same_threads)
{
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint"), out = in_folder(&f, "out.safetensors"),
                    out0 = in_folder(&f, "out0.safetensors");
    cpu_set_t all, one;
    setenv("OMP_NUM_THREADS", "2", 1);
    tool(&r, 0, "train --data %s " WITH_ADAM " --epochs 10 --out %s", f.path, out0.s);
    stop_by(SIGINT,
            tool_start("train --data %s " WITH_ADAM " --epochs 10 --checkpoint %s", f.path, file.s),
            file.s, &r);
    expect_checkpoint(file.s, "threads", "2");

    unsetenv("OMP_NUM_THREADS");
    CPU_ZERO(&one);
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    tool(&r, 0, "train --data %s --resume --checkpoint %s --out %s", f.path, file.s, out.s);
    expect_text(r.err, "2 threads, as in the checkpoint, on 1 processor\n");
    cr_expect(same_file(out0.s, out.s), "other weights than without a stop");

    tool(&r, 0, "train --data %s --resume --checkpoint %s --threads 1", f.path, file.s);
    expect_text(r.err, "--threads differs from the checkpoint (got 1, expected 2)");
}

/* A checkpoint with a pattern that has spaces and UTF-8 is resumed. */
Test(resume, patterns_with_spaces)
{
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint");
    tool(&r, 0, "train --data %s " WITH_ADAM " --epochs 1 --freeze %s --checkpoint %s", f.path,
         "conv1/*, conv\xc3\xa9", file.s);
    tool(&r, 0, "train --data %s --resume --checkpoint %s", f.path, file.s);
}

/* The checkpoint with adam's state is three times as long as the weights, and does not fit. */
Test(resume, disk_full)
{
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint"), out = in_folder(&f, "out.safetensors");
    tool(&r, 0, "train --data %s " WITH_ADAM " --epochs 1 --checkpoint %s", f.path, file.s);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){400000, RLIM_INFINITY});
    tool(&r, 1, "train --data %s " WITH_ADAM " --epochs 3 --checkpoint %s --out %s", f.path, file.s,
         out.s);
    expect_text(r.err, "--checkpoint: ");
    expect_text(r.err, "File too large");
    expect_text(r.out, "weights written to ");
    expect_checkpoint(out.s, "model", "lenet5");
    expect_checkpoint(file.s, "epoch", "1"); /* the old one */
    cr_expect_eq(files_in(&f), 6);
}

/* A full disk left half a line of the log: the next run's begin on a line of their own. */
Test(resume, half_a_line_of_the_log)
{
    static uint8_t text[MAX];
    static const char half[] = "{\"event\":\"epoch\",\"ep";
    scoped(folder_remove) folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint"), log = in_folder(&f, "log");
    tool(&r, 0, "train --data %s " WITH_ADAM " --epochs 1 --checkpoint %s", f.path, file.s);
    put_file(log.s, half, strlen(half));
    for (int i = 0; i < 2; i++)
        tool(&r, 0, "train --data %s --resume --checkpoint %s --log %s", f.path, file.s, log.s);
    text[read_file(log.s, text)] = '\0';
    cr_expect_eq(strncmp((char *)text, half, strlen(half)), 0);
    cr_expect_eq(strncmp((char *)text + strlen(half), "\n{\"event\":\"start\"", 17), 0, "%s", text);
    cr_expect_null(strstr((char *)text, "\n\n"), "%s", text);
}

/* ---- finished runs that are extended; 90 images in batches of 16 are 6 steps an epoch ---- */

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
