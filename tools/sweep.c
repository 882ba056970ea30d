/* sweep.c - compares this machine's oneDNN with naive:f64 on a sweep of convolutions and average
 * pools, and prints what is wrong: material for rows of backends/onednn/quarantine.c.
 *
 * Each case runs in a process of its own, which may crash or hang. The parent starts no OpenMP
 * threads, so that it may fork. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check/inspect.h"
#include "base/clock.h"
#include "cases.h"
#include "cli/command.h"
#include "exec/report.h"
#include "graph/op.h"

enum { DEFAULT_CASES = 3000, ANSWER = 256 };

typedef struct {
    int64_t first, cases, end, full, bare; /* cases first to end - 1 */
    double seconds;                        /* time limit of a case */
    const char *op, *list[N_PROPERTY];
    sweep sweep;
    int found;
} sweep_run;

/* ---- the child ---- */

/* oneDNN's and the reference's backend, NULL-ended: no plan takes another's kernel. */
static void list_backends(const adj_backend *list[3])
{
    int n = 0;
    for (const adj_backend *const *b = adj_backends; *b != NULL && n < 2; b++)
        if (strcmp((*b)->name, "onednn") == 0 || strcmp((*b)->name, "naive") == 0)
            list[n++] = *b;
    list[n] = NULL;
}

/* The implementation that a plan takes; "" if oneDNN leaves the node to another backend, or
 * computes it in another type, which is a case of that type. */
static adj_status implementation_of(adj_graph *g, adj_node *y, char text[64], FILE *answer)
{
    const adj_backend *backends[3];
    list_backends(backends);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "onednn", .backends = backends};
    adj_exec *e = NULL;
    adj_status status = adj_exec_new(g, &o, &e);
    text[0] = '\0';
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        adj_step_info s = adj_exec_step_at(e, i);
        if (s.n_node > 0 && s.node == y && s.dtype == adj_node_type(y).dtype &&
            strcmp(s.backend, "onednn") == 0)
            snprintf(text, 64, "%s", s.impl);
    }
    if (status != ADJ_OK)
        fprintf(answer, "error %s\n", adj_exec_message(e));
    adj_exec_free(e);
    return status;
}

/* Returns a description of the failure, or NULL. */
static const char *fault_of(const adj_comparison *c)
{
    const compare_row *row = adj_comparison_row_at(c, 0);
    if (row == NULL)
        return "cannot be compared";
    if (row->canary || adj_comparison_result_at(c, 1).canary)
        return "writes outside its memory";
    if (row->verdict != ADJ_VERDICT_PASS && row->verdict != ADJ_VERDICT_FAIL)
        return "fails";
    if (row->isolated.nan > 0)
        return "leaves NaN";
    if (!row->repeats && row->isolated.wrong == 0)
        return "gives other bits each time";
    if (row->verdict == ADJ_VERDICT_FAIL)
        return "wrong numbers";
    return c->n_whole_failed > 0 ? "wrong numbers in a plain run" : NULL;
}

/* Answers "start IMPLEMENTATION" before the case and "fault WHAT" after it if it is wrong; "error
 * WHY" if nothing can be planned. */
static void try_case(const sweep_run *r, int64_t i, FILE *answer)
{
    static const char *const configs[] = {"naive:f64", "onednn"};
    const sweep_case s = sweep_at(&r->sweep, i);
    adj_graph *g = adj_graph_new();
    adj_node *y = sweep_node(g, &s);
    char implementation[64] = "";
    const adj_comparison *c = NULL;

    setenv("ADJOINT_QUARANTINE", r->bare ? "off" : "", 1);
    if (y != NULL && implementation_of(g, y, implementation, answer) == ADJ_OK &&
        implementation[0] != '\0') {
        const adj_backend *backends[3];
        list_backends(backends);
        fprintf(answer, "start %s\n", implementation);
        const adj_compare_opts o = {
            .exec = {.n_fetch = 1, .fetch = &y, .backends = backends, .seed = (uint64_t)i},
            .n_config = 2,
            .config = configs,
            .runs = 1,
            .exact = 1};
        adj_compare_with(g, &o, NULL, &c);
        const char *fault = fault_of(c);
        if (fault != NULL)
            fprintf(answer, "fault %s\n", fault);
        adj_comparison_free(c);
    }
    adj_graph_free(g);
}

