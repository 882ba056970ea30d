/* test_replace.c - attributes that a new file inherits from the one it replaces, symbolic links,
 * and paths that may be written. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "adjoint_io.h"
#include "io/folder.h"
#include "io/io.h"
#include "tests/io/scoped.h"

TestSuite(replace, .init = enter_folder, .fini = leave_folder);

static const float values[3] = {1, 2, 3};
static const adj_tensor tensor = {"x", ADJ_ELEM_F32, {1, {3}}, values};

static adj_status write_tensors(const char *path)
{
    adj_error error = {0};
    adj_status status = adj_tensors_write(path, 1, &tensor, 0, NULL, &error);
    cr_expect_eq(error.status, status);
    cr_expect((status == ADJ_OK) == (error.message[0] == '\0'), "%s", error.message);
    return status;
}

static void expect_tensors(const char *path)
{
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_expect_eq(adj_tensors_read(path, &t), ADJ_OK, "%s", t->message);
    cr_expect_eq(t->n, 1);
}

static struct stat stat_of(const char *path)
{
    struct stat s = {0};
    cr_expect_eq(lstat(path, &s), 0, "%s", path);
    return s;
}

Test(replace, keeps_mode_and_owner)
{
    static const mode_t modes[] = {0600, 0640, 0644, 0666, 0400};
    const file_name path = in_folder(&here, "w");
    umask(022);
    cr_expect_eq(write_tensors(path.s), ADJ_OK);
    cr_expect_eq(stat_of(path.s).st_mode & 0777, 0644, "a new file has the usual mode");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        chmod(path.s, modes[i]);
        int foreign = chown(path.s, 1234, 1235) == 0; /* as root */
        cr_expect_eq(write_tensors(path.s), ADJ_OK);
        struct stat s = stat_of(path.s);
        cr_expect_eq(s.st_mode & 07777, modes[i], "got %o", (unsigned)s.st_mode);
        if (foreign)
            cr_expect(s.st_uid == 1234 && s.st_gid == 1235);
    }
    expect_tensors(path.s);
}

Test(replace, follows_links)
{
    scoped(folder_remove) folder other = folder_new();
    const file_name file = in_folder(&other, "file"), link = in_folder(&here, "link"),
                    second = in_folder(&here, "second"), dangling = in_folder(&here, "dangling"),
                    made = in_folder(&other, "made"), circle = in_folder(&here, "circle");
    char up[200];
    put_file(file.s, "old", 3);
    chmod(file.s, 0600);
    snprintf(up, sizeof up, "../%s/file",
             strrchr(other.path, '/') + 1); /* from the link's folder */
    cr_assert_eq(symlink(up, link.s), 0);
    cr_assert_eq(symlink("link", second.s), 0);
    cr_expect_eq(write_tensors(second.s), ADJ_OK);
    cr_expect(S_ISLNK(stat_of(link.s).st_mode) && S_ISLNK(stat_of(second.s).st_mode));
    cr_expect_eq(stat_of(file.s).st_mode, S_IFREG | 0600);
    expect_tensors(file.s);

    cr_assert_eq(symlink(made.s, dangling.s), 0);
    cr_expect_eq(write_tensors(dangling.s), ADJ_OK);
    cr_expect(S_ISLNK(stat_of(dangling.s).st_mode));
    expect_tensors(made.s);

    cr_assert_eq(symlink(circle.s, circle.s), 0);
    cr_expect_eq(write_tensors(circle.s), ADJ_EIO);
    cr_expect_eq(files_in(&here), 4);
    cr_expect_eq(files_in(&other), 2);
}

/* A link of /proc reads as a name that is none: nothing is made of that name. */
Test(replace, deleted_file_by_its_descriptor)
{
    const file_name path = in_folder(&here, "gone");
    char link[60];
    int fd = open(path.s, O_RDWR | O_CREAT, 0600);
    cr_assert_geq(fd, 0);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    unlink(path.s);
    cr_expect_eq(write_tensors(link), ADJ_EIO);
    cr_expect_eq(files_in(&here), 0);
    close(fd);
}

static int write_text(FILE *f, void *user) { return fputs(user, f) == EOF; }
static int write_half(FILE *f, void *user) { return fputs(user, f), 1; }

Test(replace, any_text)
{
    const file_name path = in_folder(&here, "t");
    adj_error error = {0};
    char text[20] = "";
    cr_expect_eq(adj_file_replace(path.s, write_text, "first", &error), ADJ_OK, "%s",
                 error.message);
    cr_expect_eq(adj_file_replace(path.s, write_half, "half", &error), ADJ_EIO);
    expect_text(error.message, "cannot be written");
    cr_expect_eq(get_file(path.s, text, sizeof text), 5);
    cr_expect_str_eq(text, "first");
    cr_expect_eq(adj_file_replace("", write_text, "x", &error), ADJ_EARG);
    cr_expect_eq(adj_file_replace(NULL, write_text, "x", &error), ADJ_EARG);
    cr_expect_eq(files_in(&here), 1);
}

