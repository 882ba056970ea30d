/* test_train_out.c - files in the folder of --out. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/child.h"
#include "cli/small_data.h"
#include "io/tensors/formats.h"
#include "tests/plan.h"

static finished r;

static void train(const folder *f, const char *out, const char *const more[])
{
    const char *words[ARGUMENTS] = {"train",     "--data", f->path, "--model", "lenet5",
                                    "--threads", "1",      "--lr",  "0.02",    "--batch",
                                    "64",        "--out",  out};
    for (int i = 0; more[i] != NULL; i++)
        words[13 + i] = more[i];
    run_tool(words, &r);
}

static file_name within(const file_name *out, const char *name)
{
    folder f;
    snprintf(f.path, sizeof f.path, "%.*s", (int)sizeof f.path - 1, out->s);
    return in_folder(&f, name);
}

static char *read_text(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* Equal tensors; what the files say beside them may differ. */
static int same_tensors(const char *a, const char *b)
{
    adj_tensors *left = NULL, *right = NULL;
    cr_assert_eq(adj_tensors_read(a, &left), ADJ_OK, "%s", left->message);
    cr_assert_eq(adj_tensors_read(b, &right), ADJ_OK, "%s", right->message);
    int same = left->n == right->n;
    for (int i = 0; i < left->n && same; i++) {
        const adj_tensor x = left->tensor[i], y = right->tensor[i];
        const int64_t elems = adj_shape_elems(x.shape);
        same = strcmp(x.name, y.name) == 0 && x.elem == y.elem &&
               elems == adj_shape_elems(y.shape) &&
               memcmp(x.data, y.data, (size_t)elems * adj_elem_size(x.elem)) == 0;
    }
    adj_tensors_free(left);
    adj_tensors_free(right);
    return same;
}

/* How many whole lines that are objects; events[i]: of the i-th kind. */
enum { START, STEP, EPOCH, RESUME, END, KINDS };
static int count_events(const char *path, int events[KINDS])
{
    static const char *const names[KINDS] = {"start", "step", "epoch", "resume", "end"};
    static char line[4096];
    int n = 0;
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f);
    memset(events, 0, KINDS * sizeof *events);
    for (; fgets(line, sizeof line, f) != NULL; n++) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *event = json_string_value(json_object_get(object, "event"));
        cr_assert(strchr(line, '\n') != NULL && event != NULL, "%s", line);
        for (int k = 0; k < KINDS; k++)
            events[k] += strcmp(event, names[k]) == 0;
        json_decref(object);
    }
    fclose(f);
    return n;
}

static void expect_report(const char *path)
{
    static const char *const parts[] = {"<title>lenet5 on ",
                                        "<figcaption>Loss<",
                                        "aria-label=\"Confusion matrix\"",
                                        "<h2>Precision and recall</h2>",
                                        "<h2>Most confident mistakes</h2>",
                                        "--lr 0.02 --batch 64 --out ",
                                        "<dt>seed</dt><dd>1</dd>"};
    const char *page = read_text(path);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        cr_expect_not_null(strstr(page, parts[i]), "%s", parts[i]);
    expect_text(page, "</html>\n");
}

/* The card of a finished run that was resumed keeps its accuracy. */
static void expect_same_accuracy(const char *a, const char *b)
{
    adj_tensors *left = NULL, *right = NULL;
    cr_assert_eq(adj_tensors_read(a, &left), ADJ_OK);
    cr_assert_eq(adj_tensors_read(b, &right), ADJ_OK);
    const char *expected = adj_tensors_metadata(right, "accuracy");
    const char *got = adj_tensors_metadata(left, "accuracy");
    cr_assert_not_null(expected);
    cr_expect(got != NULL && strcmp(got, expected) == 0, "%s, expected %s", got, expected);
    adj_tensors_free(left);
    adj_tensors_free(right);
}

