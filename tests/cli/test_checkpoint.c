/* test_checkpoint.c - a killed or stopped and resumed run equals an uninterrupted one: the same
 * losses and the same bits of weights; and checkpoint files are validated. */
#include <criterion/criterion.h>
#include <poll.h>
#include <sys/inotify.h>

#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "tests/plan.h"

enum { TEXT = 1 << 20 };

/* Cuts a line of the log behind its losses; 0: it is no epoch's. */
static int cut_epoch(char *line)
{
    char *times = strstr(line, ",\"images_per_second\"");
    if (times != NULL)
        *times = '\0';
    return times != NULL;
}

/* Every epoch that either log has is in the other with the same losses. */
static void expect_same_losses(const char *left, const char *right)
{
    static char a[TEXT], b[TEXT];
    const char *const from[] = {left, right}, *const to[] = {right, left};

    for (int way = 0; way < 2; way++) {
        int n = 0;
        get_file(from[way], a, sizeof a);
        get_file(to[way], b, sizeof b);
        for (char *rest, *line = strtok_r(a, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest))
            if (cut_epoch(line)) {
                cr_expect_not_null(strstr(b, line), "%s: not in %s: %s", from[way], to[way], line);
                n++;
            }
        cr_expect_gt(n, 0);
    }
}

/* Images drawn up to the checkpoint; -1: there is none. A torn file ends the test. */
static long progress(void)
{
    if (access("checkpoint", F_OK) != 0)
        return -1;
    return strtol(entry_of("checkpoint", "images_drawn"), NULL, 10);
}

#define TRAIN "train --data . --threads 1 "
#define RESUME TRAIN "--resume --checkpoint checkpoint "
#define MODEL                                                                                      \
    TRAIN                                                                                          \
    "--model lenet5 --optimizer adam --batch 16 --lr 0.002 --schedule warmup=0 "

/* A run and what it does in its folder. */
typedef struct {
    child c;
    int changes, output; /* inotify's descriptor; the pipe of its output, which ends with it */
} watched;

static watched start(const char *line)
{
    int ends[2];
    watched r = {.changes = inotify_init1(IN_CLOEXEC)};
    cr_assert_geq(inotify_add_watch(r.changes, ".", IN_CREATE | IN_MODIFY | IN_MOVED_TO), 0);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    r.c = child_start(split(line), ends[1]);
    r.output = ends[0];
    close(ends[1]);
    return r;
}

/* Waits until files were made, written or renamed. Returns how often, or 0 if the run has ended. */
static int wait_for_changes(const watched *r)
{
    _Alignas(struct inotify_event) char events[4096];
    char printed[4096];
    struct pollfd p[] = {{r->output, POLLIN, 0}, {r->changes, POLLIN, 0}};
    while (poll(p, 2, -1) > 0 && p[1].revents == 0)
        if (read(r->output, printed, sizeof printed) <= 0)
            return 0;
    int n = 0;
    const ssize_t bytes = read(r->changes, events, sizeof events);
    for (ssize_t i = 0; i < bytes; n++)
        i += (ssize_t)(sizeof(struct inotify_event) + ((struct inotify_event *)(events + i))->len);
    return n;
}

static void stop(watched *r, int number)
{
    kill(r->c.pid, number);
    child_finish(&r->c);
    close(r->changes);
    close(r->output);
}

/* Starts a run and waits for its first new checkpoint. */
static watched start_to_checkpoint(const char *line)
{
    const long before = progress();
    watched r = start(line);
    while (progress() <= before && wait_for_changes(&r) > 0)
        continue;
    return r;
}

static void set_up(void)
{
    plan_as_usual();
    enter_small_data();
}

TestSuite(checkpoint, .init = set_up, .fini = leave);

