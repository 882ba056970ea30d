/* output.c - see output.h. */
#include <string.h>

#include "adjoint_io.h"
#include "command.h"
#include "output.h"

int is_stdout(const char *path) { return path != NULL && strcmp(path, "-") == 0; }

static int is_file(const output_file *f)
{
    return f->path != NULL && !(f->kind == OUTPUT_OR_STDOUT && is_stdout(f->path));
}

static int check(const char *command, const output_file *f, adj_file_id *id)
{
    char message[ADJ_MESSAGE];
    if (f->path[0] == '\0')
        return complain(command, EXIT_USAGE, "%s: the file's name is empty", f->option);
    if (adj_file_check(f->path, f->kind != OUTPUT_REPLACED, id, message, sizeof message) != ADJ_OK)
        return complain(command, EXIT_FAILED, "%s: %s", f->option, message);
    return CONTINUE;
}

int check_outputs(const char *command, int n, const output_file file[])
{
    enum { MOST = 8 };
    adj_file_id id[MOST];
    int status = CONTINUE;
    for (int i = 0; i < n && i < MOST && status == CONTINUE; i++) {
        if (!is_file(&file[i]))
            continue;
        status = check(command, &file[i], &id[i]);
        for (int k = 0; k < i && status == CONTINUE; k++)
            if (is_file(&file[k]) && memcmp(&id[k], &id[i], sizeof id[i]) == 0)
                status = complain(command, EXIT_USAGE, "%s and %s name one file (%s)",
                                  file[k].option, file[i].option, file[i].path);
    }
    return status;
}
