/* planted_tool.c - linked with the tool's objects and --wrap, this makes a tool whose executors,
 * comparisons and checks of single ops use the planted backends (planted.h). What it starts is
 * itself, so its child processes use them, too. */
#include "check/inspect.h"
#include "tests/cli/planted.h"

/* The names are the linker's. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
adj_status __real_adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out);
adj_status __wrap_adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out);
adj_status __real_adj_compare_with(adj_graph *g, const adj_compare_opts *opts,
                                   const adj_trial_opts *trials, const adj_comparison **out);
adj_status __wrap_adj_compare_with(adj_graph *g, const adj_compare_opts *opts,
                                   const adj_trial_opts *trials, const adj_comparison **out);
adj_status __real_adj_gradcheck_nodes(int n, adj_node *const y[], const adj_gradcheck_opts *opts,
                                      const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck_nodes(int n, adj_node *const y[], const adj_gradcheck_opts *opts,
                                      const adj_gradcheck_report **out);

adj_status __wrap_adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out)
{
    adj_exec_opts o = *opts;
    o.backends = planted_backends();
    return __real_adj_exec_new(g, &o, out);
}

adj_status __wrap_adj_compare_with(adj_graph *g, const adj_compare_opts *opts,
                                   const adj_trial_opts *trials, const adj_comparison **out)
{
    adj_compare_opts o = *opts;
    o.exec.backends = planted_backends();
    return __real_adj_compare_with(g, &o, trials, out);
}

adj_status __wrap_adj_gradcheck_nodes(int n, adj_node *const y[], const adj_gradcheck_opts *opts,
                                      const adj_gradcheck_report **out)
{
    adj_gradcheck_opts o = *opts;
    o.exec.backends = planted_backends();
    return __real_adj_gradcheck_nodes(n, y, &o, out);
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
