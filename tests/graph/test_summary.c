/* test_summary.c - adj_summary: a table of layers, counted by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"

static const char want[] = "layer                    op                       result               "
                           "  parameters  multiply-adds\n"
                           "conv                     conv2d                   [2, 8, 8, 4]         "
                           "         148          18432\n"
                           "bn                       batch_norm               [2, 8, 8, 4]         "
                           "           8              0\n"
                           "max_pool                 max_pool                 [2, 4, 4, 4]         "
                           "           0              0\n"
                           "fc                       matmul                   [2, 3]               "
                           "         195            384\n"
                           "total                                                                  "
                           "         351          18816\n";

Test(summary, of_a_net)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 4}});
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    adj_node *h = adj_layer_conv2d(x, "conv", &conv);
    h = adj_relu(adj_layer_batch_norm(h, "bn", &(adj_norm_layer){.training = 1}));
    adj_node *y = adj_layer_dense(adj_layer_max_pool(h, 2), "fc", 3, NULL);
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_summary(f, y);
    adj_summary(f, NULL);
    fclose(f);
    cr_expect_str_eq(text, want, "%s", text);
    free(text);
    adj_graph_free(g);
}
