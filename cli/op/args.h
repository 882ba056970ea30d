/* args.h - one op of the registry, named on a command line with its shapes and attributes.
 *
 *   --op conv2d --in 1,8,9,9 --filter 3,3,8,2 --attr strides=1,1,2,2,data_format=NCHW
 *   --op reduce_max --in 2,8,8,3 --attr axes=1,2
 *
 * Every op can be named. Operands that the line does not describe follow from --in. */
#ifndef CLI_OP_ARGS_H
#define CLI_OP_ARGS_H

#include "attrs.h"
#include "cli/command.h"

enum { OP_OPTIONS = 5, OP_LINE = 1024 };

/* As they were written; NULL: absent. */
typedef struct {
    const char *op;
    const char *in, *filter; /* the first two operands' shapes: "2,8,8,3", "scalar" */
    const char *attr, *dtype;
} op_args;

/* The options that op_args is read from. */
void op_args_options(op_args *args, option to[OP_OPTIONS]);
/* Adds " --op conv2d --in 1,5,5,2" to the line, as repeat_option does; 0: it does not fit. */
int op_args_repeat(const op_args *args, char *line, size_t size);

/* What the functions of build.h are given. */
typedef struct {
    adj_graph *g;
    adj_dtype dtype;
    adj_shape in, filter;
    int has_filter, used_filter; /* given; asked for */
    adj_format format;
    op_attrs attrs;
    adj_error error; /* of attributes that are wrong */
    int first, n;    /* operands made: names are numbered from here */
    /* Gives an operand of that type; NULL: it is a new input. */
    adj_node *(*operand)(void *user, adj_type type);
    /* In place of all this, the op's operands by their names; NULL: this one is not given. */
    adj_node *(*given)(void *user, const char *name);
    void *user;
} op_case;

/* Whether there is one of that name; else the error guesses what was meant. */
adj_status op_check_name(const char *name, adj_error *error);
/* The first option that was given, but for --op and those named in except, "--dtype"; NULL: none.
 */
const char *op_args_given(const op_args *args, const char *except);
/* Reads --dtype (absent: *dtype stays) and the attribute data_format, the only one that a model
 * has. */
adj_status op_args_types(const op_args *args, adj_dtype *dtype, adj_format *format,
                         adj_error *error);
/* Adds the op to the graph. NULL, and an error, on anything impossible. */
adj_node *op_args_build(const op_args *args, adj_graph *g, adj_error *error);
/* The same over given operands. For a gradient op these are those of its forward op, which say its
 * attributes' shapes, and its own. */
adj_node *op_args_build_given(const op_args *args, adj_graph *g,
                              adj_node *(*given)(void *user, const char *name), void *user,
                              adj_error *error);
/* Complains of an attribute (build.c). */
void op_attr_refuse(op_case *c, const char *name, const char *value, const char *expected);
/* Reads op's attributes, adj_attr_size(op) bytes. */
void op_attrs_read(op_case *c, const adj_op *op, char attrs[]);

#endif
