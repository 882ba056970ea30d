/* fuzz_quarantine.c - a quarantine file of arbitrary bytes: it is refused with a sentence, or the
 * convolution is planned without what the file forbids. */
#include "adjoint.h"
#include "fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_file f = memory_file_new(data, size);
    adj_graph *g = adj_graph_new();
    const adj_conv a = {.stride = {1, 2, 2, 1}, .dilation = {1, 1, 1, 1}, .padding = ADJ_SAME};
    adj_node *x = adj_param(g, "x", ADJ_F32, (adj_shape){4, {1, 5, 4, 12}}, (adj_init){0});
    adj_node *dy = adj_param(g, "dy", ADJ_F32, (adj_shape){4, {1, 3, 2, 16}}, (adj_init){0});
    adj_node *dw = adj_conv2d_backprop_filter(x, (adj_shape){4, {1, 1, 12, 16}}, dy, &a);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &dw, .threads = 1, .debug.quarantine = f.path};
    adj_exec *e = NULL;

    adj_status status = adj_exec_new(g, &o, &e);
    must(status == ADJ_OK || status == ADJ_EIO);
    must((status == ADJ_OK) == (adj_exec_message(e)[0] == '\0'));
    if (status == ADJ_OK)
        must(adj_run(e) == ADJ_OK);
    adj_exec_free(e);
    adj_graph_free(g);
    memory_file_free(&f);
    return 0;
}
