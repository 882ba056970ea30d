/* cli_stubs.c - the calls of the commands that take long, for fuzz_cli: linked in place of the
 * library's (--wrap), they look at what they are given, and fail. */
#include <string.h>

#include "check/inspect.h"
#include "adjoint_io.h"
#include "fuzz/must.h"
#include "io/tensors/formats.h"

static void must_be_sound(adj_node *y)
{
    must(y != NULL && adj_graph_status(adj_node_graph(y)) == ADJ_OK);
    must(adj_shape_elems(adj_node_type(y).shape) >= 0);
}

/* The names are the linker's. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
adj_status __real_adj_gradcheck(adj_node *y, const adj_gradcheck_opts *o,
                                const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck(adj_node *y, const adj_gradcheck_opts *o,
                                const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck(adj_node *y, const adj_gradcheck_opts *o,
                                const adj_gradcheck_report **out)
{
    must_be_sound(y);
    must(o->order >= 0 && o->order <= 2 && o->draws >= 0 && o->draws <= 1000);
    must(o->exec.threads >= 0 && o->exec.threads <= 1024 && o->rtol >= 0 && o->atol >= 0);
    return __real_adj_gradcheck(NULL, NULL, out);
}

adj_status __wrap_adj_gradcheck_nodes(int n, adj_node *const node[], const adj_gradcheck_opts *o,
                                      const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck_nodes(int n, adj_node *const node[], const adj_gradcheck_opts *o,
                                      const adj_gradcheck_report **out)
{
    must(n > 0);
    for (int i = 1; i < n; i++)
        must_be_sound(node[i]);
    return __wrap_adj_gradcheck(node[0], o, out);
}

adj_status __real_adj_compare_with(adj_graph *g, const adj_compare_opts *o, const adj_trial_opts *t,
                                   const adj_comparison **out);
adj_status __wrap_adj_compare_with(adj_graph *g, const adj_compare_opts *o, const adj_trial_opts *t,
                                   const adj_comparison **out);
adj_status __wrap_adj_compare_with(adj_graph *g, const adj_compare_opts *o, const adj_trial_opts *t,
                                   const adj_comparison **out)
{
    adj_error error;
    adj_compare_config config;
    must(adj_graph_status(g) == ADJ_OK && o->exec.n_fetch > 0 && o->n_config != 1);
    for (int i = 0; i < o->exec.n_fetch; i++)
        must_be_sound(o->exec.fetch[i]);
    for (int i = 0; i < o->n_config; i++)
        must(adj_compare_config_parse(o->config[i], o->exec.backends, &config, &error) == ADJ_OK);
    must(o->runs >= 1 && o->runs <= 1000 && o->exec.threads >= 0 && o->exec.threads <= 1024);
    must(t != NULL && t->elsewhere != NULL);
    return __real_adj_compare_with(NULL, NULL, NULL, out);
}

adj_status __wrap_adj_safetensors_read(const char *path, adj_tensors **t);
adj_status __wrap_adj_safetensors_read(const char *path, adj_tensors **t)
{
    must(path != NULL);
    return adj_tensors_from_memory("", 0, t); /* fails: there is no header */
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
