/* test_replace.c - what a written file takes over from the one it replaces, where symbolic links
 * lead, and what may be written at all. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "io/folder.h"

static const float values[3] = {1, 2, 3};
static const adj_tensor tensor = {"x", {ADJ_F32, {1, {3}}}, values};

static adj_status write_tensors(const char *path)
{
    char message[ADJ_MESSAGE] = "";
    adj_status status = adj_tensors_write(path, 1, &tensor, 0, NULL, message, sizeof message);
    cr_expect((status == ADJ_OK) == (message[0] == '\0'), "%s", message);
    return status;
}

static void expect_tensors(const char *path)
{
    adj_tensors *t = NULL;
    cr_expect_eq(adj_tensors_read(path, &t), ADJ_OK, "%s", adj_tensors_message(t));
    cr_expect_eq(adj_tensors_count(t), 1);
    adj_tensors_free(t);
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
    folder f = folder_new();
    const file_name path = in_folder(&f, "w");
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
    folder_remove(&f);
}

Test(replace, follows_links)
{
    folder f = folder_new(), other = folder_new();
    const file_name file = in_folder(&other, "file"), link = in_folder(&f, "link"),
                    second = in_folder(&f, "second"), dangling = in_folder(&f, "dangling"),
                    made = in_folder(&other, "made"), circle = in_folder(&f, "circle");
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
    cr_expect_eq(files_in(&f), 4);
    cr_expect_eq(files_in(&other), 2);
    folder_remove(&f);
    folder_remove(&other);
}

/* A link of /proc reads as a name that is none: nothing is made of that name. */
Test(replace, deleted_file_by_its_descriptor)
{
    folder f = folder_new();
    const file_name path = in_folder(&f, "gone");
    char link[60];
    int fd = open(path.s, O_RDWR | O_CREAT, 0600);
    cr_assert_geq(fd, 0);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    unlink(path.s);
    cr_expect_eq(write_tensors(link), ADJ_EIO);
    cr_expect_eq(files_in(&f), 0);
    close(fd);
    folder_remove(&f);
}

static int write_text(FILE *f, void *user) { return fputs(user, f) == EOF; }
static int write_half(FILE *f, void *user) { return fputs(user, f), 1; }

Test(replace, any_text)
{
    folder f = folder_new();
    const file_name path = in_folder(&f, "t");
    char message[ADJ_MESSAGE] = "", text[20] = "";
    cr_expect_eq(adj_file_replace(path.s, write_text, "first", message, sizeof message), ADJ_OK,
                 "%s", message);
    cr_expect_eq(adj_file_replace(path.s, write_half, "half", message, sizeof message), ADJ_EIO);
    cr_expect_not_null(strstr(message, "cannot be written"), "%s", message);
    FILE *file = fopen(path.s, "r");
    cr_assert_not_null(file);
    cr_expect_eq(fread(text, 1, sizeof text - 1, file), 5);
    fclose(file);
    cr_expect_str_eq(text, "first");
    cr_expect_eq(adj_file_replace("", write_text, "x", message, sizeof message), ADJ_EARG);
    cr_expect_eq(adj_file_replace(NULL, write_text, "x", message, sizeof message), ADJ_EARG);
    cr_expect_eq(files_in(&f), 1);
    folder_remove(&f);
}

/* ---- asking first ---- */

static adj_status check(const char *path, int in_place, adj_file_id *id)
{
    char message[ADJ_MESSAGE] = "";
    adj_status status = adj_file_check(path, in_place, id, message, sizeof message);
    cr_expect((status == ADJ_OK) == (message[0] == '\0'), "%s", message);
    return status;
}

Test(replace, check_refuses, .timeout = 60)
{
    folder f = folder_new();
    const file_name pipe = in_folder(&f, "pipe"), inside = in_folder(&f, "none/file");
    cr_assert_eq(mkfifo(pipe.s, 0600), 0);
    const char *const bad[] = {pipe.s, f.path, inside.s, "/dev/null", "/proc/file", "/nowhere/x"};
    adj_file_id id;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        for (int in_place = 0; in_place < 2; in_place++)
            cr_expect_eq(check(bad[i], in_place, &id), ADJ_EIO, "%s", bad[i]);
    cr_expect_eq(check("", 0, &id), ADJ_EARG);
    cr_expect_eq(check(NULL, 0, &id), ADJ_EARG);
    cr_expect_eq(files_in(&f), 1);
    folder_remove(&f);
}

/* Names of one file are equal, whether it is there or not; nothing is left behind or changed. */
Test(replace, check_identifies)
{
    folder f = folder_new();
    const file_name file = in_folder(&f, "file"), hard = in_folder(&f, "hard"),
                    soft = in_folder(&f, "soft"), none = in_folder(&f, "none"),
                    dotted = in_folder(&f, "./none"), dangling = in_folder(&f, "dangling"),
                    other = in_folder(&f, "other");
    put_file(file.s, "old", 3);
    cr_assert_eq(link(file.s, hard.s), 0);
    cr_assert_eq(symlink("file", soft.s), 0);
    cr_assert_eq(symlink("none", dangling.s), 0);
    const struct {
        const char *path;
        int group;
    } names[] = {{file.s, 0},   {hard.s, 0},     {soft.s, 0}, {none.s, 1},
                 {dotted.s, 1}, {dangling.s, 1}, {other.s, 2}};
    enum { NAMES = sizeof names / sizeof names[0] };
    adj_file_id id[NAMES];
    put_file(in_folder(&f, "none.partial").s, "not ours", 8);
    for (int i = 0; i < NAMES; i++)
        cr_expect_eq(check(names[i].path, 1, &id[i]), ADJ_OK);
    cr_expect_eq(stat_of(in_folder(&f, "none.partial").s).st_size, 8);
    unlink(in_folder(&f, "none.partial").s);
    for (int i = 0; i < NAMES; i += 2)
        cr_expect_eq(check(names[i].path, 0, &id[i]), ADJ_OK);
    for (int i = 0; i < NAMES; i++)
        for (int k = 0; k < NAMES; k++)
            cr_expect_eq(memcmp(&id[i], &id[k], sizeof id[i]) == 0,
                         names[i].group == names[k].group, "%s and %s", names[i].path,
                         names[k].path);
    cr_expect_eq(files_in(&f), 4);
    cr_expect_eq(stat_of(file.s).st_size, 3);
    folder_remove(&f);
}