Test(checkpoint, killed_again_and_again)
{
    static const char again[] = RESUME "--log log --checkpoint-every 1";
    const int kills = repeats(20), epochs = kills + kills / 5;
    char first[300];
    snprintf(first, sizeof first,
             MODEL "--epochs %d --checkpoint checkpoint --log log --checkpoint-every 1", epochs);
    tool(0, MODEL "--epochs %d --log log0 --out out0.safetensors", epochs);

    unsigned random = 1;
    long before = -1;
    int moved = 0;
    for (int i = 0; i < kills; i++) {
        watched run = i == 0       ? start_to_checkpoint(first)
                      : i % 4 == 0 ? start_to_checkpoint(again)
                                   : start(again);
        random = random * 1103515245 + 12345;
        for (int left = (int)(random >> 16) % 60, n = 1; left > 0 && n > 0; left -= n)
            n = wait_for_changes(&run);
        stop(&run, SIGKILL);
        cr_assert(ran.status == 128 + SIGKILL || ran.status == 0, "%d: %s", ran.status, ran.err);
        const long now = progress();
        cr_assert_geq(now, before);
        moved += now > before;
        before = now;
    }
    cr_log_info("%d of %d runs came to a new checkpoint; %d files were left half written", moved,
                kills, files_in(&here) - 8 - (access("checkpoint.lock", F_OK) == 0));
    cr_expect_leq(files_in(&here), 10, "more than one file was left half written, and the lock");
    put_file("checkpoint.partial", "left behind", 11);
    cr_expect_geq(4 * moved, kills, "only %d of %d runs came to a checkpoint", moved, kills);
    tool(0, RESUME "--log log --out out.safetensors");
    expect_same_tensors("out0.safetensors", "out.safetensors");
    expect_same_losses("log0", "log");
    cr_expect(progress() == before || files_in(&here) == 9, "%d files are left", files_in(&here));
}

#define CHANGED                                                                                    \
    MODEL "--augment flip,cutout=6,jitter=0.25,mixup=0.5 --class-weights 1,1,2,1,1,3,1,1,1,0.5 "   \
          "--epochs patience=90 "

/* Ctrl-C in the middle of an epoch, twice, then to the end, with all that changes the images. */
static void stop_and_resume(const char *settings)
{
    static const char again[] = RESUME "--log log --out out.safetensors";
    char line[600];
    tool(0, CHANGED "%s --log log0 --out out0.safetensors", settings);
    snprintf(line, sizeof line, CHANGED "%s --log log --checkpoint checkpoint", settings);
    for (int i = 0; i < 2; i++) {
        watched run = start_to_checkpoint(i == 0 ? line : again);
        stop(&run, SIGINT);
        cr_expect_eq(ran.status, 130, "%d: %s", ran.status, ran.err);
    }
    prints(0, "resumed after epoch", RESUME "--log log --out out.safetensors");
    expect_same_tensors("out0.safetensors", "out.safetensors");
    expect_same_losses("log0", "log");
}

Test(checkpoint, stopped_naive) { stop_and_resume("--backend naive --precision f32 --epochs 3"); }
Test(checkpoint, stopped) { stop_and_resume("--backend onednn --precision f32 --epochs 15"); }
Test(checkpoint, stopped_f16) { stop_and_resume("--backend onednn --precision f16 --epochs 15"); }

/* ---- files that are no checkpoints of this run ---- */

enum { MAX_ENTRIES = 100 };

/* The file again, with another value for the key; NULL: without it. */
static void put_changed(const adj_tensors *from, const char *path, const char *key,
                        const char *value)
{
    adj_metadata entry[MAX_ENTRIES];
    int n = 0, found = 0;

    cr_assert_leq(from->n_metadata, MAX_ENTRIES);
    for (int i = 0; i < from->n_metadata; i++) {
        entry[n] = from->metadata[i];
        if (strcmp(entry[n].key, key) == 0) {
            entry[n].value = value;
            found = 1;
        }
        n += entry[n].value != NULL;
    }
    cr_assert(found, "%s", key);
    cr_assert_eq(adj_tensors_write(path, from->n, from->tensor, n, entry, NULL), ADJ_OK);
}

