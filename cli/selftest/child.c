/* child.c - the part of adjoint selftest that may crash: tries cases and says before each
 * one what it is about to run. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "cli/command.h"
#include "cli/guard.h"
#include "sweep.h"

/* A line for the parent, at once. 0: it has got it. */
__attribute__((format(printf, 1, 2))) static int tell(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int failed = vprintf(format, args) < 0;
    va_end(args);
    return fflush(stdout) != 0 || failed;
}

/* The implementation that a plan takes; "" when oneDNN leaves the node to naive, or computes it in
 * another type: that is a case of that type. */
static adj_status implementation_of(adj_graph *g, adj_node *y, const char *quarantine,
                                    char text[64])
{
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &y, .backend = "onednn", .debug.quarantine = quarantine};
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
        tell("error %s\n", adj_exec_message(e));
    adj_exec_free(e);
    return status;
}

/* NULL: as it should be. */
static const char *fault_of(const adj_comparison *c)
{
    const adj_compare_row *row = adj_comparison_row_at(c, 0);
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
    return adj_comparison_whole_failed_count(c) > 0 ? "wrong numbers in a plain run" : NULL;
}

/* 0: the next case may follow. */
static int try_case(const sweep *part, int64_t i, const char *quarantine)
{
    static const char *const configs[] = {"naive:f64", "onednn"};
    sweep_case s = sweep_at(part, i);
    adj_graph *g = adj_graph_new();
    adj_node *y = sweep_node(g, &s);
    char implementation[64] = "";
    adj_comparison *c = NULL;
    int stop = 0;
    if (y != NULL && implementation_of(g, y, quarantine, implementation) != ADJ_OK)
        return adj_graph_free(g), 1;
    if (implementation[0] != '\0')
        stop = tell("start %lld %s\n", (long long)i, implementation);
    if (implementation[0] != '\0' && !stop) {
        const adj_compare_opts o = {.n_root = 1,
                                    .root = &y,
                                    .n_config = 2,
                                    .config = configs,
                                    .runs = 1,
                                    .exact = 1,
                                    .seed = (uint64_t)i,
                                    .debug.quarantine = quarantine};
        adj_compare(g, &o, &c);
        const char *fault = fault_of(c);
        stop = fault != NULL;
        if (stop)
            tell("fault %lld %s\n", (long long)i, fault);
    }
    if (!stop)
        stop = tell("done %lld\n", (long long)i);
    adj_comparison_free(c);
    adj_graph_free(g);
    return stop;
}

/* stdin: "first last sweep quarantine". */
int command_sweep(int argc, char **argv)
{
    char line[4300], *part, *quarantine;
    sweep all;
    if (!ends_with_parent(argc, argv) || fgets(line, sizeof line, stdin) == NULL)
        return EXIT_FAILED;
    line[strcspn(line, "\n")] = '\0';
    int64_t first = strtoll(line, &part, 10), last = strtoll(part, &part, 10);
    if (*part != ' ' || (quarantine = strchr(++part, ' ')) == NULL)
        return EXIT_FAILED;
    *quarantine++ = '\0';
    if (!sweep_read(&all, part) || first < 0 || last > sweep_size(&all))
        return EXIT_FAILED;
    for (int64_t i = first; i < last; i++)
        if (try_case(&all, i, quarantine) != 0)
            break;
    return ferror(stdout) ? EXIT_FAILED : EXIT_OK;
}
