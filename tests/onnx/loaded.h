/* loaded.h - the file of a model of model_text.h, in a folder of its own, the network that is
 * loaded from it, and its runs: for tests of one network at a time. */
#ifndef TESTS_ONNX_LOADED_H
#define TESTS_ONNX_LOADED_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "adjoint_onnx.h"
#include "model_text.h"
#include "temporary.h"
#include "tests/harness.h"

static temporary folder;
static char path[96];
static adj_graph *g;
static adj_onnx_net *net;
static adj_exec *e;
static adj_error error;

static inline void open_folder(void)
{
    folder = temporary_folder();
    snprintf(path, sizeof path, "%s/net.onnx", folder.s);
    g = adj_graph_new();
    error = (adj_error){0};
    net = NULL;
    e = NULL;
}

static inline void close_net(void)
{
    adj_exec_free(e);
    adj_onnx_free(net);
    adj_graph_free(g);
}

static inline void close_folder(void)
{
    close_net();
    temporary_remove(&folder);
}

/* Makes a new graph, without a network. */
static inline void new_net(void)
{
    close_net();
    g = adj_graph_new();
    net = NULL;
    e = NULL;
}

/* Loads the file into a new graph. */
static inline adj_status load_file(const adj_onnx_opts *o)
{
    new_net();
    return adj_onnx_load(g, path, o, &net, &error);
}

static inline void load_model(Onnx__ModelProto *m, const adj_onnx_opts *o)
{
    write_model(m, path);
    cr_assert_eq(load_file(o), ADJ_OK, "%s: %s", model_source(), error.message);
}

static inline void load_text(int64_t opset, const char *text, const adj_onnx_opts *o)
{
    load_model(model_of(opset, text), o);
}

/* Asserts that the file, or the model, is refused with a message that has this part. */
static inline void expect_file_refused(const adj_onnx_opts *o, const char *part)
{
    cr_expect(load_file(o) != ADJ_OK && net == NULL, "%s: %s", model_source(), part);
    expect_text(error.message, part);
}

static inline void expect_refused(Onnx__ModelProto *m, const char *part)
{
    write_model(m, path);
    expect_file_refused(NULL, part);
}

/* Runs the network on x, once, with the updates of its layers. */
static inline void run(const double x[])
{
    e = plan_of(g, &(adj_exec_opts){.n_fetch = net->n_output,
                                    .fetch = net->output,
                                    .updates = adj_layer_updates(g)});
    set_values(e, net->input[0], x);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
}

/* Runs the network on x, and asserts its first output. */
static inline void expect(const double x[], const double want[], double tolerance)
{
    run(x);
    scoped(release) double *got = fixture_get(e, net->output[0]);
    expect_close(got, want, adj_shape_elems(adj_node_type(net->output[0]).shape), 0, tolerance,
                 model_source());
}

#endif