static const struct {
    const char *key, *value, *words;
} changes[] = {
    {"checkpoint", NULL, "is not a checkpoint of this version"},
    {"checkpoint", "adjoint 1", "is not a checkpoint of this version"},
    {"model", NULL,
     "is not a checkpoint: entry model is missing (use --weights to start from weights)"},
    {"model", "lenet", "entry height differs (got 28, expected 32)"},
    {"model", "xyzzy", "unknown model xyzzy"},
    {"model", "\033[2J", "entry model is invalid (got "},
    {"model", "", "entry model is invalid (got "},
    {"optimizer", "momentum", "entry kind differs (got sgd, expected adam)"},
    {"optimizer", "no", "unknown optimizer no"},
    {"backend", "nvidia", "nvidia"},
    {"precision", "bf17", "expected f32, bf16 or f16"},
    {"math", "wild", "expected exact or fast"},
    {"epochs", "0", "entry epochs is invalid (got "},
    {"epochs", "100001", "entry epochs is invalid (got "},
    {"batch", "9223372036854775807", "entry batch is invalid (got "},
    {"batch", "99999999999999999999", "entry batch is invalid (got "},
    {"batch", "-4", "entry batch is invalid (got "},
    {"batch", "4x", "entry batch is invalid (got "},
    {"batch", "7", "its count of images does not match"},
    {"lr", "nan", "entry lr is invalid (got "},
    {"lr", "-0x1p+2", "entry lr is invalid (got "},
    {"train.schedule", "cosin", "expected constant, step, exponential or cosine"},
    {"train.warmup", "-0x1p+0", "entry schedule warmup is invalid (got "},
    {"train.weight-decay", "0x1p+1", "entry optimizer weight-decay is invalid (got "},
    {"train.clip", "inf", "entry optimizer clip is invalid (got "},
    {"train.smoothing", "0x1p+0", "entry smoothing is invalid (got "},
    {"train.class-weights", NULL, "entry class-weights is missing"},
    {"train.class-weights", "balanced", "entry weighting differs"},
    {"train.class-weights", "1,2", "a number for each of 10 classes (got 2)"},
    {"train.patience", "-1", "entry patience is invalid (got "},
    {"sync_batch_norm", "2", "entry parallel sync-batch-norm is invalid (got "},
    {"flip", "2", "entry augment flip is invalid (got "},
    {"cutout", "32769", "entry augment cutout is invalid (got "},
    {"jitter", "inf", "entry augment jitter is invalid (got "},
    {"mixup", "0x1p-20", "expected 0, or an alpha of 0.001"},
    {"loss_scale", NULL, "entry loss-scale is missing"},
    {"loss_scale", "-0x1p+0", "entry loss-scale is invalid (got "},
    {"loss_scale", "0x1p+9", "loss_scale (got 512) requires precision f16"},
    {"loss_scale_follows", NULL, "entry loss_scale_follows is missing"},
    {"loss_scale_follows", "1", "entry loss_scale_follows differs (got 0, expected 1)"},
    {"loss_scale_growth", "nan", "entry loss_scale_growth is invalid (got nan"},
    {"loss_scale_interval", "-1", "entry loss-scale-interval is invalid (got "},
    {"loss_scale_interval", "9", "entry loss_scale_follows differs (got 1, expected 0)"},
    {"warmup", "-1", "entry warmup is invalid (got "},
    {"period", NULL, "entry period is missing"},
    {"shift", "9", "entry augment shift is invalid (got "},
    {"seed", "4", "its order of images cannot be reproduced"},
    {"threads", "1000000", "entry threads is invalid (got "},
    {"epoch", "3", "entry epoch is invalid (got 3, expected a whole number, 0 to 2)"},
    {"epoch", "-1", "entry epoch is invalid (got -1, expected a whole number, 0 to 2)"},
    {"epoch", NULL, "entry epoch is missing"},
    {"step", "7", "entry step is invalid (got 7, expected a whole number, 0 to 6)"},
    {"step", "1", "its count of images does not match"},
    {"loss_sum", "inf", "entry loss_sum is invalid (got inf, expected a finite number)"},
    {"right", "91", "entry right is invalid (got 91, expected a whole number, 0 to 90)"},
    {"right", "5", "its counts are inconsistent"},
    {"images", "16", "its counts are inconsistent"},
    {"best_epoch", "3", "entry best_epoch is invalid (got 3, expected a whole number, 0 to 2)"},
    {"begun", "3", "its counts are inconsistent"},
    {"begun", NULL, "entry begun is missing"},
    {"beta1", "2", "entry beta1 is invalid (got 2, expected a number, 0 to 1)"},
    {"schedule", "linear",
     "entry schedule is invalid (got linear, expected constant, step, exponential or cosine)"},
    {"best_accuracy", "1.5", "entry best_accuracy is invalid (got 1.5, expected a number, 0 to 1)"},
    {"data", "0123456789abcdef", "trained on other data"},
    {"order", "0123456789abcdef", "its order of images"},
    {"images_drawn", "1", "its count of images"},
};

