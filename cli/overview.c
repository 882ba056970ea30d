/* overview.c - the sub-commands, in the order of adjoint help. */
#include "command.h"

const command commands[] = {
    {"train", "trains a model on images", command_train, 1},
    {"eval", "the test accuracy of weights in a file", command_eval, 1},
    {"predict", "what images show, by weights in a file", command_predict, 0},
    {"models", "lists the models", command_models, 0},
    {"gradcheck", "checks gradients against numbers made another way", command_gradcheck, 1},
    {"compare", "compares backends, types and layouts node by node", command_compare, 1},
    {"bench", "times steps of a model, or the kernels of an op", command_bench, 1},
    {"ops", "lists the ops, with their operands and attributes", command_ops, 0},
    {"op", "runs one op, or its gradients, on tensors from a file", command_op, 0},
    {"inspect", "names, shapes and ranges of the tensors in a file", command_inspect, 0},
    {"convert", "tensors in files of other formats, or under other names", command_convert, 0},
    {"selftest", "tries this machine's oneDNN, writes a quarantine file", command_selftest, 1},
    {"version", "versions, instruction sets, caches and threads", command_version, 0},
    {NULL, NULL, NULL, 0},
};
