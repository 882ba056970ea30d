/* selftest.c - adjoint selftest: tries this machine's oneDNN on a sweep of convolutions and writes
 * what is wrong to a quarantine file.
 *
 * A process of its own tries many cases; when it crashes, hangs or reports a fault, a row is
 * written, and another process goes on: with the same case, to see what is taken instead. The file
 * is replaced whole after every batch and says how far it is, so that --resume can go on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "guard.h"
#include "progress.h"
#include "sweep.h"

enum { BATCH = 64, MOST_TRIES = 8, ROW = 400 };

typedef struct {
    const char *out;
    int64_t cases, resume, bare;
    double seconds;

    char (*row)[ROW];
    int n_row, room, tries;
    int64_t next, started;
    double began, shown;
    char machine[64];
} selftest;

static int parse(selftest *s, int argc, char **argv)
{
    const option options[] = {
        {"--out", "FILE", "the quarantine file; default: quarantine.txt", OPTION_TEXT, &s->out, 0,
         0},
        {"--resume", "", "go on where the file says", OPTION_FLAG, &s->resume, 0, 0},
        {"--cases", "N", "how many; default: 3000, a sample of all", OPTION_INTEGER, &s->cases, 1,
         (double)sweep_size()},
        {"--timeout", "SECONDS", "of 64 cases; default: 300", OPTION_REAL, &s->seconds, 0.1, 1e4},
        {"--unquarantined", "", "try what is known to be wrong as well", OPTION_FLAG, &s->bare, 0,
         0},
    };
    const usage u = {"selftest", "Tries this machine's oneDNN and writes a quarantine file.",
                     sizeof options / sizeof options[0], options};
    return parse_options(&u, argc, argv);
}

/* ---- the file ---- */

static int add_row(selftest *s, const char *text)
{
    if (s->n_row == s->room) {
        int room = 2 * s->room + 16;
        void *more = realloc(s->row, (size_t)room * sizeof *s->row);
        if (more == NULL)
            return complain("selftest", EXIT_FAILED, "out of memory");
        s->row = more;
        s->room = room;
    }
    snprintf(s->row[s->n_row++], ROW, "%s", text);
    return CONTINUE;
}

/* Written beside and renamed: it is whole at every moment. */
static int write_file(const selftest *s)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.new", s->out);
    FILE *f = fopen(path, "w");
    int failed = f == NULL;
    if (f != NULL) {
        fprintf(f, "# implementations that adjoint selftest found to be wrong\n");
        for (int i = 0; i < s->n_row; i++)
            fprintf(f, "%s\n", s->row[i]);
        fprintf(f, "# tried %lld\n", (long long)s->next);
        failed = fflush(f) != 0 || fsync(fileno(f)) != 0;
        failed |= fclose(f) != 0 || rename(path, s->out) != 0;
    }
    return failed ? complain("selftest", EXIT_FAILED, "--out: %s: %s", s->out, strerror(errno))
                  : CONTINUE;
}

/* The number behind a word; NULL if the line does not begin with it, else what follows. */
static char *number_after(char *line, const char *word, int64_t *number)
{
    char *end;
    if (strncmp(line, word, strlen(word)) != 0)
        return NULL;
    errno = 0;
    *number = strtoll(line + strlen(word), &end, 10);
    return end != line + strlen(word) && errno == 0 ? end : NULL;
}

static int read_file(selftest *s)
{
    char line[ROW];
    int64_t next = -1;
    int status = CONTINUE;
    FILE *f = fopen(s->out, "r");
    if (f == NULL)
        return complain("selftest", EXIT_FAILED, "--resume: %s: %s", s->out, strerror(errno));
    while (status == CONTINUE && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#' && line[0] != '\0')
            status = add_row(s, line);
        else
            number_after(line, "# tried ", &next);
    }
    fclose(f);
    if (status == CONTINUE && (next < 0 || next > sweep_size()))
        return complain("selftest", EXIT_FAILED,
                        "--resume: %s does not say how far it is (expected \"# tried N\")", s->out);
    s->next = s->started = next;
    return status;
}

/* ---- progress ---- */

