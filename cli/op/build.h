/* build.h - every op of the registry over operands that suit a shape, from the op's declared
 * operands and attributes (adj_op.example, adj_op.schema). */
#ifndef CLI_OP_BUILD_H
#define CLI_OP_BUILD_H

#include "args.h"
#include "graph/op.h"

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
