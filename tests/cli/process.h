/* process.h - waiting for the tool's processes, and what /proc says of them. */
#ifndef TESTS_CLI_PROCESS_H
#define TESTS_CLI_PROCESS_H

#include <time.h>

#include "cli/child.h"

enum { PROC_TEXT = 4096 };

static inline void pause_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static inline int has_ended(const child *c)
{
    siginfo_t ended = {0};
    cr_assert_eq(waitid(P_PID, (id_t)c->pid, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    return ended.si_pid != 0;
}

/* Waits until the file has so many bytes, or the child has ended. */
static inline void wait_for_file(const child *c, const char *path, off_t bytes)
{
    struct stat s;
    while (!has_ended(c) && (stat(path, &s) != 0 || s.st_size < bytes))
        pause_ms(2);
}

/* Sends the signal and expects the exit status that says so. */
static inline void stop_child(child *c, int number)
{
    kill(c->pid, number);
    child_finish(c);
    cr_assert_eq(ran.status, 128 + number, "%d: %s", ran.status, ran.err);
}

/* Reads a file of /proc/PID; nothing if there is none. Returns its length. */
static inline size_t read_proc(pid_t pid, const char *name, char text[PROC_TEXT])
{
    char path[128];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    FILE *f = fopen(path, "r");
    const size_t n = f != NULL ? fread(text, 1, PROC_TEXT - 1, f) : 0;
    if (f != NULL)
        fclose(f);
    text[n] = '\0';
    return n;
}

/* The first process that this one has started and that is still there; 0: none. */
static inline pid_t child_of(pid_t parent)
{
    char name[64], text[PROC_TEXT];
    snprintf(name, sizeof name, "task/%d/children", (int)parent);
    read_proc(parent, name, text);
    return (pid_t)strtol(text, NULL, 10);
}

/* The process of a kernel that the tool has started; 0: none now. */
static inline pid_t trial_of(pid_t tool)
{
    char text[PROC_TEXT];
    const pid_t pid = child_of(tool);
    const size_t n = pid > 0 ? read_proc(pid, "cmdline", text) : 0;
    return n > sizeof "adjoint" && strcmp(text + sizeof "adjoint", "--trial") == 0 ? pid : 0;
}

/* True if the signal is in a set of the process: "SigCgt:", those it catches; "SigIgn:", those it
 * ignores. */
static inline int is_in_signals(pid_t pid, const char *set, int number)
{
    char text[PROC_TEXT];
    read_proc(pid, "status", text);
    const char *mask = strstr(text, set);
    return mask != NULL && strtoull(mask + strlen(set), NULL, 16) >> (number - 1) & 1;
}

#endif
