/* child.h - runs the tool as a child process, in a folder of the test, and keeps what it printed.
 */
#ifndef TESTS_CLI_CHILD_H
#define TESTS_CLI_CHILD_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/folder.h"
#include "tests/plan.h"
#include "tests/temporary.h"

enum { PRINTED = 1 << 16, ARGUMENTS = 64 };

typedef struct {
    int status; /* exit status; 128 + signal */
    char out[PRINTED], err[PRINTED];
} finished;

/* The last run of a program that has ended. */
static finished ran;

typedef struct {
    pid_t pid;
    FILE *out, *err;
} child;

static inline const char *build_folder(void)
{
    const char *build = getenv("BUILD");
    return build != NULL ? build : "build";
}

/* The working folder of a test and of what it starts, once it has entered one; and the one before.
 */
static folder here;
static char top[PATH_MAX] = ".";

static inline void enter(folder f)
{
    char build[PATH_MAX];
    cr_assert_not_null(realpath(build_folder(), build));
    setenv("BUILD", build, 1);
    if (top[0] == '.')
        cr_assert_not_null(getcwd(top, sizeof top));
    cr_assert_eq(chdir(f.path), 0);
    here = f;
}

/* A suite's .init: each of its tests runs in an empty folder. */
static inline void enter_empty(void) { enter(folder_new()); }
/* A suite's .fini. */
static inline void leave(void) { folder_remove(&here); }

/* Starts a program with the NULL-ended arguments; its stdout goes to the file descriptor out, or if
 * that is negative to a temporary file. */
static inline child child_start_path(const char *path, const char *const arguments[], int out)
{
    child c = {.out = temporary_stream(), .err = temporary_stream()};
    char *argv[ARGUMENTS] = {(char *)path};

    cr_assert(c.out != NULL && c.err != NULL);
    for (int i = 0; arguments[i] != NULL && i + 2 < ARGUMENTS; i++)
        argv[i + 1] = (char *)arguments[i];
    c.pid = fork();
    cr_assert_geq(c.pid, 0);
    if (c.pid == 0) {
        dup2(out >= 0 ? out : fileno(c.out), STDOUT_FILENO);
        dup2(fileno(c.err), STDERR_FILENO);
        setenv("ADJOINT_TUNE", "off", 0); /* the user's cache is left alone */
        execv(path, argv);
        _exit(127);
    }
    return c;
}

/* Starts a program of the build folder like child_start_path. */
static inline child child_start_program(const char *name, const char *const arguments[], int out)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", build_folder(), name);
    return child_start_path(path, arguments, out);
}

/* Starts the tool like child_start_program. */
static inline child child_start(const char *const arguments[], int out)
{
    return child_start_program("adjoint", arguments, out);
}

static inline void take(FILE *f, char text[PRINTED])
{
    rewind(f);
    text[fread(text, 1, PRINTED - 1, f)] = '\0';
    fclose(f);
}

static inline int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void child_finish(child *c)
{
    int status = 0;
    cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
    ran.status = exit_status(status);
    take(c->out, ran.out);
    take(c->err, ran.err);
}

/* From here on the tool's own processes may crash, as they are made to: under a sanitizer that is
 * not to be a report in the folder where every report is a failure. */
static inline void expect_crashes(void)
{
    setenv("ASAN_OPTIONS", "handle_segv=0:handle_sigbus=0:handle_abort=0:log_path=stderr", 1);
}

static inline void run_tool(const char *const arguments[])
{
    child c = child_start(arguments, -1);
    child_finish(&c);
}

#define WORDS(...)                                                                                 \
    (const char *[]) { __VA_ARGS__, NULL }

enum { ANY_STATUS = -1 };

/* Splits a line into words, until the next call; '' are around an empty one, and one with spaces.
 */