Test(train_out, folder_and_resumption, .timeout = 300)
{
    scoped(folder_remove) folder f = small_data();
    const file_name out = in_folder(&f, "run"), half = in_folder(&f, "half"),
                    file = in_folder(&f, "w.safetensors"), checkpoint = in_folder(&f, "c");
    file_name in[4], again;
    static const char *const names[] = {"weights.safetensors", "best.safetensors", "metrics.jsonl",
                                        "report.html"};
    int events[KINDS];
    for (int i = 0; i < 4; i++)
        in[i] = within(&out, names[i]);
    train(&f, out.s, WORDS("--epochs", "4"));
    cr_assert_eq(r.status, 0, "%s", r.err);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(access(in[i].s, R_OK), 0, "%s", in[i].s);
    expect_text(r.out, "report written to ");
    /* 90 images in batches of 64: two steps */
    cr_expect_eq(count_events(in[2].s, events), 1 + 8 + 4 + 1);
    cr_expect(events[START] == 1 && events[STEP] == 8 && events[EPOCH] == 4 && events[END] == 1);
    expect_report(in[3].s);
    cr_expect_null(strstr(r.err, "are replaced"), "%s", r.err);
    train(&f, out.s, WORDS("--epochs", "4"));
    expect_text(r.err, "run: the files of an older run are replaced");

    train(&f, file.s, WORDS("--epochs", "4"));
    cr_expect_eq(r.status, 0);
    cr_expect(same_file(file.s, in[0].s), "the folder's weights are others than the file's");
    char best[80];
    const char *said = strstr(r.out, "best: ");
    cr_assert_not_null(said);
    /* the file has the last epoch's weights */
    char last[80];
    const char *at = strstr(r.out, "epoch  4/4");
    cr_assert_not_null(at);
    at = strstr(at, "test accuracy ") + strlen("test accuracy ");
    snprintf(last, sizeof last, "(epoch 4, accuracy %.*s", (int)(strcspn(at, "%") + 1), at);
    expect_text(r.out, last);
    snprintf(best, sizeof best, "test accuracy %.*s", (int)(strcspn(said + 6, "%") + 1), said + 6);
    tool(&r, ANY_STATUS, "eval --weights %s --data %s", in[1].s, f.path);
    expect_text(r.out, best);

    /* in two parts: the same weights, one log, one curve */
    train(&f, half.s, WORDS("--epochs", "4", "--checkpoint", checkpoint.s));
    cr_assert_eq(r.status, 0, "%s", r.err);
    tool(&r, 0, "train --checkpoint %s --resume --data %s --out %s", checkpoint.s, f.path, half.s);
    expect_text(r.out, "note: the run is complete");
    again = within(&half, "weights.safetensors");
    cr_expect(same_tensors(again.s, in[0].s));
    expect_same_accuracy(again.s, in[0].s);
    again = within(&half, "metrics.jsonl");
    count_events(again.s, events);
    cr_expect(events[START] == 2 && events[STEP] == 8 && events[EPOCH] == 4 && events[RESUME] == 1);
    again = within(&half, "report.html");
    expect_text(read_text(again.s), "<figcaption>Loss<");
}

/* The best weights of the first run stay where they were written, and a note says that the schedule
 * starts again. */
Test(train_out, prolonged_to_another_folder, .timeout = 300)
{
    scoped(folder_remove) folder f = small_data();
    const file_name out = in_folder(&f, "run"), other = in_folder(&f, "other"),
                    checkpoint = in_folder(&f, "c");
    train(&f, out.s, WORDS("--epochs", "2", "--lr", "0.001", "--checkpoint", checkpoint.s));
    cr_assert_eq(r.status, 0, "%s", r.err);
    /* of such a rate no step is a better one */
    tool(&r, 0, "train --checkpoint %s --resume --epochs 3 --lr 1e-12 --data %s --out %s",
         checkpoint.s, f.path, other.s);
    expect_text(r.out, "extended from 2 to 3 epochs: the learning rate schedule restarts");
    expect_text(r.out, "the best weights are still those saved before --resume");
    const file_name best = within(&other, "best.safetensors");
    cr_expect_neq(access(best.s, F_OK), 0);
}

Test(train_out, range_test, .timeout = 300)
{
    scoped(folder_remove) folder f = small_data();
    const file_name out = in_folder(&f, "run");
    tool(&r, 0, "train --data %s --model lenet5 --lr auto --epochs 1 --out %s", f.path, out.s);
    expect_text(r.out, "range test: up to 300 steps");
}

