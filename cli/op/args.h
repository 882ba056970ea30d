/* args.h - one op of the registry, named on a command line with its shapes and attributes.
 *
 *   --op conv2d --in 1,8,9,9 --filter 3,3,8,2 --attr strides=1,1,2,2,data_format=NCHW
 *   --op reduce_max --in 2,8,8,3 --attr axes=1,2
 *   --op scale --attr 0.25                   the op's first attribute needs no name
 *
 * A value of --attr ends at the next name. Choices and element types are words. Every op can be
 * named. It is built from its declared operands and attributes (adj_op.example, adj_op.schema);
 * operands that the line does not describe follow from --in. */
#ifndef CLI_OP_ARGS_H
#define CLI_OP_ARGS_H

#include "cli/command.h"
#include "graph/op.h"

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
/* Checks that an op of that name exists; the error suggests a similar name. */
adj_status op_check_name(const char *name, adj_error *error);
/* Returns the first option given, except --op and those named in except ("--dtype"), or NULL. */
const char *op_args_given(const op_args *args, const char *except);
/* Reads --dtype (absent: *dtype stays) and the attribute data_format, the only one that a model
 * has. */
adj_status op_args_types(const op_args *args, adj_dtype *dtype, adj_format *format,
                         adj_error *error);
/* Adds the op to the graph. NULL, and an error, on anything impossible: ADJ_EARG, or ADJ_ENOMEM. */
adj_node *op_args_build(const op_args *args, adj_graph *g, adj_error *error);
/* Adds the op over given operands. For a gradient op these are its own and those of its forward op,
 * which determine the shapes of the attributes. */
adj_node *op_args_build_given(const op_args *args, adj_graph *g,
                              adj_node *(*given)(void *user, const char *name), void *user,
                              adj_error *error);

/* ---- attributes (attrs.c) ---- */

enum { OP_ATTR_TEXT = 512, OP_ATTRS = 16 };

typedef struct {
    const char *name, *value;
    int is_used; /* op_attrs_value has returned it */
} op_attr_item;

typedef struct {
    char text[OP_ATTR_TEXT]; /* memory of the items */
    int n;
    op_attr_item item[OP_ATTRS];
} op_attrs;

/* Splits the text (NULL: no attributes). op: the op whose first attribute needs no name, or NULL. a
 * must not be copied. */
adj_status op_attrs_split(op_attrs *a, const adj_op *op, const char *text, adj_error *error);
/* Returns the attribute's value, or NULL if it is not given. */
const char *op_attrs_value(op_attrs *a, const char *name);
/* Reads "1,2,2,1". Returns the number of entries, or -1 for text that is not a list of at most max
 * numbers. */
int op_read_list(const char *text, int max, int64_t number[]);
/* Reads a float type such as "f32"; returns 0 for another name. */
int dtype_from_name(const char *name, adj_dtype *dtype);

/* An op to build. */
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

/* Sets the error for an invalid attribute. */
void op_attr_refuse(op_case *c, const char *name, const char *value, const char *expected);
/* True if the attribute has the same default whatever the operands are. */
int op_attr_has_default(const adj_attr *a);
/* Reads op's attributes, adj_attr_size(op) bytes. */
void op_attrs_read(op_case *c, const adj_op *op, char attrs[]);

/* ---- the ops (build.c) ---- */

/* Returns the i-th name of an op that can be built, or NULL past the last. */
const char *op_name_at(int i);
/* Returns the op of that name, or NULL if there is none. */
const adj_op *op_find(const char *name);
/* Bytes of an operand's name: its own name, or x0, x1, ... */
enum { OPERAND_NAME = 32 };
const char *op_operand_name(const adj_op *op, int i, char name[OPERAND_NAME]);
/* Adds the op of one of these names over the case's operands. */
adj_node *op_build(op_case *c, const char *name);

/* A builder without an op of its own: its operands, and the ops that it makes, "a, b". */
typedef struct {
    const char *name, *operands, *made_of;
} op_composition;
enum { N_COMPOSITION = 6 };
extern const op_composition op_compositions[N_COMPOSITION];
/* Returns the composition of that name, or NULL if there is none. */
const op_composition *op_composition_find(const char *name);

/* Returns the kind of operand n in the op's example, or in that of ops without one; NONE past the
 * last. */
adj_example op_example(const adj_op *op, int n);
/* True if --filter describes the operand. */
int is_from_filter(adj_example kind);
/* Maps a maker's operands to the op's: operand k of the maker is the op's operand from[k]. */
void op_maker_operands(const adj_op *op, const adj_op *maker, int from[ADJ_NAMED_OPERANDS]);

#endif
