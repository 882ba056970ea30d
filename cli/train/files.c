/* files.c - see files.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/standard.h"
#include "files.h"

/* ---- locks ---- */

/* Locks an open file. Returns 0, or -1 with errno EWOULDBLOCK if another training holds it. Pipes,
 * devices and some file systems have no locks, and are not refused. */
static int lock_open_file(int fd)
{
    struct stat s;
    const int is_locked = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
                          flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return is_locked ? -1 : 0;
}

/* Returns the name of the lock of the file that path leads to, or NULL with errno. */
static char *name_of(const char *path)
{
    char *name = NULL, *file = realpath(path, NULL);
    if (asprintf(&name, "%s.lock", file != NULL ? file : path) < 0)
        name = NULL;
    free(file);
    return name;
}

/* True if the open file still has its name: its previous owner may have removed it. */
static int is_named(int fd, const char *name)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(name, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/* Creates and locks FILE.lock; does nothing for path NULL. Returns 0, or -1 with errno. */
static int lock_take(file_lock *l, const char *path)
{
    if (path == NULL)
        return 0;
    char *name = name_of(path);
    int fd = -1, is_held = 0;
    while (name != NULL && !is_held) {
        fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 || lock_open_file(fd) != 0)
            break;
        is_held = is_named(fd, name);
        if (!is_held)
            close(fd);
    }
    if (is_held) {
        *l = (file_lock){name, fd};
        return 0;
    }
    const int why = name == NULL ? ENOMEM : errno;
    if (fd >= 0)
        close(fd);
    free(name);
    errno = why;
    return -1;
}

/* Removes FILE.lock, if it is held. */
static void lock_release(file_lock *l)
{
    if (l->path == NULL)
        return;
    unlink(l->path); /* before unlocking, while no other process can have the name */
    close(l->fd);
    free(l->path);
    *l = (file_lock){0};
}

/* Returns the message for errno after a lock failed or a file could not be opened. */
static const char *lock_error(void)
{
    return errno == EWOULDBLOCK ? "in use by another training run" : strerror(errno);
}

/* ---- logs ---- */

/* True if the file ends in a complete line. */
static int ends_in_a_line(const char *path)
{
    struct stat s;
    int last = '\n';
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) /* a pipe must not be read */
        return 1;
    FILE *f = fopen(path, "r");
    if (f != NULL && fseek(f, -1, SEEK_END) == 0)
        last = fgetc(f);
    if (f != NULL)
        fclose(f);
    return last == '\n';
}

/* Opens and locks the file, and empties it unless append is set. Returns -1 with errno on failure.
 */
static int open_file(const char *path, int append)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (fd < 0)
        return -1;
    const int locked = lock_open_file(fd) != 0;
    if (!locked && (append || ftruncate(fd, 0) == 0 || errno == EINVAL)) /* EINVAL: a pipe */
        return fd;
    const int why = locked ? EWOULDBLOCK : errno;
    close(fd);
    errno = why;
    return -1;
}

/* Opens and locks the file. append: keeps its lines and starts a new one behind them. Returns NULL
 * with errno on failure, EWOULDBLOCK if another training writes it. */
static FILE *log_open(const char *path, int append)
{
    int whole = !append || ends_in_a_line(path);
    const int fd = open_file(path, append);
    FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (f == NULL) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (setvbuf(f, NULL, _IONBF, 0) != 0) {
        fclose(f);
        return NULL;
    }
    if (!whole)
        fputc('\n', f); /* a failure shows in the next line */
    return f;
}

int log_line(FILE *f, json_t *object)
{
    char *text = f != NULL && object != NULL
                     ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9))
                     : NULL;
    size_t n = text != NULL ? strlen(text) : 0;
    int failed = object == NULL || (f != NULL && text == NULL) || json_is_out_of_memory();
    if (text != NULL && !failed) {
        text[n] = '\n'; /* instead of the final 0: one write of the whole line */
        failed |= fwrite(text, 1, n + 1, f) != n + 1;
    }
    json_decref(object);
    free(text);
    return failed;
}

/* ---- the files of a run ---- */

static char *join(const char *folder, const char *name)
{
    char *path = NULL;
    const char *between = ends_in(folder, "/") ? "" : "/";
    return or_exit(asprintf(&path, "%s%s%s", folder, between, name) >= 0 ? path : NULL);
}

/* Sets the names of the files of --out. CONTINUE, or an exit status after a complaint. */
static int name_outputs(out_files *o, const char *name)
{
    if (name == NULL)
        return CONTINUE;
    if (name[0] == '\0' || is_stdout(name) || ends_in(name, ".safetensors")) {
        o->weights = or_exit(strdup(name));
        return CONTINUE;
    }
    static const char *const formats[] = {".pt",   ".pth",  ".bin", ".h5",  ".hdf5", ".keras",
                                          ".onnx", ".ckpt", ".npz", ".npy", ".pkl",  ".h"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (ends_in(name, formats[i]))
            return complain(EXIT_USAGE,
                            "--out: %s: expected NAME.safetensors, - or a folder's name", name);
    size_t n = strlen(name);
    while (n > 1 && name[n - 1] == '/')
        n--;
    o->is_folder = 1;
    o->folder = or_exit(strndup(name, n));
    o->weights = join(name, "weights.safetensors");
    o->best = join(name, "best.safetensors");
    o->metrics = join(name, "metrics.jsonl");
    o->report = join(name, "report.html");
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
        return complain(EXIT_FAILED,
                        "--out: %s: is not a folder (a weights file's name ends in .safetensors)",
                        o->folder);
    memcpy(all + own, other, (size_t)n * sizeof *other);
    return check_outputs(own + n, all);
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
        complain(EXIT_OK, "note: --out %s: the files of an older run are replaced", o->out);
    if ((is_stdout(o->log) || is_stdout(o->out)) && (f->output = take_stdout()) == NULL)
        return complain(EXIT_FAILED, "standard output cannot be written: %s", strerror(errno));
    return CONTINUE;
}

static int lock_replaced(file_lock *l, const char *option, const char *path)
{
    return lock_take(l, path) == 0
               ? CONTINUE
               : complain(EXIT_FAILED, "%s: %s: %s", option, path, lock_error());
}

int files_open(run_files *f, const train_opts *o)
{
    f->out.made = f->out.is_folder && mkdir(f->out.folder, 0777) == 0;
    if (f->out.is_folder && !f->out.made && errno != EEXIST)
        return complain(EXIT_FAILED, "--out: %s: %s", f->out.folder, strerror(errno));
    int status = lock_replaced(&f->checkpoint_lock, "--checkpoint", o->checkpoint);
    if (status == CONTINUE && !f->out.is_folder && !is_stdout(o->out))
        status = lock_replaced(&f->weights_lock, "--out", o->out);
    if (status != CONTINUE)
        return status;
    if (is_stdout(o->log))
        f->log = f->output;
    else if (o->log != NULL && (f->log = log_open(o->log, o->resume != 0)) == NULL)
        return complain(EXIT_FAILED, "--log: %s: %s", o->log, lock_error());
    if (f->out.metrics != NULL && (f->metrics = log_open(f->out.metrics, o->resume != 0)) == NULL)
        return complain(EXIT_FAILED, "--out: %s: %s", f->out.metrics, lock_error());
    return CONTINUE;
}

int files_failed(const run_files *f, const train_opts *o)
{
    const int is_log = f->log != NULL && (ferror(f->log) || f->out.metrics == NULL);
    const char *path = is_log ? o->log : f->out.metrics;
    return complain(EXIT_FAILED, "%s: %s cannot be written", is_log ? "--log" : "--out",
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