static void show(selftest *s)
{
    enum { WIDTH = 30 };
    double now = seconds_now(), took = now - s->began;
    int64_t done = s->next - s->started, left = s->cases - s->next;
    int filled = (int)(WIDTH * s->next / s->cases);
    if (left > 0 && now - s->shown < (isatty(STDERR_FILENO) ? 0.2 : 30))
        return;
    s->shown = now;
    double seconds = done > 0 ? took / (double)done * (double)left : 0;
    fprintf(stderr, "%s[%.*s%.*s] %lld of %lld cases, %d found, %d:%02d left%s",
            isatty(STDERR_FILENO) ? "\r" : "", filled, "##############################",
            WIDTH - filled, "..............................", (long long)s->next,
            (long long)s->cases, s->n_row, (int)(seconds / 60), (int)seconds % 60,
            isatty(STDERR_FILENO) && left > 0 ? "  " : "\n");
}

/* ---- cases ---- */

/* A row for case i, which this implementation got wrong. */
static int report(selftest *s, int64_t i, const char *implementation, const char *what)
{
    char text[ROW], key[256];
    sweep_case c = sweep_at(i);
    sweep_text(&c, implementation, key, sizeof key);
    snprintf(text, sizeof text, "%s %s %s", s->machine, key, what);
    int status = add_row(s, text);
    if (status == CONTINUE)
        status = write_file(s);
    /* the same case again, with what is taken instead; not when the file is not read */
    s->next = s->bare || ++s->tries == MOST_TRIES ? i + 1 : i;
    if (s->next > i)
        s->tries = 0;
    return status;
}

/* Goes through what the child said before it ended. */
static int read_answer(selftest *s, char *answer, const char *end)
{
    char implementation[64] = "", *rest = NULL, *more;
    int64_t at = -1, number;
    for (char *line = strtok_r(answer, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "error ", 6) == 0)
            return complain("selftest", EXIT_FAILED, "%s", line + 6);
        if ((more = number_after(line, "start ", &number)) != NULL && *more == ' ') {
            snprintf(implementation, sizeof implementation, "%s", more + 1);
            at = number;
        } else if (number_after(line, "done ", &number) != NULL) {
            s->next = number + 1;
            s->tries = 0;
            at = -1;
        } else if ((more = number_after(line, "fault ", &number)) != NULL && *more == ' ')
            return report(s, number, implementation, more + 1);
    }
    if (at >= 0)
        return report(s, at, implementation, end);
    if (end[0] != '\0') /* between two cases, after some have corrupted it */
        return report(s, s->next > 0 ? s->next - 1 : 0, "*", end);
    return CONTINUE;
}

static int try_batch(selftest *s)
{
    char request[4200], message[64] = "";
    void *answer = NULL;
    size_t bytes = 0;
    int64_t last = s->next + BATCH < s->cases ? s->next + BATCH : s->cases;
    int n = snprintf(request, sizeof request, "%lld %lld %s\n", (long long)s->next, (long long)last,
                     s->bare ? "off" : s->out);
    guard_command("--sweep", s->seconds, "", request, (size_t)n, &answer, &bytes, message,
                  sizeof message);
    char *text = realloc(answer, bytes + 1);
    if (text == NULL) {
        free(answer);
        return complain("selftest", EXIT_FAILED, "out of memory");
    }
    text[bytes] = '\0';
    int64_t before = s->next;
    int status = read_answer(s, text, message);
    free(text);
    if (status == CONTINUE && s->next == before && s->tries == 0)
        return complain("selftest", EXIT_FAILED, "case %lld: no answer (%s)", (long long)s->next,
                        message[0] != '\0' ? message : "none at all");
    return status == CONTINUE ? write_file(s) : status;
}

int command_selftest(int argc, char **argv)
{
    selftest s = {.out = "quarantine.txt", .cases = 3000, .seconds = 300};
    int status = parse(&s, argc, argv);
    if (status != CONTINUE)
        return status;
    if (adj_backend_describe("onednn", s.machine, sizeof s.machine) != ADJ_OK)
        return complain("selftest", EXIT_FAILED, "there is no backend onednn");
    if (strlen(s.out) > 4000)
        return complain("selftest", EXIT_USAGE, "--out: the name is too long");
    if (s.resume)
        status = read_file(&s);
    else if (access(s.out, F_OK) == 0)
        status =
            complain("selftest", EXIT_USAGE, "--out: %s exists (--resume goes on with it)", s.out);
    s.began = s.shown = seconds_now();
    if (status == CONTINUE)
        status = write_file(&s);
    while (status == CONTINUE && s.next < s.cases) {
        status = try_batch(&s);
        show(&s);
    }
    if (status == CONTINUE) {
        printf("oneDNN %s: %lld cases tried, %d rows in %s\n", s.machine, (long long)s.next,
               s.n_row, s.out);
        status = s.n_row > 0 ? EXIT_FAILED : EXIT_OK;
    }
    free(s.row);
    return status;
}
