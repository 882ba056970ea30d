/* files.c - see files.h. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/standard.h"
#include "files.h"
#include "log.h"

int files_check(run_files *f, const train_opts *o, int writes)
{
    /* Trained weights may replace the initial weights' file. */
    const int continues = o->weights != NULL && o->out != NULL && strcmp(o->weights, o->out) == 0;
    const output_file files[] = {{"--checkpoint", o->checkpoint, OUTPUT_REPLACED},
                                 {"--log", o->log, OUTPUT_OR_STDOUT},
                                 {"--data", o->data.path, INPUT},
                                 {"--map", o->map, INPUT},
                                 {"--weights", continues ? NULL : o->weights, INPUT}};
    int status = out_open(&f->out, o->out);
    if (status != CONTINUE || !writes)
        return status;
    status = out_check("train", &f->out, sizeof files / sizeof files[0], files);
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
    int status = out_make(&f->out);
    if (status == CONTINUE)
        status = lock_replaced(&f->checkpoint_lock, "--checkpoint", o->checkpoint);
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
    out_close(&f->out, failed);
}
