/* build.h - every op over operands that suit a shape: the table of all, and what its functions
 * share. */
#ifndef CLI_OP_BUILD_H
#define CLI_OP_BUILD_H

#include "args.h"

typedef struct {
    const char *name;
    adj_node *(*build)(op_case *c);
} op_builder;

/* Each ended by a NULL name. */
extern const op_builder image_builders[], element_builders[], shape_builders[], loss_builders[];
/* The names of all ops that can be built, those of the tables first; NULL past the last. An op
 * without attributes that works element by element needs no row. */
const char *op_name_at(int i);
/* The op of one of these names over the case's operands. */
adj_node *op_build(op_case *c, const char *name);

/* ---- operands ---- */

adj_node *operand(op_case *c, adj_dtype dtype, adj_shape shape);
adj_node *operand_like(op_case *c, const adj_node *n);
adj_node *operand_x(op_case *c);                       /* of --in's shape */
adj_node *operand_second(op_case *c, adj_shape usual); /* of --filter's */
adj_node *operand_scalar(op_case *c, adj_dtype dtype);
adj_node *operand_matrix(op_case *c); /* [first dimension, everything else] */
adj_node *operand_labels(op_case *c); /* i32 [first dimension] */
int64_t channels_of(const op_case *c);
int64_t last_of(adj_shape shape);

/* ---- --attr's numbers ---- */

double attr_real(op_case *c, int i, double usual);
/* A number that is no whole one, or beyond int32, is an error. */
int attr_int(op_case *c, int i, int usual);
/* rank numbers from number i on. */
adj_shape attr_shape(op_case *c, int i, int rank);

#endif
