/* saved.h - a graph, an executor and the file that adj_onnx_save writes of them, read back message
 * by message: for tests of one graph at a time. */
#ifndef TESTS_ONNX_SAVED_H
#define TESTS_ONNX_SAVED_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"
#include "temporary.h"
#include <onnx.pb-c.h>

static inline void release_onnx(adj_onnx_net **net) { adj_onnx_free(*net); }

static temporary file;
static const char *const path = file.s;
static adj_graph *g;
static adj_exec *e;
/* Arguments of adj_onnx_save. */
static unsigned flags;
static int n_metadata;
static const adj_metadata *metadata;

static inline void start(void)
{
    file = temporary_file();
    g = adj_graph_new();
    e = NULL;
    flags = 0;
    n_metadata = 0;
    metadata = NULL;
}

static inline void end(void)
{
    adj_exec_free(e);
    adj_graph_free(g);
    remove(path);
}

static inline adj_status save(adj_node *y, adj_error *error)
{
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .seed = 3};
    cr_assert(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    return adj_onnx_save(e, 1, &y, path, flags, n_metadata, metadata, error);
}

static inline Onnx__ModelProto *read_back(void)
{
    static uint8_t bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, n, bytes);
    cr_assert(m != NULL && m->graph != NULL);
    return m;
}

/* Runs y on numbered images. */
static inline void run(adj_exec *exec, adj_node *x, const adj_node *y, float *to)
{
    const int64_t n = adj_shape_elems(adj_node_type(x).shape);
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(i % 101) / 101 - 0.4F;
    cr_assert(adj_set(exec, x, v, (size_t)n * sizeof *v) == ADJ_OK && adj_run(exec) == ADJ_OK, "%s",
              adj_exec_message(exec));
    cr_assert(adj_get(exec, y, to, adj_type_bytes(adj_node_type(y))) == ADJ_OK);
    free(v);
}

static inline int count_ops(const char *op)
{
    Onnx__ModelProto *m = read_back();
    int n = 0;
    for (size_t i = 0; i < m->graph->n_node; i++)
        n += strcmp(m->graph->node[i]->op_type, op) == 0;
    onnx__model_proto__free_unpacked(m, NULL);
    return n;
}

#endif
