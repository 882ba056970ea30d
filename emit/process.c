/* process.c - see process.h. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/new_file.h"

int streams_open(streams *s)
{
    s->in = memfd_create("input", MFD_CLOEXEC);
    s->out = memfd_create("output", MFD_CLOEXEC);
    s->log = memfd_create("log", MFD_CLOEXEC);
    return s->in >= 0 && s->out >= 0 && s->log >= 0;
}

void streams_close(const streams *s)
{
    const int file[] = {s->in, s->out, s->log};
    for (int i = 0; i < 3; i++)
        if (file[i] >= 0)
            close(file[i]);
}

int clear_file(int file) { return ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0; }

int write_all(int file, const void *data, size_t bytes)
{
    for (const char *from = data; bytes > 0;) {
        const ssize_t n = write(file, from, bytes);
        if (n <= 0)
            return 0;
        from += n;
        bytes -= (size_t)n;
    }
    return 1;
}

int read_all(int file, void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        const ssize_t n = pread(file, (char *)data + at, bytes - at, (off_t)at);
        if (n <= 0)
            return 0;
        at += (size_t)n;
    }
    return 1;
}

int run_program(const streams *s, const char *path, char *const arguments[])
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    int status = 0;
    if (lseek(s->in, 0, SEEK_SET) != 0 || !clear_file(s->out) || !clear_file(s->log) ||
        posix_spawn_file_actions_init(&files) != 0)
        return -1;
    const int failed = posix_spawn_file_actions_adddup2(&files, s->in, STDIN_FILENO) != 0 ||
                       posix_spawn_file_actions_adddup2(&files, s->out, STDOUT_FILENO) != 0 ||
                       posix_spawn_file_actions_adddup2(&files, s->log, STDERR_FILENO) != 0 ||
                       posix_spawnp(&pid, path, &files, NULL, arguments, environ) != 0;
    posix_spawn_file_actions_destroy(&files);
    if (failed)
        return -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

void describe_failure(const streams *s, int status, const char *name, char why[ADJ_WHY])
{
    char log[4096];
    const ssize_t n = pread(s->log, log, sizeof log - 1, 0);
    log[n > 0 ? n : 0] = '\0';
    const char *error = strcasestr(log, "error");
    while (error != NULL && error > log && error[-1] != '\n')
        error--;
    if (status == -1)
        snprintf(why, ADJ_WHY, "%s cannot be started", name);
    else if (WIFSIGNALED(status))
        snprintf(why, ADJ_WHY, "%s: SIG%s", name, sigabbrev_np(WTERMSIG(status)));
    else if (error != NULL)
        snprintf(why, ADJ_WHY, "%s: %.*s", name, (int)strcspn(error, "\n"), error);
    else
        snprintf(why, ADJ_WHY, "%s: exit status %d", name, WEXITSTATUS(status));
}

/* The compiler in the folder $1, its program on standard output. The shell removes the folder, also
 * when it is stopped or adjoint is. */
static const char script[] =
    "trap 'rm -rf \"$1\"' EXIT\n"
    "trap 'exit 1' HUP INT TERM\n"
    "cc -std=c99 -O2 -w -x c - -o \"$1/program\" -lm && cat \"$1/program\"\n";

int compile_input(const streams *s, char why[ADJ_WHY])
{
    enum { NOT_FOUND = 127 << 8 }; /* status of a shell that finds no cc */
    char folder[1024], path[sizeof folder + 8], again[40];
    if (!temporary_folder_new(folder, sizeof folder)) {
        snprintf(why, ADJ_WHY, "cannot create the temporary folder %.100s", folder);
        return -1;
    }
    snprintf(path, sizeof path, "%s/file", folder);
    streams own = *s;
    own.out = open(path, O_RDWR | O_CREAT | O_CLOEXEC, S_IRWXU);
    (void)unlink(path);
    char *const words[] = {(char *)"sh", (char *)"-c", (char *)script, (char *)"sh", folder, NULL};
    int status = own.out >= 0 ? run_program(&own, "/bin/sh", words) : -1;
    if (status == NOT_FOUND)
        status = -1;
    (void)rmdir(folder); /* where the shell did not start */
    snprintf(again, sizeof again, "/proc/self/fd/%d", own.out);
    /* Opened again for reading: a file that is open for writing cannot run. */
    const int program = status == 0 ? open(again, O_RDONLY | O_CLOEXEC) : -1;
    if (status == 0 && program < 0)
        snprintf(why, ADJ_WHY, "cannot open the compiled program in /proc/self/fd: %s",
                 strerror(errno));
    if (own.out >= 0)
        close(own.out);
    if (status != 0)
        describe_failure(s, status, status == -1 ? "the C compiler cc" : "cc", why);
    return program;
}