static inline const char *const *split(const char *line)
{
    static char text[1 << 12];
    static const char *words[ARGUMENTS];
    char *to = text;
    int n = 0;
    for (; n < ARGUMENTS - 1 && *(line += strspn(line, " ")) != '\0'; n++) {
        const char end = *line == '\'' ? *line++ : ' ';
        for (words[n] = to; *line != '\0' && *line != end; line++)
            *to++ = *line;
        *to++ = '\0';
        line += *line != '\0';
    }
    words[n] = NULL;
    return words;
}

static inline void run_line(const char *line) { run_tool(split(line)); }

/* Runs a line of bash, in which printf puts the arguments and to which the tool is adjoint.
 * Returns its exit status; of a pipe, that of its last command that failed. */
__attribute__((format(printf, 1, 2))) static inline int shell(const char *format, ...)
{
    static char command[1 << 13];
    const int n =
        snprintf(command, sizeof command, "PATH=\"%s:$PATH\"; exec </dev/null; ", build_folder());
    va_list args;
    va_start(args, format);
    vsnprintf(command + n, sizeof command - (size_t)n, format, args);
    va_end(args);
    child c = child_start_path("/bin/bash", WORDS("-o", "pipefail", "-c", command), -1);
    child_finish(&c);
    return ran.status;
}

/* ---- JSON, which lives until the test ends ---- */

static inline json_t *json_kept(json_t *j)
{
    static json_t *all;
    all = all != NULL ? all : json_array();
    json_array_append_new(all, j);
    return j;
}

/* The object or list that is all of a text, or its first with JSON_DISABLE_EOF_CHECK. */
static inline json_t *json_first(const char *text, size_t flags)
{
    json_error_t error;
    json_t *j = json_loads(text, flags, &error);
    cr_assert_not_null(j, "%s in line %d of %s", error.text, error.line, text);
    return json_kept(j);
}

static inline json_t *json_of(const char *text) { return json_first(text, JSON_REJECT_DUPLICATES); }

/* That of a file, which is removed. */
static inline json_t *json_of_file(const char *path)
{
    json_t *j = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    unlink(path);
    cr_assert_not_null(j, "%s", path);
    return json_kept(j);
}

static inline double number_in(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    cr_assert(json_is_number(v), "%s", key);
    return json_number_value(v);
}

static inline const char *word_in(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static inline int truth_in(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

/* The object of a list that has the name. */
static inline json_t *named(json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *o = json_array_get(list, i);
        if (strcmp(word_in(o, "name"), name) == 0)
            return o;
    }
    cr_assert_fail("no %s", name);
    return NULL;
}

/* ---- lines in which printf puts the arguments ---- */

static inline const char *line_of(const char *format, va_list args)
{
    static char line[1 << 12];
    cr_assert_lt(vsnprintf(line, sizeof line, format, args), (int)sizeof line, "%s", format);
    return line;
}

static inline void run_to(int status, const char *line)
{
    run_line(line);
    cr_assert(status == ANY_STATUS || ran.status == status, "%s: status %d (expected %d): %s%s",
              line, ran.status, status, ran.out, ran.err);
}

/* Starts the tool with the words of a line. */
__attribute__((format(printf, 1, 2))) static inline child tool_start(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const child c = child_start(split(line_of(format, args)), -1);
    va_end(args);
    return c;
}

/* Runs the tool with the words of a line and expects that exit status. */
__attribute__((format(printf, 2, 3))) static inline void tool(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run_to(status, line_of(format, args));
    va_end(args);
}

/* Runs the tool likewise and expects it to print the text. */
__attribute__((format(printf, 3, 4))) static inline void prints(int status, const char *text,
                                                                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run_to(status, line_of(format, args));
    va_end(args);
    expect_text(ran.out, text);
}

/* Runs the tool likewise and expects the text among its messages. */
__attribute__((format(printf, 3, 4))) static inline void complains(int status, const char *text,
                                                                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    run_to(status, line_of(format, args));
    va_end(args);
    expect_text(ran.err, text);
}

#endif
