/* test_layering.c - who includes whom, read from the sources' #include lines.
 *
 * A folder's files include what the table allows and headers of their own folder. Public headers
 * are looked up in include/ alone, so a core header cannot slip into an op, nor a backend into the
 * core. Run from the project's folder; skipped elsewhere. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const char *folder;
    const char *may; /* headers that may be included, besides the folder's own */
} rule;

static const rule rules[] = {
    {"include", "adjoint.h adjoint_nn.h"},
    {"graph", "adjoint.h adjoint_check.h adjoint_ext.h"},
    {"ops", "adjoint.h adjoint_ext.h"},
    {"ops/nn", "adjoint.h adjoint_nn.h adjoint_io.h"},
    {"backends", "adjoint.h adjoint_ext.h"},
    {"io", "adjoint.h adjoint_nn.h adjoint_io.h ../graph/new_file.h"}, /* no part of the graph */
    {"cli", "adjoint.h adjoint_check.h adjoint_ext.h adjoint_nn.h adjoint_io.h"},
    {"examples", "adjoint.h adjoint_nn.h adjoint_io.h"},
};

/* What belongs to one part of the project only. */
static const struct {
    const char *word, *folder;
} confined[] = {
    {"<oneapi/dnnl", "backends/onednn"}, {"<dnnl", "backends/onednn"}, {"<zlib.h>", "io"},
    {"<jansson.h>", "io cli"},           {"<criterion", ""},
};

typedef struct {
    int files, wrong;
    char message[4096];
} report;

static void complain(report *r, const char *path, int line, const char *what)
{
    size_t n = strlen(r->message);
    snprintf(r->message + n, sizeof r->message - n, "\n  %s:%d includes %s", path, line, what);
    r->wrong++;
}

static int is_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return 1;
    return 0;
}

static int is_file(const char *folder, const char *name)
{
    char path[512];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static void check_line(report *r, const char *folder, const char *may, const char *path, int line,
                       const char *text)
{
    char name[256];
    if (sscanf(text, "#include \"%255[^\"]\"", name) == 1) {
        if (!is_word(may, name) && !(strchr(name, '/') == NULL && is_file(folder, name)))
            complain(r, path, line, name);
        return;
    }
    if (strncmp(text, "#include <", 10) != 0)
        return;
    for (size_t i = 0; i < sizeof confined / sizeof *confined; i++)
        if (strncmp(text + 9, confined[i].word, strlen(confined[i].word)) == 0 &&
            !is_word(confined[i].folder, folder))
            complain(r, path, line, confined[i].word);
}

static void check_file(report *r, const char *folder, const char *may, const char *name)
{
    char path[512], text[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    r->files++;
    for (int line = 1; fgets(text, sizeof text, f) != NULL; line++)
        check_line(r, folder, may, path, line, text);
    fclose(f);
}

static int is_source(const char *name)
{
    size_t n = strlen(name);
    return n > 2 && (strcmp(name + n - 2, ".c") == 0 || strcmp(name + n - 2, ".h") == 0);
}

static void check_folder(report *r, const char *folder, const char *may)
{
    DIR *d = opendir(folder);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (is_source(e->d_name))
            check_file(r, folder, may, e->d_name);
    closedir(d);
}

/* backends/<b>/ */
static void check_backends(report *r)
{
    DIR *d = opendir("backends");
    cr_assert_not_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char folder[300];
        snprintf(folder, sizeof folder, "backends/%s", e->d_name);
        if (e->d_name[0] != '.' && strchr(e->d_name, '.') == NULL)
            check_folder(r, folder, "adjoint.h adjoint_ext.h");
    }
    closedir(d);
}

Test(layering, includes)
{
    if (!is_file("include", "adjoint.h"))
        cr_skip_test("layering: no sources here; run it from the project's folder");
    report r = {0};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        check_folder(&r, rules[i].folder, rules[i].may);
    check_backends(&r);
    cr_assert_gt(r.files, 20);
    cr_assert_eq(r.wrong, 0, "%d of design section 2's rules are broken:%s", r.wrong, r.message);
}