/* A disk that is full after the first epoch, whose scores are printed: nothing was resumed. */
Test(train_out, full_disk)
{
    scoped(folder_remove) folder f = small_data();
    const file_name out = in_folder(&f, "run");
    struct rlimit all;
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){20000, all.rlim_max}), 0);
    train(&f, out.s, WORDS("--epochs", "1"));
    setrlimit(RLIMIT_FSIZE, &all);
    cr_expect_eq(r.status, 1, "%s", r.err);
    expect_text(r.err, "File too large");
    expect_text(r.out, "  test accuracy ");
    cr_expect_null(strstr(r.out, "before --resume"), "%s", r.out);
}

/* Writes 150 images as IDX: a disc, an upright and a level bar in turn, at varying places. */
static void put_shapes(const folder *f, const char *images, const char *labels)
{
    static uint8_t x[16 + 150 * 784] = {0, 0, 8, 3, 0, 0, 0, 150, 0, 0, 0, 28, 0, 0, 0, 28};
    uint8_t y[8 + 150] = {0, 0, 8, 1, 0, 0, 0, 150};
    for (int k = 0; k < 150 * 784; k++) {
        const int i = k / 784, v = k % 784 / 28 - 11 - i % 7, h = k % 28 - 11 - i % 5;
        const int is_inside = i % 3 == 0   ? v * v + h * h < 49
                              : i % 3 == 1 ? v * v < 49 && h * h < 4
                                           : v * v < 4 && h * h < 49;
        x[16 + k] = (uint8_t)((is_inside ? 230 : 20) + k * 7 % 17);
        y[8 + i] = (uint8_t)(i % 3);
    }
    put_file(in_folder(f, images).s, x, sizeof x);
    put_file(in_folder(f, labels).s, y, sizeof y);
}

/* The test's 300 steps repeat the few images: a tenth of the rate of the least loss is too much. */
Test(train_out, range_test_of_few_images, .timeout = 300)
{
    scoped(folder_remove) folder f = folder_new();
    put_shapes(&f, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    put_shapes(&f, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    for (int seed = 1; seed <= 2; seed++) {
        char text[8];
        snprintf(text, sizeof text, "%d", seed);
        tool(&r, 0, "train --data %s --lr auto --seed %s --epochs 5", f.path, text);
        const char *last = strstr(r.out, "\nepoch  5/5");
        last = last != NULL ? last : strstr(r.out, "\nepoch 5/5");
        const char *accuracy = last != NULL ? strstr(last, "test accuracy ") : NULL;
        cr_expect(accuracy != NULL && atof(accuracy + 14) > 90, "seed %d: %s", seed, r.out);
    }
}

/* Neither a folder nor files where training could not begin. */
Test(train_out, nothing_is_left_of_what_failed)
{
    scoped(folder_remove) folder f = small_data();
    const int before = files_in(&f);
    const file_name out = in_folder(&f, "new/"), deep = in_folder(&f, "none/new");
    const file_name file = in_folder(&f, "train-images-idx3-ubyte"), log = in_folder(&f, "none/l");
    train(&f, out.s, WORDS("--model", "nonet"));
    cr_expect_eq(r.status, 3);
    cr_expect_eq(files_in(&f), before);
    train(&f, out.s, WORDS("--data", "/nowhere"));
    cr_expect_eq(r.status, 1);
    train(&f, out.s, WORDS("--log", log.s));
    cr_expect_eq(r.status, 1);
    cr_expect_eq(files_in(&f), before);
    train(&f, deep.s, (const char *[]){NULL});
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "none/new: No such file");
    train(&f, file.s, (const char *[]){NULL});
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "is not a folder (a weights file's name ends in ");
    cr_expect_eq(files_in(&f), before);
}

