/* test_files.c - files that commands write: unwritable ones are refused before the work, with
 * nothing left behind; closed streams and names that are not UTF-8 do no harm. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/small_data.h"
#include "tests/plan.h"

static finished r;

enum { WORDS = 12 };

/* "@" is the folder of the test. */
typedef struct {
    int status;
    const char *words; /* of the sentence */
    const char *arguments[WORDS];
} call;

#define CONV "--op", "relu", "--in", "2,3"

static const call refused[] = {
    {3, "--out: the file's name is empty", {"train", "--out", ""}},
    {3, "--checkpoint: the file's name is empty", {"train", "--checkpoint="}},
    {3, "--log: the file's name is empty", {"train", "--log", ""}},
    {1, "--out: /proc/weights: ", {"train", "--out", "/proc/weights"}},
    {1, "--log: /proc/log: ", {"train", "--log", "/proc/log"}},
    {1, "/none/x: No such file", {"train", "--out", "@/none/x"}},
    {1, "/file/x: Not a directory", {"train", "--checkpoint", "@/file/x"}},
    {1,
     "/pipe: is not a folder (a weights file's name ends in .safetensors)",
     {"train", "--out", "@/pipe"}},
    {1, "/pipe: is a pipe without a reader", {"train", "--log", "@/pipe"}},
    {1, "/pipe: is not a regular file", {"train", "--checkpoint", "@/pipe"}},
    {1, "--log: @: is a folder", {"train", "--log", "@"}},
    {1, "@: is a folder", {"eval", "--weights", "@"}},
    {1, "@: is a folder", {"inspect", "@"}},
    {1, "/none/x.safetensors: No such file", {"train", "--out", "@/none/x.safetensors"}},
    {1, "--out: /dev/null: is not a folder", {"train", "--out", "/dev/null"}},
    {3,
     "--out and --log name the same file (@/file.partial, the temporary name of",
     {"train", "--out", "@/soft.safetensors", "--log", "@/file.partial"}},
    {3,
     "name the same file (@/a.safetensors.partial, ",
     {"train", "--checkpoint", "@/a.safetensors.partial", "--out", "@/a.safetensors"}},
    {3,
     "--out and --checkpoint name the same file",
     {"train", "--out", "@/a.safetensors", "--checkpoint", "@/a.safetensors"}},
    {3,
     "--out and --log name the same file",
     {"train", "--out", "@/a.safetensors", "--log", "@/./a.safetensors"}},
    {3,
     "--checkpoint and --log name the same file",
     {"train", "--log", "@/hard", "--checkpoint", "@/file"}},
    {3,
     "--out and --checkpoint name the same file",
     {"train", "--out", "@/soft.safetensors", "--checkpoint", "@/file"}},
    {3,
     "--out and --log name the same file",
     {"train", "--out", "@/dangling.safetensors", "--log", "@/none yet"}},
    {3,
     "--log and --data name the same file (@/file)",
     {"train", "--data", "@/file", "--log", "@/hard"}},
    {3,
     "--checkpoint and --data name the same file",
     {"train", "--data", "@/soft.safetensors", "--checkpoint", "@/file"}},
    {3,
     "--out and --weights name the same file",
     {"train", "--weights", "@/file", "--out", "@/soft.safetensors"}},
    {3,
     "--log and --data name the same file",
     {"train", "--data", "@/file", "--weights", "@/file", "--log", "@/file"}},
    {1,
     "--json: @/pipe: is a pipe without a reader",
     {"bench", "--model", "lenet5", "--seconds", "0", "--json", "@/pipe"}},
    {3, "--json: the file's name is empty", {"bench", "--model", "lenet5", "--json", ""}},
    {1, "--json: @/pipe: is a pipe without a reader", {"gradcheck", CONV, "--json", "@/pipe"}},
    {1, "--junit: @/none/x: No such file", {"gradcheck", CONV, "--junit", "@/none/x"}},
    {3,
     "--json and --junit name the same file",
     {"gradcheck", CONV, "--json", "@/a", "--junit", "@/a"}},
    {1, "--json: @/pipe: is a pipe without a reader", {"compare", CONV, "--json", "@/pipe"}},
    {1, "--junit: @: is a folder", {"compare", CONV, "--junit", "@"}},
    {3, "--junit: the file's name is empty", {"compare", CONV, "--junit", ""}},
    {3,
     "--json and --junit name the same file",
     {"compare", CONV, "--json", "@/file", "--junit", "@/soft.safetensors"}},
};

/* text with the folder's name for each "@". */
static const char *expand(const folder *f, const char *text, file_name *to)
{
    size_t n = 0;
    for (; *text != '\0' && n + sizeof f->path < sizeof to->s; text++)
        n += (size_t)snprintf(to->s + n, sizeof to->s - n, *text == '@' ? "%s" : "%.1s",
                              *text == '@' ? f->path : text);
    to->s[n] = '\0';
    return to->s;
}

Test(files, refused_before_the_work, .timeout = 300)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "file");
    put_file(file.s, "precious", 8);
    cr_assert_eq(mkfifo(in_folder(&f, "pipe").s, 0600), 0);
    cr_assert_eq(link(file.s, in_folder(&f, "hard").s), 0);
    cr_assert_eq(symlink("file", in_folder(&f, "soft.safetensors").s), 0);
    cr_assert_eq(symlink("none yet", in_folder(&f, "dangling.safetensors").s), 0);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        file_name names[WORDS], sentence;
        const char *arguments[WORDS + 1] = {NULL};
        for (int k = 0; k < WORDS && refused[i].arguments[k] != NULL; k++)
            arguments[k] = expand(&f, refused[i].arguments[k], &names[k]);
        run_tool(arguments, &r);
        cr_expect_eq(r.status, refused[i].status, "case %zu: status %d, %s", i, r.status, r.err);
        cr_expect_not_null(strstr(r.err, expand(&f, refused[i].words, &sentence)),
                           "case %zu complained %s", i, r.err);
        cr_expect_str_empty(r.out, "case %zu printed %s", i, r.out);
        cr_expect_eq(files_in(&f), 5, "case %zu left a file", i);
    }
    struct stat s;
    cr_expect(stat(file.s, &s) == 0 && s.st_size == 8);
}