/* ---- what is there under the new file's name ---- */

/* The mode of FILE.partial while it is written. */
static int note_mode(FILE *f, void *user)
{
    struct stat s;
    int failed = fstat(fileno(f), &s) != 0;
    *(mode_t *)user = s.st_mode & 0777;
    return failed;
}

/* A killed process leaves nothing that its owner could not open again. */
Test(replace, owner_may_write_until_the_end)
{
    const file_name path = in_folder(&here, "t");
    adj_error error = {0};
    mode_t mode = 0;
    put_file(path.s, "old", 3);
    chmod(path.s, 0440);
    cr_expect_eq(adj_file_replace(path.s, note_mode, &mode, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(mode, 0640, "%o", (unsigned)mode);
    cr_expect_eq(stat_of(path.s).st_mode & 0777, 0440);
}

/* A file left by a killed process is taken over; what is none, or leads to another one, is not
 * written to. */
Test(replace, left_behind)
{
    static char rubbish[100000];
    const file_name path = in_folder(&here, "w"), partial = in_folder(&here, "w.partial"),
                    other = in_folder(&here, "other");
    put_file(partial.s, rubbish, sizeof rubbish);
    cr_expect_eq(write_tensors(path.s), ADJ_OK);
    expect_tensors(path.s);
    cr_expect_eq(files_in(&here), 1);

    put_file(other.s, "precious", 8);
    for (int kind = 0; kind < 3; kind++) {
        cr_assert_eq(kind == 0   ? symlink(other.s, partial.s)
                     : kind == 1 ? mkfifo(partial.s, 0600)
                                 : mkdir(partial.s, 0700),
                     0);
        cr_expect_eq(write_tensors(path.s), ADJ_EIO, "%d", kind);
        cr_assert_eq(remove(partial.s), 0);
    }
    char text[9] = "";
    cr_expect_eq(get_file(other.s, text, sizeof text), 8);
    cr_expect_str_eq(text, "precious");
}

/* Several processes write one file at once: each succeeds, and what is there is always whole. */
Test(replace, many_writers)
{
    enum { WRITERS = 8, TIMES = 250, N = 500 };
    const file_name path = in_folder(&here, "w");
    static float x[N];
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            int bad = 0;
            for (int k = 0; k < N; k++)
                x[k] = (float)i;
            const adj_tensor tensor = {"x", ADJ_ELEM_F32, {1, {N - 50 * i}}, x};
            for (int k = 0; k < TIMES; k++) {
                scoped(release_tensors) adj_tensors *t = NULL;
                bad += adj_tensors_write(path.s, 1, &tensor, 0, NULL, NULL) != ADJ_OK;
                bad += adj_tensors_read(path.s, &t) != ADJ_OK;
                adj_tensor y = t->tensor[0];
                const float *v = y.data;
                for (int64_t j = 0; v != NULL && j < y.shape.dim[0]; j++)
                    bad += v[j] != (float)(N - y.shape.dim[0]) / 50;
            }
            _exit(bad != 0);
        }
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        wait(&status);
        cr_expect_eq(status, 0);
    }
    cr_expect_eq(files_in(&here), 1);
}

/* An existing FILE.partial is not written to: it may have another name, or belong to another user.
 */
