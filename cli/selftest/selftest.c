/* selftest.c - adjoint selftest: tries this machine's oneDNN on a sweep of convolutions and writes
 * what is wrong to a quarantine file; with --rules what is fast here (rules.c).
 *
 * A process of its own tries many cases; when it crashes, hangs or reports a fault, a row is
 * written, and another process goes on: with the same case, to see what is taken instead. A crash
 * may be an earlier case's doing, so the cases of that process are first tried again, each in its
 * own. The file is replaced whole after every batch and says how far it is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/guard.h"
#include "cli/output.h"
#include "exec/clock.h"
#include "selftest.h"

enum { BATCH = 32, MAX_TRIES = 8, DEFAULT_CASES = 3000, ALONE_SECONDS = 60 };

typedef struct {
    const char *op, *list[N_PROPERTY];
} chosen;

static int parse(selftest *s, chosen *c, int argc, char **argv)
{
    const option options[] = {
        {"--out", "FILE", "the quarantine file; default: quarantine.txt; with --rules: of rules",
         .text = &s->out},
        {"--resume", "", "go on where the file says", .flag = &s->resume},
        {"--cases", "N", "how many; default: 3000, a sample that takes some ten minutes",
         .integer = &s->cases, .range = {1, 1e9}},
        {"--full", "", "all of those chosen; 1368576, a day or more, if none are",
         .flag = &s->full},
        {"--op", "NAME", "only this: conv2d, conv2d_backprop_filter, ...", .text = &c->op},
        {"--dtype", "LIST", "only these: f32,bf16,f16", .text = &c->list[DTYPE]},
        {"--padding", "LIST", "VALID,SAME,EXPLICIT", .text = &c->list[PADDING]},
        {"--kernel", "LIST", "1,3,5,7", .text = &c->list[KERNEL]},
        {"--stride", "LIST", "1,2,3", .text = &c->list[STRIDE]},
        {"--dilation", "LIST", "1,2", .text = &c->list[DILATION]},
        {"--channels", "LIST", "1,2,3,4,7,8,9,12,15,16,17,24,31,32,33,64",
         .text = &c->list[CHANNELS]},
        {"--size", "LIST", "15,36,64,7,6,12; 7 is 7x1, 6 is 6x5, 12 is 12x3",
         .text = &c->list[SIZE]},
        {"--timeout", "SECONDS", "of 32 cases; default: 300", .real = &s->seconds,
         .range = {0.1, 1e4}},
        {"--unquarantined", "", "find again what is known to be wrong", .flag = &s->bare},
        {"--rules", "", "instead: time what the rules of plans prefer on this machine",
         .flag = &s->rules},
        {"--seconds", "S", "with --rules: about as long may it take; default: 20",
         .real = &s->rule_seconds, .range = {0.1, 1e5}},
        {0},
    };
    const remark examples[] = {
        {"adjoint selftest --out quarantine.txt",
         "A sample; ADJOINT_QUARANTINE=quarantine.txt then keeps what is wrong from being used."},
        {"adjoint selftest --op conv2d --dtype bf16 --kernel 3 --full", "All cases of these."},
        {"adjoint selftest --rules --out rules.txt",
         "Which kernels are fast here; ADJOINT_RULES=rules.txt then lets plans know."},
        {NULL, NULL}};
    const usage u = {.command = "selftest",
                     .summary = "Tries this machine's oneDNN and writes a quarantine file.",
                     .options = options,
                     .variables =
                         "ADJOINT_MAX_ISA ADJOINT_QUARANTINE ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS",
                     .examples = examples};
    return parse_options(&u, argc, argv);
}

/* Leaves of the sweep what the options name. *some: whether they name anything. */
static int choose(selftest *s, const chosen *c, int *some)
{
    static const char *const names[N_PROPERTY] = {
        [DTYPE] = "dtype",       [PADDING] = "padding",   [KERNEL] = "kernel", [STRIDE] = "stride",
        [DILATION] = "dilation", [CHANNELS] = "channels", [SIZE] = "size"};
    adj_error error;
    *some = c->op != NULL;
    if (c->op != NULL && sweep_keep_op(&s->sweep, c->op, &error) != ADJ_OK)
        return complain("selftest", EXIT_USAGE, "--op: %s", error.message);
    for (int p = 0; p < N_PROPERTY; p++) {
        if (c->list[p] == NULL)
            continue;
        *some = 1;
        if (sweep_keep(&s->sweep, (sweep_property)p, c->list[p], &error) != ADJ_OK)
            return complain("selftest", EXIT_USAGE, "--%s: %s", names[p], error.message);
    }
    return CONTINUE;
}

