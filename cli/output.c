/* output.c - see output.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "command.h"
#include "output.h"

int is_stdout(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static int is_file(const output_file *f)
{
    return f->path != NULL && !(f->kind == OUTPUT_OR_STDOUT && is_stdout(f->path));
}

/* A device may be named twice, and is itself whatever is written to it. */
static int is_device(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

/* Who closes a pipe tells its reader that it has ended: so it stays open from here on, for the
 * command's own opening. */
static int hold_pipe(const char *command, const output_file *f)
{
    struct stat s;
    if (stat(f->path, &s) != 0 || !S_ISFIFO(s.st_mode) ||
        open(f->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
        return CONTINUE;
    return complain(command, EXIT_FAILED, "%s: %s: %s", f->option, f->path,
                    errno == ENXIO ? "is a pipe that nobody reads" : strerror(errno));
}

static int check(const char *command, const output_file *f)
{
    adj_error error;
    if (adj_file_check(f->path, f->kind != OUTPUT_REPLACED, &error) != ADJ_OK)
        return complain(command, EXIT_FAILED, "%s: %s", f->option, error.message);
    return f->kind == OUTPUT_REPLACED ? CONTINUE : hold_pipe(command, f);
}

static int identify(const char *command, const output_file *f, int partial, adj_file_id *id)
{
    adj_error error;
    if (adj_file_identify(f->path, partial, id, &error) != ADJ_OK)
        return complain(command, EXIT_FAILED, "%s: %s", f->option, error.message);
    return CONTINUE;
}

/* Whether the file is the other one, or what the other one is called while it is written. */
static int compare(const char *command, const output_file *f, const output_file *other)
{
    adj_file_id id, of_other;
    if (is_device(f->path))
        return CONTINUE;
    int names = other->kind == OUTPUT_REPLACED ? 2 : 1;
    int status = identify(command, f, 0, &id);
    for (int partial = 0; partial < names && status == CONTINUE; partial++) {
        status = identify(command, other, partial, &of_other);
        if (status == CONTINUE && memcmp(&id, &of_other, sizeof id) == 0)
            status = complain(command, EXIT_USAGE, "%s and %s name one file (%s%s)", other->option,
                              f->option, f->path,
                              partial ? ", which the first is called until it is whole" : "");
    }
    return status;
}

int check_outputs(const char *command, int n, const output_file file[])
{
    int status = CONTINUE;
    for (int i = 0; i < n && status == CONTINUE; i++) {
        if (!is_file(&file[i]))
            continue;
        if (file[i].path[0] == '\0')
            return complain(command, EXIT_USAGE, "%s: the file's name is empty", file[i].option);
        for (int k = 0; k < i && status == CONTINUE; k++)
            if (is_file(&file[k])) {
                status = compare(command, &file[i], &file[k]);
                if (status == CONTINUE && file[i].kind == OUTPUT_REPLACED)
                    status = compare(command, &file[k], &file[i]);
            }
    }
    for (int i = 0; i < n && status == CONTINUE; i++)
        if (is_file(&file[i]))
            status = check(command, &file[i]);
    return status;
}

int write_output(const char *command, const output_file *file,
                 int (*write)(FILE *f, const void *source), const void *source)
{
    if (file->path == NULL)
        return EXIT_OK;
    if (file->kind == OUTPUT_OR_STDOUT && is_stdout(file->path))
        return write(stdout, source) == 0 && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
    FILE *f = fopen(file->path, "w");
    int failed = f == NULL || write(f, source) != 0;
    if (f != NULL)
        failed |= fclose(f) != 0;
    return failed ? complain(command, EXIT_FAILED, "%s: %s: cannot be written", file->option,
                             file->path)
                  : EXIT_OK;
}