static const char *const others[] = {"--model lenet",
                                     "--optimizer sgd",
                                     "--epochs 1",
                                     "--batch 15",
                                     "--seed 2",
                                     "--augment shift=1",
                                     "--lr 0.1",
                                     "--backend naive",
                                     "--schedule constant",
                                     "--schedule warmup=0.25",
                                     "--optimizer weight-decay=1",
                                     "--optimizer clip=1.5",
                                     "--smoothing 0.5",
                                     "--augment flip",
                                     "--augment cutout=3",
                                     "--augment jitter=0.5",
                                     "--augment mixup=1",
                                     "--class-weights balanced",
                                     "--parallel sync-batch-norm"};

/* --resume from the file, with this option, fails with a sentence. */
static void expect_refused(const char *path, const char *option, const char *expected)
{
    tool(ANY_STATUS, TRAIN "--resume --checkpoint %s %s", path, option);
    cr_expect(ran.status == 1 || ran.status == 3, "%s: status %d", expected, ran.status);
    expect_text(ran.err, expected);
    if (strncmp(expected, "entry ", 6) == 0)
        expect_text(ran.err, "--resume: bad: ");
    cr_expect_eq(strncmp(ran.err, "adjoint train: ", 15), 0);
    cr_expect_null(strchr(ran.err, '\033'));
}

Test(checkpoint, distrusted)
{
    tool(0, TRAIN "--model lenet5 --optimizer adam --epochs 2 --batch 16 --checkpoint checkpoint");

    scoped(release_tensors) adj_tensors *t = tensors_of("checkpoint");
    expect_refused("none", "", "No such file");
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        put_changed(t, "bad", changes[i].key, changes[i].value);
        expect_refused("bad", "", changes[i].words);
    }
    put_changed(t, "bad", "threads", "0"); /* as it was written once */
    complains(0, "does not record its number of threads", TRAIN "--resume --checkpoint bad");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        expect_refused("checkpoint", others[i], "differs from the checkpoint");

    static char bytes[TEXT];
    size_t n = get_file("checkpoint", bytes, sizeof bytes);
    for (size_t cut = 0; cut < n; cut += 1 + n / 12) {
        put_file("bad", bytes, cut);
        expect_refused("bad", "", cut > 0 ? "offset" : "an empty file");
    }
    put_images(&here, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", ADJ_TRAIN, 89);
    expect_refused("checkpoint", "", "trained on other data\n");
    complains(1,
              "it was trained on other data (--data is missing; its default "
              "is the embedded digits)\n",
              "train --resume --checkpoint checkpoint");
}

Test(checkpoint, replacing_one_is_noted) { expect_rows("replacing one is noted"); }
