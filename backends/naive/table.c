/* table.c - which op is computed by which naive kernel; compiled once per element type. */
#include "kernels.h"

const naive_entry KERNEL(table)[] = {
    {.op = &adj_op_fill, .run = KERNEL(fill)},
    {.op = NULL},
};