/* A file that exists under the name of another's new one is not emptied before it is noticed. */
Test(files, partial_is_not_emptied)
{
    struct stat s;
    scoped(folder_remove) folder f = folder_new();
    const file_name out = in_folder(&f, "w.safetensors"),
                    log = in_folder(&f, "w.safetensors.partial");
    put_file(log.s, "precious", 8);
    tool(&r, 3, "train --out %s --log %s", out.s, log.s);
    cr_expect(stat(log.s, &s) == 0 && s.st_size == 8);
    cr_expect_eq(files_in(&f), 1);
}

/* Each line of the file is an object. */
static void expect_lines(const char *path, int at_least)
{
    static char line[1 << 14];
    int n = 0;
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    for (; fgets(line, sizeof line, f) != NULL; n++) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        cr_expect(json_is_object(object), "%s", line);
        json_decref(object);
    }
    fclose(f);
    cr_expect_geq(n, at_least);
}

/* Runs the tool by a shell with this redirection; its exit status. */
static int run_by_shell(const char *redirection, const char *arguments)
{
    char command[1400];
    const char *build = getenv("BUILD");
    snprintf(command, sizeof command, "exec %s/adjoint %s %s", build != NULL ? build : "build",
             arguments, redirection);
    return exit_status(system(command));
}

/* No file gets the number of a stream that is closed: nothing is printed into it. */
Test(files, closed_streams)
{
    static const char *const closed[] = {">&- 2>/dev/null", "<&- >&- 2>&-", "2>&- >/dev/null"};
    scoped(folder_remove) folder f = small_data();
    const file_name log = in_folder(&f, "log"), out = in_folder(&f, "out.safetensors");
    for (int i = 0; i < 3; i++) {
        char arguments[1000];
        snprintf(arguments, sizeof arguments,
                 "train --data %s --model lenet5 --epochs 2 --log %s --out %s", f.path, log.s,
                 out.s);
        int status = run_by_shell(closed[i], arguments);
        cr_expect(status == 0 || status == 1, "%s: %d", closed[i], status);
        expect_lines(log.s, 4);
        adj_tensors *t = NULL;
        cr_expect_eq(adj_tensors_read(out.s, &t), ADJ_OK, "%s", t->message);
        adj_tensors_free(t);
        unlink(out.s);
    }
}

/* Devices and pipes that are read are written to as they are. */
Test(files, devices_and_pipes, .timeout = 120)
{
    static const char *const ways[] = {
        "$tool --json /dev/null --junit /dev/null",
        "$tool --json /dev/stdout 2>err | grep -q '{'",
        "{ exec 3<>fifo 4<fifo && $tool --json fifo && exec 3>&- && cat <&4 >copy && test -s copy; "
        "}",
    };
    const char *build = getenv("BUILD");
    scoped(folder_remove) folder f = folder_new();
    char tool[4096], command[8192];
    cr_assert_not_null(realpath(build != NULL ? build : "build", tool));
    cr_assert_eq(mkfifo(in_folder(&f, "fifo").s, 0600), 0);
    for (int i = 0; i < 3; i++) {
        snprintf(command, sizeof command,
                 "cd %s && tool='timeout 30 %s/adjoint gradcheck --op relu --in 2,3' && %s >out",
                 f.path, tool, ways[i]);
        cr_expect_eq(exit_status(system(command)), 0, "%s", command);
    }
}

static void expect_string(const json_t *object, const char *key, const char *part)
{
    const char *text = json_string_value(json_object_get(object, key));
    cr_expect(text != NULL && strstr(text, part) != NULL, "%s: %s", key,
              text != NULL ? text : "none");
}

Test(files, names_that_are_not_utf8)
{
    scoped(folder_remove) folder f = small_data();
    char odd[100];
    snprintf(odd, sizeof odd, "%s/odd\xff\xc3\xa4\xed\xa0\x80", f.path);
    cr_assert_eq(symlink(f.path, odd), 0); /* a data folder, and a folder for the output */
    file_name log = in_folder(&f, "log"), out;
    snprintf(out.s, sizeof out.s, "%s/out\xff.safetensors", odd);
    tool(&r, 0, "train --data %s --model lenet5 --epochs 1 --log %s --out %s", odd, log.s, out.s);
    cr_expect_eq(access(out.s, F_OK), 0);
    expect_lines(log.s, 3);
    json_t *first = json_load_file(log.s, JSON_DISABLE_EOF_CHECK, NULL);
    expect_string(first, "data", "/odd\\xff\xc3\xa4\\xed\\xa0\\x80");
    json_decref(first);

    file_name tune = in_folder(&f, "tune\xff");
    put_file(tune.s, "adjoint tune rubbish", 20);
    setenv("ADJOINT_TUNE", tune.s, 1);
    tool(&r, ANY_STATUS,
         "bench --model lenet5 --batch 2 --seconds 0 --backend naive --tune --json");
    cr_expect_eq(r.status, 0, "%d: %s", r.status, r.err);
    json_t *all = json_loads(r.out, 0, NULL);
    expect_string(all, "warning", "/tune\\xff is ignored");
    json_decref(all);
}
