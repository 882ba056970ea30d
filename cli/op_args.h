/* op_args.h - one op of the registry, named on a command line with its shapes and attributes.
 *
 *   --op conv2d --in 1,8,9,9 --filter 3,3,8,2 --data-format NCHW --padding SAME --strides 1,1,2,2
 *
 * Every op can be named. Operands that the line does not describe follow from --in. */
#ifndef CLI_OP_ARGS_H
#define CLI_OP_ARGS_H

#include "adjoint.h"

enum { OP_OPTIONS = 10 };

/* As they were written; NULL: absent. */
typedef struct {
    const char *op, *in, *filter, *data_format, *padding, *explicit_paddings, *strides, *dilations,
        *ksize, *dtype;
} op_args;

/* What op_build's functions are given. */
typedef struct {
    adj_graph *g;
    adj_dtype dtype;
    adj_shape in, filter; /* filter.rank 0: absent */
    adj_format format;
    adj_attr_lists lists;
    char message[256]; /* of attributes that are wrong */
    int n;             /* operands made */
} op_case;

typedef struct {
    const char *name;
    adj_node *(*build)(op_case *c);
} op_builder;

/* All, ended by a NULL name. */
extern const op_builder op_builders[];

/* Adds the op to the graph. NULL, and a sentence in message, on anything impossible. */
adj_node *op_args_build(const op_args *args, adj_graph *g, char *message, size_t size);
/* "f32", ...; 0 if there is no such type. */
int dtype_from_name(const char *name, adj_dtype *dtype);

#endif