/* ---- progress ---- */

static void show(selftest *s)
{
    enum { WIDTH = 30 };
    int terminal = isatty(STDERR_FILENO);
    double now = seconds_now();
    int64_t done = s->next - s->started, left = s->cases - s->next;
    int filled = (int)(WIDTH * s->next / s->cases);
    if (left > 0 && now - s->shown < (terminal ? 0.2 : 30))
        return;
    s->shown = now;
    double seconds = done > 0 ? (now - s->began) / (double)done * (double)left : 0;
    fprintf(stderr, "%s[%.*s%.*s] %lld of %lld cases, %d found, ", terminal ? "\r" : "", filled,
            "##############################", WIDTH - filled, "..............................",
            (long long)s->next, (long long)s->cases, s->n_row);
    if (done > 0)
        fprintf(stderr, "%d:%02d left%s", (int)(seconds / 60), (int)seconds % 60,
                terminal && left > 0 ? "  " : "\n");
    else
        fprintf(stderr, "?:?? left%s", terminal ? "  " : "\n");
}

/* ---- cases ---- */

/* A row for case i, which this implementation got wrong. */
static int report(selftest *s, int64_t i, const char *implementation, const char *finding)
{
    char text[ROW], key[256];
    sweep_case c = sweep_at(&s->sweep, i);
    sweep_row(&c, implementation, key, sizeof key);
    snprintf(text, sizeof text, "%s %s %s", s->machine, key, finding);
    int status = selftest_add_row(s, text);
    /* the same case again, with what is taken instead */
    s->next = ++s->tries == MAX_TRIES ? i + 1 : i;
    if (s->next > i)
        s->tries = 0;
    return status == CONTINUE ? selftest_write(s) : status;
}

/* The number behind a word; NULL if the line does not begin with it, else what follows. */
static char *number_after(char *line, const char *word, int64_t *number)
{
    char *end;
    if (strncmp(line, word, strlen(word)) != 0)
        return NULL;
    *number = strtoll(line + strlen(word), &end, 10);
    return end != line + strlen(word) ? end : NULL;
}

/* Goes through what the child said before it ended, with what message if it crashed. */
static int read_answer(selftest *s, char *answer, const char *end)
{
    char implementation[64] = "", *rest = NULL, *more;
    int64_t first = s->next, at = -1, number;
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
        } else if ((more = number_after(line, "fault ", &number)) != NULL && *more == ' ')
            return report(s, number, implementation, more + 1);
    }
    if (end[0] == '\0' || at < 0)
        return CONTINUE;
    if (s->next - first <= 1 && at == (s->next > first ? first : s->next))
        return report(s, at, implementation, end); /* it was alone */
    s->alone_until = at + 1;
    s->rows_before = s->n_row;
    s->next = first;
    return CONTINUE;
}

/* Whether a search for the case that crashed a process has come to its end in vain. */
static void end_search(selftest *s)
{
    if (s->alone_until == 0 || s->next < s->alone_until)
        return;
    if (s->n_row == s->rows_before) {
        s->suspicions++;
        fprintf(stderr,
                "\nadjoint selftest: a process crashed up to case %lld, but no case alone does\n",
                (long long)s->alone_until - 1);
    }
    s->alone_until = 0;
}

