/* overview.c - the sub-commands, in the order of adjoint help. */
#include "command.h"

const command commands[] = {
    {"train", "trains a model on images", command_train},
    {"eval", "the accuracy of weights in a file on a data set", command_eval},
    {"predict", "what images show, by weights in a file", command_predict},
    {"models", "lists the models", command_models},
    {"gradcheck", "checks gradients against numbers made another way", command_gradcheck},
    {"compare", "compares backends, types and layouts node by node", command_compare},
    {"bench", "times steps of a model, or the kernels of an op", command_bench},
    {"ops", "lists the ops, with their operands and attributes", command_ops},
    {"op", "runs one op, or its gradients, on tensors from a file", command_op},
    {"inspect", "names, shapes and ranges of the tensors in a file", command_inspect},
    {"convert", "tensors in files of other formats, or under other names", command_convert},
    {"version", "versions, instruction sets, caches and threads", command_version},
    {NULL, NULL, NULL},
};
