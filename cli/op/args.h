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

/* Options as given; NULL: absent. */
typedef struct {
    const char *op;
    /* Shapes of the first two operands: "2,8,8,3", "scalar"; filter "same": the first one again. */
    const char *in, *filter;
    const char *attr, *dtype;
} op_args;

/* Fills the table of options that set op_args. */
void op_args_options(op_args *args, option to[OP_OPTIONS]);
/* Adds " --op conv2d --in 1,5,5,2" to the line, as repeat_option does; returns 0 if it does not
 * fit. */
int op_args_repeat(const op_args *args, char *line, size_t size);

/* Arguments of the functions of build.h. */
typedef struct {
    adj_graph *g;
    adj_dtype dtype;
    adj_shape in, filter;
    int has_filter, is_same; /* 1: a shape is given; 1: the first operand is the second, too */
    int used_filter;         /* 1: an operand follows from it */
    adj_format format;
    op_attrs attrs;
    adj_error error; /* error of invalid attributes */
    int first, n;    /* number of operands made so far, for their names */
    /* Returns an operand of that type. NULL: operands are new inputs. */
    adj_node *(*operand)(void *user, adj_type type);
    /* Returns the op's operand of that name, or NULL if it is not given; replaces the members
     * above. */
    adj_node *(*given)(void *user, const char *name);
    void *user;
} op_case;

/* Checks that an op of that name exists; the error suggests a similar name. */
adj_status op_check_name(const char *name, adj_error *error);
/* Returns the first option given, except --op and those named in except ("--dtype"), or NULL. */
const char *op_args_given(const op_args *args, const char *except);
/* Reads --dtype (absent: *dtype stays) and the attribute data_format, the only one that a model
 * has. */
adj_status op_args_types(const op_args *args, adj_dtype *dtype, adj_format *format,
                         adj_error *error);
/* Adds the op to the graph. NULL, and an error, on anything impossible. */
adj_node *op_args_build(const op_args *args, adj_graph *g, adj_error *error);
/* Adds the op over given operands. For a gradient op these are its own and those of its forward op,
 * which determine the shapes of the attributes. */
adj_node *op_args_build_given(const op_args *args, adj_graph *g,
                              adj_node *(*given)(void *user, const char *name), void *user,
                              adj_error *error);
/* Sets the error for an invalid attribute (build.c). */
void op_attr_refuse(op_case *c, const char *name, const char *value, const char *expected);
/* Reads op's attributes, adj_attr_size(op) bytes. */
void op_attrs_read(op_case *c, const adj_op *op, char attrs[]);

#endif
