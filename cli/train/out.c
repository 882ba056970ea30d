/* out.c - see out.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "out.h"

enum { FILES = 4, OTHERS = 8 };

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static char *join(const char *folder, const char *name)
{
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    if (path != NULL)
        snprintf(path, n, "%s%s%s", folder, ends_in(folder, "/") ? "" : "/", name);
    return path;
}

int out_open(out_files *o, const char *name)
{
    *o = (out_files){0};
    if (name == NULL)
        return CONTINUE;
    if (name[0] == '\0' || is_stdout(name) || ends_in(name, ".safetensors")) {
        o->weights = strdup(name);
        return o->weights != NULL ? CONTINUE : complain("train", EXIT_FAILED, "out of memory");
    }
    static const char *const formats[] = {".pt",   ".pth",  ".bin", ".h5",  ".hdf5", ".keras",
                                          ".onnx", ".ckpt", ".npz", ".npy", ".pkl",  ".h"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (ends_in(name, formats[i]))
            return complain("train", EXIT_USAGE,
                            "--out: %s: expected NAME.safetensors, - or a folder's name", name);
    o->is_folder = 1;
    o->folder = strdup(name);
    o->weights = join(name, "weights.safetensors");
    o->best = join(name, "best.safetensors");
    o->metrics = join(name, "metrics.jsonl");
    o->report = join(name, "report.html");
    if (o->folder == NULL || o->weights == NULL || o->best == NULL || o->metrics == NULL ||
        o->report == NULL)
        return complain("train", EXIT_FAILED, "out of memory");
    return CONTINUE;
}

/* Checks that the parent of a folder that does not exist can be written. */
static int check_parent(const char *command, const out_files *o)
{
    char *parent = strdup(o->folder);
    int status = CONTINUE;
    if (parent == NULL)
        return complain(command, EXIT_FAILED, "out of memory");
    size_t n = strlen(parent);
    while (n > 1 && parent[n - 1] == '/')
        parent[--n] = '\0';
    char *slash = strrchr(parent, '/');
    if (slash != NULL)
        slash[slash == parent] = '\0';
    if (access(slash != NULL ? parent : ".", W_OK | X_OK) != 0)
        status = complain(command, EXIT_FAILED, "--out: %s: %s", o->folder, strerror(errno));
    free(parent);
    return status;
}

int out_check(const char *command, const out_files *o, int n, const output_file other[])
{
    output_file all[FILES + OTHERS] = {{"--out", o->weights, OUTPUT_REPLACED_OR_STDOUT},
                                       {"--out", o->best, OUTPUT_REPLACED},
                                       {"--out", o->metrics, OUTPUT_IN_PLACE},
                                       {"--out", o->report, OUTPUT_REPLACED}};
    struct stat s;
    int own = FILES;
    if (o->is_folder && stat(o->folder, &s) != 0) {
        own = 0;
        int status = errno == ENOENT ? check_parent(command, o)
                                     : complain(command, EXIT_FAILED, "--out: %s: %s", o->folder,
                                                strerror(errno));
        if (status != CONTINUE)
            return status;
    } else if (o->is_folder && !S_ISDIR(s.st_mode))
        return complain(command, EXIT_FAILED,
                        "--out: %s: is not a folder (a weights file's name ends in .safetensors)",
                        o->folder);
    memcpy(all + own, other, (size_t)n * sizeof *other);
    return check_outputs(command, own + n, all);
}

int out_make(out_files *o)
{
    if (!o->is_folder || (o->made = mkdir(o->folder, 0777) == 0) || errno == EEXIST)
        return CONTINUE;
    return complain("train", EXIT_FAILED, "--out: %s: %s", o->folder, strerror(errno));
}

void out_close(out_files *o, int failed)
{
    if (failed && o->made)
        (void)rmdir(o->folder); /* a folder that is not empty stays */
    free(o->folder);
    free(o->weights);
    free(o->best);
    free(o->metrics);
    free(o->report);
    *o = (out_files){0};
}
