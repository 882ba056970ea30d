/* test_summary.c - adj_summary: a table of layers, counted by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "tests/plan.h"

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

/* PyTorch's names have dots, and its weights are transposed: both belong to the layer. */
Test(summary, names_with_dots)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const int turned[] = {1, 0};
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 5}});
    adj_node *w = adj_param(g, "features.fc\x1b.weight", ADJ_F32, (adj_shape){2, {3, 5}},
                            adj_init_constant(0));
    adj_node *b =
        adj_param(g, "features.fc\x1b.bias", ADJ_F32, (adj_shape){1, {3}}, adj_init_constant(0));
    adj_node *y = adj_bias_add(adj_matmul(x, adj_transpose(w, 2, turned), 0), b, ADJ_NHWC);
    scoped(release) char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_summary(f, y);
    fclose(f);
    cr_expect_not_null(strstr(text,
                              "\nfeatures.fc\\x1b          matmul                   [2, 3]       "
                              "                  18             30\n"),
                       "%s", text);
    cr_expect_null(strstr(text, "bias"), "%s", text);
}

Test(summary, of_a_net)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 4}});
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    adj_node *h = adj_layer_conv2d(x, "conv", &conv);
    h = adj_relu(adj_layer_batch_norm(h, "bn", &(adj_norm_layer){.training = 1}));
    adj_node *y = adj_layer_dense(adj_layer_max_pool(h, 2), "fc", 3, NULL);
    scoped(release) char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_summary(f, y);
    adj_summary(f, NULL);
    fclose(f);
    cr_expect_str_eq(text, want, "%s", text);
}