/* A folder's name that a card cannot hold is found before the first epoch. */
Test(train_out, a_class_name_that_is_not_utf8)
{
    /* 1 x 1, gray: by Pillow, Image.new("L", (1, 1)).save(...) */
    static const char png[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx"
        "\x9c"
        "c`\0\0\0\2\0\1H\xaf\xa4q\0\0\0\0IEND\xae"
        "B`\x82";
    static const char *const classes[] = {"a", "caf\xe9"};
    folder f = folder_new(), class[2];
    const file_name out = in_folder(&f, "out");
    for (int i = 0; i < 2; i++) {
        snprintf(class[i].path, sizeof class[i].path, "%.50s/%s", f.path, classes[i]);
        cr_assert_eq(mkdir(class[i].path, 0700), 0);
        for (int k = 0; k < 10; k++) {
            char name[16];
            snprintf(name, sizeof name, "%d.png", k);
            put_file(in_folder(&class[i], name).s, png, sizeof png - 1);
        }
    }
    tool(&r, 1, "train --data %s --epochs 1 --out %s", f.path, out.s);
    expect_text(r.err,
                "the name of class 1 is not UTF-8 (got caf\\xe9; rename the class or its folder)");
    cr_expect_null(strstr(r.out, "epoch"), "%s", r.out);
    cr_expect_neq(access(out.s, F_OK), 0, "a folder is left");
    folder_remove(&class[0]);
    folder_remove(&class[1]);
    folder_remove(&f);
}

/* Standard output and standard error in one file keep the order in which they were written. */
Test(train_out, one_file_for_both_outputs)
{
    char command[600];
    scoped(folder_remove) folder f = small_data();
    const file_name all = in_folder(&f, "all");
    const char *build = getenv("BUILD");
    snprintf(command, sizeof command,
             "%s/adjoint train --data '%s' --epochs 1 --size 32 --batch 1000 >'%s' 2>&1",
             build != NULL ? build : "build", f.path, all.s);
    cr_assert_eq(system(command), 0);
    const char *text = read_text(all.s);
    const char *before = strstr(text, "images are resized"),
               *after = strstr(text, "note: --batch is reduced to 90");
    cr_expect(before != NULL && after != NULL && before < after, "%s", text);
    const char *found = strstr(text, "lenet, ");
    cr_expect(found != NULL && after < found, "%s", text);
}

/* A run without --out and --checkpoint begins with a note that weights are not saved. */
Test(train_out, nothing_is_saved_without_a_file)
{
    static const char note[] =
        "note: weights are not saved; --out DIR saves weights, metrics and report\n";
    scoped(folder_remove) folder f = small_data();
    tool(&r, ANY_STATUS, "train --data %s --epochs 1", f.path);
    cr_expect_eq(strncmp(r.out, note, sizeof note - 1), 0, "%s", r.out);
    tool(&r, ANY_STATUS, "train --data %s --epochs 1 --checkpoint %s", f.path,
         in_folder(&f, "checkpoint").s);
    cr_expect(r.status == 0 && strstr(r.out, "note: weights") == NULL, "%s", r.out);
}

/* Two files of the run that are one, or one that cannot be replaced. */
Test(train_out, files_in_the_folder_are_checked)
{
    scoped(folder_remove) folder f = small_data(), out = folder_new();
    const file_name metrics = in_folder(&out, "metrics.jsonl"),
                    page = in_folder(&out, "report.html");
    train(&f, out.path, WORDS("--log", metrics.s));
    cr_expect_eq(r.status, 3);
    expect_text(r.err, "--out and --log name the same file");
    cr_assert_eq(mkdir(page.s, 0700), 0);
    train(&f, out.path, (const char *[]){NULL});
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "report.html: is not a regular file");
    cr_expect_eq(files_in(&out), 1);
    rmdir(page.s);
}

/* A training whose folder or log another one holds is refused, and the other's lines stay. */
Test(train_out, one_training_at_a_time)
{
    static const char line[] = "{\"event\":\"start\"}\n";
    scoped(folder_remove) folder f = small_data(), out = folder_new();
    const file_name metrics = in_folder(&out, "metrics.jsonl"), log = in_folder(&out, "log"),
                    weights = in_folder(&out, "weights.safetensors");
    put_file(metrics.s, line, sizeof line - 1);
    put_file(log.s, line, sizeof line - 1);
    const int held[] = {open(metrics.s, O_RDONLY), open(log.s, O_RDONLY)};
    cr_assert(flock(held[0], LOCK_EX) == 0 && flock(held[1], LOCK_EX) == 0);

    train(&f, out.path, WORDS("--epochs", "1"));
    cr_expect_eq(r.status, 1);
    expect_text(r.err, "--out: ");
    expect_text(r.err, "metrics.jsonl: in use by another training run");
    cr_expect_str_eq(read_text(metrics.s), line);
    tool(&r, 1, "train --data %s --epochs 1 --log %s", f.path, log.s);
    expect_text(r.err, "--log: ");
    expect_text(r.err, "in use by another training run");
    cr_expect_str_eq(read_text(log.s), line);
    cr_expect_neq(access(weights.s, F_OK), 0);
    close(held[0]);
    close(held[1]);
    train(&f, out.path, WORDS("--epochs", "1"));
    cr_expect_eq(r.status, 0, "%s", r.err);
    cr_expect_null(strstr(read_text(metrics.s), line));
}