/* ---- the parent ---- */

/* Result of a case; "": none. */
typedef struct {
    char implementation[ANSWER];
    char fault[ANSWER]; /* also the signal or timeout that ended its process */
    char error[ANSWER]; /* nothing can be planned: why */
} outcome;

static void report(sweep_run *r, int64_t i, const outcome *o)
{
    char text[ANSWER];
    const sweep_case c = sweep_at(&r->sweep, i);
    sweep_text(&c, text, sizeof text);
    printf("case %lld: %s: %s %s\n", (long long)i, text, o->implementation, o->fault);
    fflush(stdout);
    r->found++;
}

static void read_line(outcome *o, const char *line)
{
    if (strncmp(line, "start ", 6) == 0)
        snprintf(o->implementation, sizeof o->implementation, "%s", line + 6);
    else if (strncmp(line, "fault ", 6) == 0)
        snprintf(o->fault, sizeof o->fault, "%s", line + 6);
    else if (strncmp(line, "error ", 6) == 0)
        snprintf(o->error, sizeof o->error, "%s", line + 6);
}

/* Reads answers until the child closes the pipe. Returns 0 after so many seconds. */
static int read_answers(outcome *o, int fd, double seconds)
{
    char line[ANSWER];
    const double end = seconds_now() + seconds;
    for (int n = 0;;) {
        struct pollfd p = {fd, POLLIN, 0};
        const double left = end - seconds_now();
        if (left <= 0 || poll(&p, 1, (int)(1000 * left) + 1) == 0)
            return 0;
        if (read(fd, line + n, 1) != 1)
            return 1;
        if (line[n] == '\n' || ++n == ANSWER - 1) {
            line[n] = '\0';
            read_line(o, line);
            n = 0;
        }
    }
}