static int try_batch(selftest *s)
{
    char request[4300], part[SWEEP_TEXT];
    adj_error error;
    void *answer = NULL;
    size_t bytes = 0;
    int64_t before = s->next, searched = s->alone_until, last = s->next + BATCH;
    double seconds = s->seconds;
    if (searched > 0) {
        last = s->next + 1;
        seconds = seconds < ALONE_SECONDS ? seconds : ALONE_SECONDS;
    }
    sweep_write(&s->sweep, part);
    int n = snprintf(request, sizeof request, "%lld %lld %s %s%s\n", (long long)s->next,
                     (long long)(last < s->cases ? last : s->cases), part, s->bare ? "only:" : "",
                     s->out);
    guard_command("--sweep", seconds, "", request, (size_t)n, &answer, &bytes, &error);
    char *text = realloc(answer, bytes + 1);
    if (text == NULL) {
        free(answer);
        return complain("selftest", EXIT_FAILED, "out of memory");
    }
    text[bytes] = '\0';
    int status = read_answer(s, text, error.message);
    free(text);
    if (status == CONTINUE && s->next == before && s->tries == 0 && s->alone_until == searched)
        return complain("selftest", EXIT_FAILED, "case %lld: no response (%s)", (long long)s->next,
                        error.status != ADJ_OK ? error.message : "none at all");
    end_search(s);
    return status == CONTINUE ? selftest_write(s) : status;
}

/* ---- the command ---- */

/* What belongs to faults, and what to rules. */
static int check_goes_with(const selftest *s, int some)
{
    if (s->rules && (some || s->resume || s->full || s->bare || s->cases > 0 || s->seconds > 0))
        return complain("selftest", EXIT_USAGE, "with --rules go --out and --seconds only");
    if (!s->rules && s->rule_seconds > 0)
        return complain("selftest", EXIT_USAGE, "--seconds goes with --rules");
    return CONTINUE;
}

/* What is not said. */
static void set_defaults(selftest *s)
{
    if (s->out == NULL && !s->rules)
        s->out = "quarantine.txt";
    if (s->cases == 0)
        s->cases = DEFAULT_CASES;
    if (s->seconds <= 0)
        s->seconds = 300;
    if (s->rule_seconds <= 0)
        s->rule_seconds = 20;
}

/* Settles what is to be tried, and where it begins. */
static int begin(selftest *s, int argc, char **argv)
{
    chosen c = {0};
    int some = 0, status = parse(s, &c, argc, argv);
    if (status == CONTINUE)
        status = choose(s, &c, &some);
    if (status == CONTINUE)
        status = check_goes_with(s, some);
    set_defaults(s);
    if (status != CONTINUE || s->rules)
        return status;
    if (adj_backend_describe("onednn", s->machine, sizeof s->machine) != ADJ_OK)
        return complain("selftest", EXIT_FAILED, "there is no backend onednn");
    if (strlen(s->out) > 4000)
        return complain("selftest", EXIT_USAGE, "--out: the name is too long");
    if (s->resume && (some || s->bare))
        return complain("selftest", EXIT_USAGE,
                        "--resume: the file says which cases (leave out "
                        "the options that choose them)");
    if (s->resume)
        status = selftest_read(s);
    else if (access(s->out, F_OK) == 0)
        status =
            complain("selftest", EXIT_USAGE, "--out: %s exists (--resume goes on with it)", s->out);
    const output_file out = {"--out", s->out, OUTPUT_REPLACED};
    if (status == CONTINUE)
        status = check_outputs("selftest", 1, &out);
    int64_t all = sweep_size(&s->sweep);
    if (s->full || s->cases > all)
        s->cases = all;
    return status;
}

int command_selftest(int argc, char **argv)
{
    selftest s = {.sweep = sweep_all()};
    int status = begin(&s, argc, argv);
    if (status == CONTINUE && s.rules)
        return selftest_rules(s.out, s.rule_seconds);
    s.began = s.shown = seconds_now();
    if (status == CONTINUE)
        status = selftest_write(&s);
    while (status == CONTINUE && s.next < s.cases) {
        status = try_batch(&s);
        show(&s);
    }
    if (status == CONTINUE) {
        say("oneDNN %s: %lld cases tried, %d rows in %s", s.machine, (long long)s.next, s.n_row,
            s.out);
        status = s.n_row > 0 ? EXIT_FAILED : s.suspicions > 0 ? EXIT_INCONCLUSIVE : EXIT_OK;
    }
    free(s.row);
    return status;
}