static long bytes_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (long)s.st_size : 0;
}

Test(train_out, a_killed_run_leaves_whole_lines, .timeout = 120)
{
    scoped(folder_remove) folder f = small_data(), out = folder_new();
    const file_name metrics = in_folder(&out, "metrics.jsonl");
    int events[KINDS];
    child c = tool_start(
        "train --model lenet5 --data %s --backend naive --batch 8 --epochs 100000 --out %s", f.path,
        out.path);
    for (int i = 0; i < 3000 && bytes_of(metrics.s) < 5000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(c.pid, SIGKILL);
    child_finish(&c, &r);
    cr_expect_eq(r.status, 128 + SIGKILL);
    cr_expect_gt(count_events(metrics.s, events), 30);
    cr_expect_gt(events[STEP], 20);
}

/* On Ctrl-C the report says so. */
Test(train_out, an_interrupted_run_is_reported, .timeout = 120)
{
    scoped(folder_remove) folder f = small_data(), out = folder_new();
    const file_name metrics = in_folder(&out, "metrics.jsonl"),
                    page = in_folder(&out, "report.html");
    child c = tool_start(
        "train --model lenet5 --data %s --backend naive --batch 8 --epochs 100000 --out %s", f.path,
        out.path);
    for (int i = 0; i < 3000 && bytes_of(metrics.s) < 5000; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    kill(c.pid, SIGINT);
    child_finish(&c, &r);
    cr_expect_eq(r.status, 130, "%s", r.err);
    expect_text(read_text(page.s), "<p>Interrupted after ");
}

/* A file that is replaced is held by its FILE.lock. A killed training leaves that unlocked. */
Test(train_out, one_training_at_a_time_replaces_a_file)
{
    static const char before[] = "before";
    static const char *const options[] = {"--checkpoint", "--out"};
    scoped(folder_remove) folder f = small_data(), other = folder_new();
    const file_name file = in_folder(&other, "w.safetensors"),
                    lock = in_folder(&other, "w.safetensors.lock"),
                    link = in_folder(&other, "link");
    cr_assert_eq(symlink("w.safetensors", link.s), 0);
    for (int i = 0; i < 2; i++) {
        const char *const name = i == 0 ? link.s : file.s; /* --out's name would be a folder's */
        const char *const words[] = {"train", "--data",   f.path, "--epochs",
                                     "1",     options[i], name,   NULL};
        put_file(file.s, before, sizeof before);
        put_file(lock.s, "", 0);
        const int held = open(lock.s, O_RDONLY);
        cr_assert_eq(flock(held, LOCK_EX), 0);
        run_tool(words, &r);
        cr_expect_eq(r.status, 1);
        expect_text(r.err, options[i]);
        expect_text(r.err, ": in use by another training run");
        cr_expect_str_eq(read_text(file.s), before);
        close(held);
        run_tool(words, &r);
        cr_expect_eq(r.status, 0, "%s", r.err);
        cr_expect_str_neq(read_text(file.s), before);
        cr_expect_neq(access(lock.s, F_OK), 0);
    }
}

/* A file among the images is refused, also behind a link, unless a command wrote it. */
Test(train_out, data_are_not_written_over)
{
    static const char *const options[] = {"--log", "--checkpoint"};
    scoped(folder_remove) folder f = small_data(), other = folder_new();
    const file_name labels = in_folder(&f, "train-labels-idx1-ubyte"),
                    link = in_folder(&other, "link");
    cr_assert_eq(symlink(labels.s, link.s), 0);
    for (int i = 0; i < 4; i++) {
        const char *const name = i % 2 == 0 ? labels.s : link.s;
        tool(&r, 3, "train --data %s --epochs 1 %s %s", f.path, options[i / 2], name);
        expect_text(r.err, options[i / 2]);
        expect_text(r.err, ": belongs to the input --data");
    }
    for (int twice = 0; twice < 2; twice++) {
        tool(&r, 0, "train --data %s --epochs 1 --log %s --checkpoint %s --out %s", f.path,
             in_folder(&f, "log").s, in_folder(&f, "c").s, f.path);
    }
}
