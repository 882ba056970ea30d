/* overview.c - the sub-commands, in the order of adjoint help. */
#include "command.h"

const command commands[] = {
    {"train", "trains a model on images", command_train},
    {"eval", "measures the accuracy of saved weights on a data set", command_eval},
    {"predict", "classifies images with saved weights", command_predict},
    {"models", "lists the models", command_models},
    {"summary", "prints a table of a model's layers", command_summary},
    {"graph", "prints or draws a model's nodes, gradients or plan", command_graph},
    {"gradcheck", "checks gradients against independent references", command_gradcheck},
    {"compare", "compares backends, types, layouts and threads node by node", command_compare},
    {"bench", "benchmarks a model's steps or an op's kernels", command_bench},
    {"ops", "lists the ops, their operands and attributes", command_ops},
    {"op", "runs one op or its gradients on tensors from a file", command_op},
    {"inspect", "lists the tensors of a file: names, shapes, ranges", command_inspect},
    {"convert", "converts tensor files between formats and naming schemes", command_convert},
    {"emit", "writes a network as one C file for any machine", command_emit},
    {"version", "prints versions, instruction sets, caches and threads", command_version},
    {NULL, NULL, NULL},
};
