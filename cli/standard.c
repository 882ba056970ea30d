/* standard.c - see standard.h. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/new_file.h"
#include "command.h"
#include "io/io.h"
#include "standard.h"

int ends_in(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* ---- output ---- */

int is_stdout(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static int is_the_output(const output_file *f)
{
    return (f->kind == OUTPUT_REPLACED_OR_STDOUT || f->kind == OUTPUT_OR_STDOUT ||
            f->kind == OUTPUT_REPORT) &&
           is_stdout(f->path);
}

/* True if the path is compared with the others: an output's, or an existing input file's. */
static int is_file(const output_file *f)
{
    struct stat s;
    if (f->kind == INPUT)
        return f->path != NULL && !is_stdout(f->path) && stat(f->path, &s) == 0 &&
               S_ISREG(s.st_mode);
    return f->path != NULL && !is_the_output(f);
}

/* True if the path is a device, which may be named twice and is not replaced. */
static int is_device(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && !S_ISREG(s.st_mode);
}

/* True if the file is replaced by a new one. A file behind /dev/stdout or /dev/fd/N is written in
 * place. */
static int is_replaced(const output_file *f)
{
    return f->kind == OUTPUT_REPLACED || f->kind == OUTPUT_REPLACED_OR_STDOUT ||
           (f->kind == OUTPUT_REPORT && !is_device(f->path) &&
            strncmp(f->path, "/dev/", strlen("/dev/")) != 0);
}

/* Opens a pipe and keeps it open, since closing it before the command writes would end the stream
 * for its reader. */
static int hold_pipe(const output_file *f)
{
    struct stat s;
    if (stat(f->path, &s) != 0 || !S_ISFIFO(s.st_mode) ||
        open(f->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
        return CONTINUE;
    return complain(EXIT_FAILED, "%s: %s: %s", f->option, f->path,
                    errno == ENXIO ? "is a pipe without a reader" : strerror(errno));
}

static int check(const output_file *f)
{
    adj_error error;
    if (adj_file_check(f->path, !is_replaced(f), &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s: %s", f->option, error.message);
    return is_replaced(f) ? CONTINUE : hold_pipe(f);
}

static int identify(const output_file *f, adj_file_id *id)
{
    adj_error error;
    if (adj_file_identify(f->path, id, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s: %s", f->option, error.message);
    return CONTINUE;
}

/* Fails if the file is the other one. */
static int compare(const output_file *f, const output_file *other)
{
    adj_file_id id, of_other;
    if (is_device(f->path) || (f->kind == INPUT && other->kind == INPUT))
        return CONTINUE;
    int status = identify(f, &id);
    if (status == CONTINUE)
        status = identify(other, &of_other);
    if (status == CONTINUE && memcmp(&id, &of_other, sizeof id) == 0)
        status = complain(EXIT_USAGE, "%s and %s name the same file (%s)", other->option, f->option,
                          f->path);
    return status;
}

int refuse_standard(const char *option, const char *path)
{
    if (!is_stdout(path))
        return CONTINUE;
    return complain(EXIT_USAGE,
                    "%s: expected a file, not standard input or output (./- names a file called -)",
                    option);
}

/* Fails if more than one file is standard output. */
static int check_stdout(int n, const output_file file[])
{
    const char *first = NULL;
    for (int i = 0; i < n; i++) {
        if (!is_the_output(&file[i]))
            continue;
        if (first != NULL)
            return complain(EXIT_USAGE, "%s and %s cannot both be standard output", first,
                            file[i].option);
        first = file[i].option;
    }
    return CONTINUE;
}

/* True if path, its links followed, lies in the folder or deeper. */
static int is_below(const char *path, const char *folder)
{
    char *full = realpath(path, NULL), *top = realpath(folder, NULL);
    const size_t n = top != NULL ? strlen(top) : 0;
    const int result = full != NULL && top != NULL && strncmp(full, top, n) == 0 &&
                       (full[n] == '/' || full[n] == '\0' || n == 1);
    free(full);
    free(top);
    return result;
}

/* True if the file is empty or begins like one that a command writes: JSON, safetensors, whose JSON
 * is behind eight bytes, HTML or a tune file. */
static int begins_like_output(const char *path)
{
    static const char tune[] = "adjoint tune";
    char bytes[16] = "";
    FILE *f = fopen(path, "r");
    const size_t n = f != NULL ? fread(bytes, 1, sizeof bytes, f) : sizeof bytes;
    if (f != NULL)
        fclose(f);
    return n == 0 || bytes[0] == '{' || bytes[8] == '{' || bytes[0] == '<' ||
           strncmp(bytes, tune, sizeof tune - 1) == 0;
}

/* Refuses to write into a folder of input where a file is that no command wrote. */
static int compare_with_folder(const output_file *f, const output_file *input)
{
    struct stat s;
    if (input->path == NULL || stat(input->path, &s) != 0 || !S_ISDIR(s.st_mode) ||
        stat(f->path, &s) != 0 || !S_ISREG(s.st_mode) || begins_like_output(f->path))
        return CONTINUE;
    char *folder = strdup(f->path); /* a link's own folder counts as well as its file's */
    const int is_input =
        folder == NULL || is_below(dirname(folder), input->path) || is_below(f->path, input->path);
    free(folder);
    return is_input ? complain(EXIT_USAGE, "%s: %s: belongs to the input %s", f->option, f->path,
                               input->option)
                    : CONTINUE;
}

int check_outputs(int n, const output_file file[])
{
    int status = check_stdout(n, file);
    for (int i = 0; i < n && status == CONTINUE; i++) {
        if (!is_file(&file[i]))
            continue;
        if (file[i].path[0] == '\0')
            return complain(EXIT_USAGE, "%s: the file's name is empty", file[i].option);
        if (refuse_standard(file[i].option, file[i].path) != CONTINUE)
            return EXIT_USAGE;
        for (int k = 0; k < i && status == CONTINUE; k++)
            if (is_file(&file[k]))
                status = compare(&file[i], &file[k]);
    }
    for (int i = 0; i < n && status == CONTINUE; i++) {
        if (file[i].kind == INPUT || !is_file(&file[i]))
            continue;
        for (int k = 0; k < n && status == CONTINUE; k++)
            if (file[k].kind == INPUT)
                status = compare_with_folder(&file[i], &file[k]);
        if (status == CONTINUE)
            status = check(&file[i]);
    }
    return status;
}

typedef struct {
    int (*write)(FILE *f, const void *source);
    const void *source;
} writer;

static int write_new(FILE *f, void *user)
{
    const writer *w = user;
    return w->write(f, w->source) != 0 || ferror(f);
}

int write_output(const output_file *file, int (*write)(FILE *f, const void *source),
                 const void *source)
{
    writer w = {write, source};
    adj_error error;
    if (file->path == NULL)
        return EXIT_OK;
    if (is_the_output(file))
        return write_new(stdout, &w) == 0 && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
    if (is_replaced(file))
        return adj_file_replace(file->path, write_new, &w, &error) == ADJ_OK
                   ? EXIT_OK
                   : complain(EXIT_FAILED, "%s: %s", file->option, error.message);
    FILE *f = fopen(file->path, "w");
    int failed = f == NULL || write_new(f, &w) != 0;
    if (f != NULL)
        failed |= fclose(f) != 0;
    return failed ? complain(EXIT_FAILED, "%s: %s: cannot be written", file->option, file->path)
                  : EXIT_OK;
}

int write_only(const output_file *file, int (*write)(FILE *f, const void *source),
               const void *source)
{
    int status = check_outputs(1, file);
    return status == CONTINUE ? write_output(file, write, source) : status;
}

/* ---- "-" for library functions, which need the name of a file ---- */

enum { CHUNK = 1 << 16 };

/* Copies a stream; returns 0 on success. */
static int copy(FILE *from, FILE *to)
{
    static const size_t one = 1;
    char *chunk = malloc(CHUNK);
    size_t n = 0;
    while (chunk != NULL && (n = fread(chunk, one, CHUNK, from)) > 0)
        if (fwrite(chunk, one, n, to) != n)
            break;
    int failed = chunk == NULL || n > 0 || ferror(from) || fflush(to) != 0;
    free(chunk);
    return failed;
}

/* Gives f the name of a temporary file and closes it, if it was written; NULL: it was not. */
static int take_file(input_file *f, FILE *all)
{
    const int fd = all != NULL ? dup(fileno(all)) : -1; /* stays open: the name is its own */
    if (all != NULL)
        fclose(all);
    if (fd < 0)
        return complain(EXIT_FAILED, "%s: cannot copy %s to a temporary file: %s", f->option,
                        is_stdout(f->path) ? "standard input" : f->path, strerror(errno));
    snprintf(f->own, sizeof f->own, "/proc/self/fd/%d", fd);
    f->name = f->own;
    return CONTINUE;
}

int open_inputs(int n, input_file file[])
{
    input_file *standard = NULL;
    for (int i = 0; i < n; i++) {
        file[i].name = file[i].path;
        if (!is_stdout(file[i].path))
            continue;
        if (standard != NULL)
            return complain(EXIT_USAGE, "%s and %s cannot both be standard input", standard->option,
                            file[i].option);
        standard = &file[i];
    }
    if (standard == NULL)
        return CONTINUE;
    FILE *all = tmpfile();
    if (all != NULL && copy(stdin, all) != 0) {
        fclose(all);
        all = NULL;
    }
    return take_file(standard, all);
}

int complain_of_files(int n, const input_file file[], const char *before, const char *message,
                      const char *after)
{
    for (int i = 0; i < n; i++) {
        const char *at = file[i].own[0] != '\0' ? strstr(message, file[i].own) : NULL;
        if (at != NULL)
            return complain(EXIT_FAILED, "%s%.*s%s%s%s", before, (int)(at - message), message,
                            is_stdout(file[i].path) ? "standard input" : file[i].path,
                            at + strlen(file[i].own), after);
    }
    return complain(EXIT_FAILED, "%s%s%s", before, message, after);
}

int read_tensors(const input_file *file, adj_tensors **t)
{
    char option[40] = "";
    if (file->option[0] == '-')
        snprintf(option, sizeof option, "%s: ", file->option);
    if (adj_tensors_read(file->name, t) != ADJ_OK)
        return complain_of_files(1, file, option, (*t)->message, "");
    return (*t)->n > 0 ? CONTINUE
                       : complain(EXIT_FAILED, "%s%s: has no tensors", option, file->path);
}

const char *tensor_name(const input_file *file, const char *name)
{
    const char *slash = strrchr(file->own, '/');
    return slash != NULL && is_stdout(file->path) && strcmp(name, slash + 1) == 0 ? "arr_0" : name;
}

FILE *take_stdout(void)
{
    fflush(stdout);
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    FILE *output = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (output == NULL && fd >= 0)
        close(fd);
    if (output != NULL) {
        setvbuf(output, NULL, _IONBF, 0); /* a line of a log is written at once */
        dup2(STDERR_FILENO, STDOUT_FILENO);
    }
    return output;
}

/* Copies the file to output; returns 0 on success. */
static int show(const char *path, FILE *output)
{
    FILE *f = fopen(path, "r");
    int failed = f == NULL || copy(f, output) != 0;
    if (f != NULL)
        fclose(f);
    return failed;
}

int replace_output(const output_file *file, FILE *output,
                   adj_status (*write)(const char *path, const void *source, adj_error *error),
                   const void *source)
{
    adj_error error = {0};
    if (!is_stdout(file->path))
        return write(file->path, source, &error) == ADJ_OK
                   ? EXIT_OK
                   : complain(EXIT_FAILED, "%s: %s", file->option, error.message);
    char folder[256], path[sizeof folder + 8];
    if (!temporary_folder_new(folder, sizeof folder))
        return complain(EXIT_FAILED, "%s: cannot create the temporary folder %s: %s", file->option,
                        folder, strerror(errno));
    snprintf(path, sizeof path, "%s/file", folder);
    int status = EXIT_OK;
    if (write(path, source, &error) != ADJ_OK)
        status = strncmp(error.message, file->option, strlen(file->option)) == 0
                     ? complain(EXIT_FAILED, "%s", error.message)
                     : complain(EXIT_FAILED, "%s: %s", file->option, error.message);
    else if (show(path, output) != 0)
        status = output == stdout /* main.c reports its failure at the end */
                     ? EXIT_FAILED
                     : complain(EXIT_FAILED, "%s: standard output cannot be written: %s",
                                file->option, strerror(errno));
    unlink(path);
    rmdir(folder);
    return status;
}

int open_made(input_file *file,
              adj_status (*make)(const char *path, const void *source, adj_error *error),
              const void *source)
{
    FILE *all = tmpfile();
    const output_file out = {file->path, "-", OUTPUT_REPLACED_OR_STDOUT};
    if (all != NULL && replace_output(&out, all, make, source) != EXIT_OK) {
        fclose(all);
        return EXIT_FAILED;
    }
    return take_file(file, all);
}