/* Tries a case in a process of its own. */
static outcome try_alone(const sweep_run *r, int64_t i)
{
    outcome o = {.fault = ""};
    int fd[2], status = 0;
    const pid_t parent = getpid();
    if (pipe(fd) != 0) {
        snprintf(o.error, sizeof o.error, "no pipe");
        return o;
    }
    const pid_t child = fork();
    if (child == 0) {
        FILE *answer = fdopen(fd[1], "w");
        close(fd[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (answer == NULL || getppid() != parent)
            _exit(1);
        setvbuf(answer, NULL, _IOLBF, ANSWER);
        try_case(r, i, answer);
        _exit(0);
    }
    close(fd[1]);
    if (child < 0)
        snprintf(o.error, sizeof o.error, "no process");
    else if (!read_answers(&o, fd[0], r->seconds)) {
        kill(child, SIGKILL);
        snprintf(o.fault, sizeof o.fault, "no response in %g s", r->seconds);
    }
    close(fd[0]);
    const int has_ended = child > 0 && waitpid(child, &status, 0) == child && o.fault[0] == '\0';
    if (has_ended && WIFSIGNALED(status))
        snprintf(o.fault, sizeof o.fault, "SIG%s", sigabbrev_np(WTERMSIG(status)));
    else if (has_ended && WEXITSTATUS(status) != 0 && o.error[0] == '\0')
        snprintf(o.error, sizeof o.error, "no answer");
    return o;
}

static int try_all(sweep_run *r)
{
    double shown = seconds_now();
    for (int64_t i = r->first; i < r->end; i++) {
        const outcome o = try_alone(r, i);
        if (o.error[0] != '\0')
            return complain(EXIT_FAILED, "%s", o.error);
        if (o.fault[0] != '\0')
            report(r, i, &o);
        if (seconds_now() - shown > 10) {
            shown = seconds_now();
            fprintf(stderr, "%lld of %lld cases, %d found\n", (long long)i + 1, (long long)r->end,
                    r->found);
        }
    }
    return CONTINUE;
}

/* ---- the command ---- */

static int parse(sweep_run *r, int argc, char **argv)
{
    const option options[] = {
        {"--first", "N", "the first case; default: 0", .integer = &r->first, .range = {0, 1e9}},
        {"--cases", "N", "how many; default: 3000, a sample of some ten minutes",
         .integer = &r->cases, .range = {1, 1e9}},
        {"--full", "", "all of those chosen; a day or more, if none are", .flag = &r->full},
        {"--op", "NAME", "only this: conv2d, conv2d_backprop_filter, ...", .text = &r->op},
        {"--dtype", "LIST", "only these: f32,bf16,f16", .text = &r->list[DTYPE]},
        {"--padding", "LIST", "VALID,SAME,EXPLICIT", .text = &r->list[PADDING]},
        {"--kernel", "LIST", "1,3,5,7", .text = &r->list[KERNEL]},
        {"--stride", "LIST", "1,2,3", .text = &r->list[STRIDE]},
        {"--dilation", "LIST", "1,2", .text = &r->list[DILATION]},
        {"--channels", "LIST", "1,2,3,4,7,8,9,12,15,16,17,24,31,32,33,64",
         .text = &r->list[CHANNELS]},
        {"--size", "LIST", "15,36,64,7,6,12; 7 is 7x1, 6 is 6x5, 12 is 12x3",
         .text = &r->list[SIZE]},
        {"--timeout", "SECONDS", "for a case; default: 60", .real = &r->seconds,
         .range = {0.1, 1e4}},
        {"--unquarantined", "", "find again what is known to be wrong", .flag = &r->bare},
        {0},
    };
    const remark examples[] = {
        {"build/tools/sweep --op conv2d --dtype bf16 --kernel 3 --full", "All cases of these."},
        {NULL, NULL}};
    const usage u = {.command = "sweep",
                     .summary = "Compares this machine's oneDNN with naive on a sweep of cases.",
                     .options = options,
                     .variables = "ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS",
                     .examples = examples};
    return parse_options(&u, argc, argv);
}

/* Restricts the sweep to the values of the options. */
static int choose(sweep_run *r)
{
    static const char *const names[N_PROPERTY] = {
        [DTYPE] = "dtype",       [PADDING] = "padding",   [KERNEL] = "kernel", [STRIDE] = "stride",
        [DILATION] = "dilation", [CHANNELS] = "channels", [SIZE] = "size"};
    adj_error error;
    if (r->op != NULL && sweep_keep_op(&r->sweep, r->op, &error) != ADJ_OK)
        return complain(EXIT_USAGE, "--op: %s", error.message);
    for (int p = 0; p < N_PROPERTY; p++)
        if (r->list[p] != NULL &&
            sweep_keep(&r->sweep, (sweep_property)p, r->list[p], &error) != ADJ_OK)
            return complain(EXIT_USAGE, "--%s: %s", names[p], error.message);
    return CONTINUE;
}

int main(int argc, char **argv)
{
    char machine[64] = "";
    sweep_run r = {.sweep = sweep_all(), .cases = DEFAULT_CASES, .seconds = 60};
    running_command = "sweep";
    int status = parse(&r, argc, argv);
    if (status == CONTINUE)
        status = choose(&r);
    if (status == CONTINUE && adj_backend_describe("onednn", machine, sizeof machine) != ADJ_OK)
        status = complain(EXIT_FAILED, "there is no backend onednn");
    const int64_t all = sweep_size(&r.sweep);
    r.end = r.full || r.cases > all - r.first ? all : r.first + r.cases;
    if (status == CONTINUE)
        status = try_all(&r);
    if (status != CONTINUE)
        return status;
    printf("oneDNN %s: cases %lld to %lld tried, %d found\n", machine, (long long)r.first,
           (long long)r.end - 1, r.found);
    return r.found > 0 ? EXIT_FAILED : EXIT_OK;
}
