/* attrs.h - the attributes of one op as --attr has them:
 *
 *   strides=1,2,2,1,padding=VALID
 *   epsilon=0.001,groups=4
 *   0.25                              the op's first attribute needs no name
 *
 * A value ends at the next name. Choices and element types are words. */
#ifndef CLI_OP_ATTRS_H
#define CLI_OP_ATTRS_H

#include "graph/op.h"

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

#endif