Test(replace, foreign_partial)
{
    const file_name path = in_folder(&here, "t"), partial = in_folder(&here, "t.partial"),
                    other = in_folder(&here, "other");
    adj_error error = {0};
    put_file(other.s, "precious", 8);
    cr_assert_eq(link(other.s, partial.s), 0);
    cr_expect_eq(adj_file_replace(path.s, write_text, "new", &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(stat_of(other.s).st_size, 8);
    cr_expect_neq(stat_of(other.s).st_ino, stat_of(path.s).st_ino);
    cr_expect_eq(stat_of(path.s).st_size, 3);

    put_file(partial.s, "left", 4);
    chmod(partial.s, 0466);
    int foreign = chown(partial.s, 1234, 1235) == 0; /* as root */
    unlink(path.s);
    umask(022);
    cr_expect_eq(adj_file_replace(path.s, write_text, "new", &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(stat_of(path.s).st_mode & 0777, 0644);
    cr_expect(!foreign || stat_of(path.s).st_uid == geteuid());
    cr_expect_eq(files_in(&here), 2);
}

/* A group that cannot be kept: the other one may do what everybody may. */
Test(replace, group_never_gains)
{
    static const struct {
        mode_t old, new;
    } modes[] = {{0660, 0600}, {0664, 0644}, {0640, 0600}, {0606, 0606}, {0440, 0400}};
    if (geteuid() != 0)
        cr_skip_test("replace: only root can give a file to a group that it then leaves");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%zu", i);
        const file_name file = in_folder(&here, name);
        put_file(file.s, "old", 3);
        cr_assert_eq(chown(file.s, 1234, 1235), 0);
        cr_assert_eq(chmod(file.s, modes[i].old), 0);
    }
    cr_assert_eq(chown(here.path, 1234, 1234), 0);
    cr_assert(setgroups(0, NULL) == 0 && setgid(1234) == 0 && setuid(1234) == 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%zu", i);
        const file_name file = in_folder(&here, name);
        cr_expect_eq(write_tensors(file.s), ADJ_OK);
        mode_t expected = modes[i].new;
        cr_expect_eq(stat_of(file.s).st_mode & 0777, expected, "%o: got %o", (unsigned)modes[i].old,
                     (unsigned)stat_of(file.s).st_mode);
        cr_expect_eq(stat_of(file.s).st_gid, 1234);
    }
}

/* ---- asking first ---- */

static adj_status check(const char *path, int in_place)
{
    adj_error error = {0};
    adj_status status = adj_file_check(path, in_place, &error);
    cr_expect_eq(error.status, status);
    cr_expect((status == ADJ_OK) == (error.message[0] == '\0'), "%s", error.message);
    return status;
}

Test(replace, check_refuses, .timeout = 60)
{
    const file_name pipe = in_folder(&here, "pipe"), inside = in_folder(&here, "none/file");
    cr_assert_eq(mkfifo(pipe.s, 0600), 0);
    const char *const bad[] = {here.path,    inside.s,    "/proc/file",
                               "/nowhere/x", "/dev/null", pipe.s};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(check(bad[i], 0), ADJ_EIO, "%s", bad[i]);
        cr_expect_eq(check(bad[i], 1), i < 4 ? ADJ_EIO : ADJ_OK, "%s", bad[i]);
        cr_expect_eq(write_tensors(bad[i]), ADJ_EIO, "%s", bad[i]);
    }
    adj_error error = {0};
    cr_expect_eq(adj_tensors_write(pipe.s, 0, NULL, 0, NULL, &error), ADJ_EIO);
    expect_text(error.message, "not a regular file");
    cr_expect_eq(check("", 0), ADJ_EARG);
    cr_expect_eq(check(NULL, 0), ADJ_EARG);
    cr_expect_eq(files_in(&here), 1);
}

static adj_file_id identify(const char *path)
{
    adj_error error = {0};
    adj_file_id id = {0};
    cr_expect_eq(adj_file_identify(path, &id, &error), ADJ_OK, "%s: %s", path, error.message);
    return id;
}

/* Names of one file are equal, whether it is there or not; nothing is left behind or changed. */
Test(replace, check_identifies)
{
    const file_name file = in_folder(&here, "file"), hard = in_folder(&here, "hard"),
                    soft = in_folder(&here, "soft"), none = in_folder(&here, "none"),
                    dotted = in_folder(&here, "./none"), dangling = in_folder(&here, "dangling"),
                    other = in_folder(&here, "other"), second = in_folder(&here, "second");
    put_file(file.s, "old", 3);
    put_file(second.s, "old", 3);
    cr_assert_eq(link(file.s, hard.s), 0);
    cr_assert_eq(symlink("file", soft.s), 0);
    cr_assert_eq(symlink("none", dangling.s), 0);
    const struct {
        const char *path;
        int group;
    } names[] = {{file.s, 0},   {hard.s, 0},     {soft.s, 0},  {none.s, 1},
                 {dotted.s, 1}, {dangling.s, 1}, {other.s, 2}, {second.s, 3}};
    enum { NAMES = sizeof names / sizeof names[0] };
    adj_file_id id[NAMES];
    put_file(in_folder(&here, "none.partial").s, "not ours", 8);
    for (int i = 0; i < NAMES; i++)
        cr_expect_eq(check(names[i].path, 1), ADJ_OK);
    cr_expect_eq(stat_of(in_folder(&here, "none.partial").s).st_size, 8);
    unlink(in_folder(&here, "none.partial").s);
    for (int i = 0; i < NAMES; i += 2)
        cr_expect_eq(check(names[i].path, 0), ADJ_OK);
    for (int i = 0; i < NAMES; i++)
        id[i] = identify(names[i].path);
    for (int i = 0; i < NAMES; i++)
        for (int k = 0; k < NAMES; k++)
            cr_expect_eq(memcmp(&id[i], &id[k], sizeof id[i]) == 0,
                         names[i].group == names[k].group, "%s and %s", names[i].path,
                         names[k].path);
    cr_expect_eq(files_in(&here), 5);
    cr_expect_eq(stat_of(file.s).st_size, 3);
}
