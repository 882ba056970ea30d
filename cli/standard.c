/* standard.c - see standard.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/temporary.h"
#include "command.h"
#include "standard.h"

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
static int take_file(const char *command, input_file *f, FILE *all)
{
    const int fd = all != NULL ? dup(fileno(all)) : -1; /* stays open: the name is its own */
    if (all != NULL)
        fclose(all);
    if (fd < 0)
        return complain(command, EXIT_FAILED, "%s: cannot copy %s to a temporary file: %s",
                        f->option, is_stdout(f->path) ? "standard input" : f->path,
                        strerror(errno));
    snprintf(f->own, sizeof f->own, "/proc/self/fd/%d", fd);
    f->name = f->own;
    return CONTINUE;
}

static int keep(const char *command, input_file *f)
{
    FILE *all = tmpfile();
    if (all != NULL && copy(stdin, all) != 0) {
        fclose(all);
        all = NULL;
    }
    return take_file(command, f, all);
}

int open_inputs(const char *command, int n, input_file file[])
{
    input_file *standard = NULL;
    for (int i = 0; i < n; i++) {
        file[i].name = file[i].path;
        if (!is_stdout(file[i].path))
            continue;
        if (standard != NULL)
            return complain(command, EXIT_USAGE, "%s and %s cannot both be standard input",
                            standard->option, file[i].option);
        standard = &file[i];
    }
    return standard != NULL ? keep(command, standard) : CONTINUE;
}

const char *with_words(int n, const input_file file[], const char *sentence, char text[ADJ_MESSAGE])
{
    for (int i = 0; i < n; i++) {
        const char *at = file[i].own[0] != '\0' ? strstr(sentence, file[i].own) : NULL;
        if (at == NULL)
            continue;
        snprintf(text, ADJ_MESSAGE, "%.*s%s%s", (int)(at - sentence), sentence,
                 is_stdout(file[i].path) ? "standard input" : file[i].path,
                 at + strlen(file[i].own));
        return text;
    }
    return sentence;
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

int replace_output(const char *command, const output_file *file, FILE *output,
                   adj_status (*write)(const char *path, const void *source, adj_error *error),
                   const void *source)
{
    adj_error error = {0};
    if (!is_stdout(file->path))
        return write(file->path, source, &error) == ADJ_OK
                   ? EXIT_OK
                   : complain(command, EXIT_FAILED, "%s: %s", file->option, error.message);
    char folder[256], path[sizeof folder + 8];
    if (!temporary_folder_new(folder, sizeof folder))
        return complain(command, EXIT_FAILED, "%s: cannot create the temporary folder %s: %s",
                        file->option, folder, strerror(errno));
    snprintf(path, sizeof path, "%s/file", folder);
    int status = EXIT_OK;
    if (write(path, source, &error) != ADJ_OK)
        status = strncmp(error.message, file->option, strlen(file->option)) == 0
                     ? complain(command, EXIT_FAILED, "%s", error.message)
                     : complain(command, EXIT_FAILED, "%s: %s", file->option, error.message);
    else if (show(path, output) != 0)
        status = output == stdout /* main.c reports its failure at the end */
                     ? EXIT_FAILED
                     : complain(command, EXIT_FAILED, "%s: standard output cannot be written: %s",
                                file->option, strerror(errno));
    unlink(path);
    rmdir(folder);
    return status;
}

int open_made(const char *command, input_file *file,
              adj_status (*make)(const char *path, const void *source, adj_error *error),
              const void *source)
{
    FILE *all = tmpfile();
    const output_file out = {file->path, "-", OUTPUT_REPLACED_OR_STDOUT};
    if (all != NULL && replace_output(command, &out, all, make, source) != EXIT_OK) {
        fclose(all);
        return EXIT_FAILED;
    }
    return take_file(command, file, all);
}
