/* files.c - see files.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/standard.h"
#include "files.h"
#include "log.h"

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

/* Sets the names of the files of --out. CONTINUE, or an exit status after a complaint. */
static int name_outputs(out_files *o, const char *name)
{
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
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    o->is_folder = 1;
    o->folder = strndup(name, n);
    o->weights = join(name, "weights.safetensors");
    o->best = join(name, "best.safetensors");
    o->metrics = join(name, "metrics.jsonl");
    o->report = join(name, "report.html");
    if (o->folder == NULL || o->weights == NULL || o->best == NULL || o->metrics == NULL ||
        o->report == NULL)
        return complain("train", EXIT_FAILED, "out of memory");
    return CONTINUE;
}

/* Checks the files of --out and n others. A missing folder is not made yet; it is checked as a file
 * that could be made. */
static int check_all(const out_files *o, int n, const output_file other[])
{
    enum { FILES = 4, OTHERS = 8 };
    output_file all[FILES + OTHERS] = {{"--out", o->weights, OUTPUT_REPLACED_OR_STDOUT},
                                       {"--out", o->best, OUTPUT_REPLACED},
                                       {"--out", o->metrics, OUTPUT_IN_PLACE},
                                       {"--out", o->report, OUTPUT_REPLACED}};
    struct stat s;
    int own = FILES;
    if (o->is_folder && stat(o->folder, &s) != 0) {
        all[0] = (output_file){"--out", o->folder, OUTPUT_REPLACED};
        own = 1;
    } else if (o->is_folder && !S_ISDIR(s.st_mode))
        return complain("train", EXIT_FAILED,
                        "--out: %s: is not a folder (a weights file's name ends in .safetensors)",
                        o->folder);
    memcpy(all + own, other, (size_t)n * sizeof *other);
    return check_outputs("train", own + n, all);
}

int files_check(run_files *f, const train_opts *o, int writes)
{
    /* Trained weights may replace the initial weights' file. */
    const int continues = o->weights != NULL && o->out != NULL && strcmp(o->weights, o->out) == 0;
    const output_file files[] = {{"--checkpoint", o->checkpoint, OUTPUT_REPLACED},
                                 {"--log", o->log, OUTPUT_OR_STDOUT},
                                 {"--data", o->data.path, INPUT},
                                 {"--map", o->map, INPUT},
                                 {"--weights", continues ? NULL : o->weights, INPUT}};
    int status = name_outputs(&f->out, o->out);
    if (status != CONTINUE || !writes)
        return status;
    status = check_all(&f->out, sizeof files / sizeof files[0], files);
    if (status != CONTINUE)
        return status;
    if (f->out.is_folder && !o->resume && access(f->out.weights, F_OK) == 0)
        complain("train", EXIT_OK, "note: --out %s: the files of an older run are replaced",
                 o->out);
    if ((is_stdout(o->log) || is_stdout(o->out)) && (f->output = take_stdout()) == NULL)
        return complain("train", EXIT_FAILED, "standard output cannot be written: %s",
                        strerror(errno));
    return CONTINUE;
}

static int lock_replaced(file_lock *l, const char *option, const char *path)
{
    return lock_take(l, path) == 0
               ? CONTINUE
               : complain("train", EXIT_FAILED, "%s: %s: %s", option, path, lock_error());
}

int files_open(run_files *f, const train_opts *o)
{
    f->out.made = f->out.is_folder && mkdir(f->out.folder, 0777) == 0;
    if (f->out.is_folder && !f->out.made && errno != EEXIST)
        return complain("train", EXIT_FAILED, "--out: %s: %s", f->out.folder, strerror(errno));
    int status = lock_replaced(&f->checkpoint_lock, "--checkpoint", o->checkpoint);
    if (status == CONTINUE && !f->out.is_folder && !is_stdout(o->out))
        status = lock_replaced(&f->weights_lock, "--out", o->out);
    if (status != CONTINUE)
        return status;
    if (is_stdout(o->log))
        f->log = f->output;
    else if (o->log != NULL && (f->log = log_open(o->log, o->resume != 0)) == NULL)
        return complain("train", EXIT_FAILED, "--log: %s: %s", o->log, lock_error());
    if (f->out.metrics != NULL && (f->metrics = log_open(f->out.metrics, o->resume != 0)) == NULL)
        return complain("train", EXIT_FAILED, "--out: %s: %s", f->out.metrics, lock_error());
    return CONTINUE;
}

int files_failed(const run_files *f, const train_opts *o)
{
    const int is_log = f->log != NULL && (ferror(f->log) || f->out.metrics == NULL);
    const char *path = is_log ? o->log : f->out.metrics;
    return complain("train", EXIT_FAILED, "%s: %s cannot be written", is_log ? "--log" : "--out",
                    is_log && is_stdout(path) ? "standard output" : path);
}

/* Each line was written at once, and the copy to standard output has reported any failure: closing
 * loses nothing. */
void files_close(run_files *f, int failed)
{
    if (f->log != NULL)
        fclose(f->log);
    if (f->output != NULL && f->output != f->log)
        fclose(f->output);
    if (f->metrics != NULL)
        fclose(f->metrics);
    lock_release(&f->checkpoint_lock);
    lock_release(&f->weights_lock);
    if (failed && f->out.made)
        (void)rmdir(f->out.folder); /* a folder that is not empty stays */
    free(f->out.folder);
    free(f->out.weights);
    free(f->out.best);
    free(f->out.metrics);
    free(f->out.report);
}
