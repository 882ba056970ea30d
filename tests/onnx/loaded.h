/* loaded.h - the file of a model of model_maker.h, in a folder of its own, and the network that is
 * loaded from it: for tests of one network at a time. */
#ifndef TESTS_ONNX_LOADED_H
#define TESTS_ONNX_LOADED_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_onnx.h"
#include "model_maker.h"
#include "temporary.h"

static temporary folder;
static char path[96];
static adj_graph *g;
static adj_onnx_net *net;
static adj_error error;

static inline void open_folder(void)
{
    folder = temporary_folder();
    snprintf(path, sizeof path, "%s/net.onnx", folder.s);
    g = adj_graph_new();
    error = (adj_error){0};
    net = NULL;
}

static inline void close_folder(void)
{
    char command[128];
    adj_onnx_free(net);
    adj_graph_free(g);
    snprintf(command, sizeof command, "rm -rf %s", folder.s);
    cr_assert(system(command) == 0);
}

/* Asserts that the model, or with NULL the file as it is, is refused with a message that has this
 * part. */
static inline void expect_refused(const maker *m, const char *part)
{
    if (m != NULL)
        maker_write(m, path);
    cr_assert(adj_onnx_load(g, path, NULL, &net, &error) != ADJ_OK && net == NULL);
    cr_assert(strstr(error.message, part) != NULL, "%s", error.message);
}

#endif
