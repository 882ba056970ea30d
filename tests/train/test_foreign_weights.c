/* test_foreign_weights.c - a built-in model's weights as other programs write them: without a card,
 * and of other
 * channels and classes than the model's own three and ten. */
#include <criterion/criterion.h>
#include <string.h>

#include "adjoint_fit.h"
#include "io/folder.h"

enum { CHANNELS = 1, CLASSES = 4, ROOM = 128 };
static const adj_net net = {.name = "resnet8"};

/* Initial weights of resnet8 for gray images of four classes, in a file that says nothing of them
 * but that PyTorch wrote it; theirs: with PyTorch's names and layouts. */
static void put_weights(const char *path, int theirs)
{
    const adj_metadata note = {"format", "pt"};
    adj_graph *g = adj_graph_new();
    adj_node *logits =
        adj_model_logits(g, adj_model_find(net.name, NULL),
                         &(adj_model_opts){.channels = CHANNELS, .classes = CLASSES});
    adj_exec *e = NULL;
    adj_tensors *file = NULL, *converted = NULL;
    adj_tensor tensor[ROOM];

    cr_assert_eq(adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &logits}, &e), ADJ_OK);
    cr_assert_eq(adj_weights_save(e, path, 1, &note, NULL), ADJ_OK);
    if (theirs) {
        cr_assert_eq(adj_tensors_read(path, &file), ADJ_OK);
        cr_assert_eq(adj_weights_convert(file, g, "pytorch", 1, &converted, NULL), ADJ_OK);
        const int n = adj_tensors_count(converted);
        cr_assert_leq(n, ROOM);
        for (int i = 0; i < n; i++)
            tensor[i] = adj_tensors_at(converted, i);
        cr_assert_eq(adj_tensors_write(path, n, tensor, 1, &note, NULL), ADJ_OK);
    }
    adj_tensors_free(converted);
    adj_tensors_free(file);
    adj_exec_free(e);
    adj_graph_free(g);
}

Test(foreign_weights, tell_their_channels_and_classes)
{
    folder f = folder_new();
    const file_name path = in_folder(&f, "pt.safetensors");
    for (int theirs = 0; theirs < 2; theirs++) {
        const adj_weights_opts load = {.map = theirs ? "pytorch" : NULL};
        const adj_predictor_opts o = {.weights = &load};
        adj_predictor *p = NULL;
        adj_error error = {0};
        put_weights(path.s, theirs);
        cr_assert_eq(adj_predictor_load(path.s, &net, &o, &p, &error), ADJ_OK, "%s", error.message);
        cr_expect_eq(adj_predictor_card(p)->classes, CLASSES);
        cr_expect_eq(adj_predictor_card(p)->channels, CHANNELS);
        adj_predictor_free(p);
        p = NULL;
        cr_expect_eq(
            adj_predictor_load(path.s, &(adj_net){.name = "resnet8", .classes = 5}, &o, &p, &error),
            ADJ_ESHAPE);
        cr_expect_null(p);
        cr_expect_not_null(strstr(error.message, "4 classes (expected "), "%s", error.message);
        cr_expect_eq(adj_predictor_load(path.s, &(adj_net){.name = "lenet"}, &o, &p, &error),
                     ADJ_ESHAPE);
        cr_expect_not_null(strstr(error.message, "[5, 5, 1, 32]"), "%s", error.message);
    }
    folder_remove(&f);
}
