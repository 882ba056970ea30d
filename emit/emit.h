/* emit.h - declarations shared within emit/: the groups of nodes that become functions, and the
 * writers of the functions' bodies.
 *
 * A function computes one step of the plan: a root, such as a convolution, and a chain of
 * elementwise nodes behind it, which is applied to each result before it is stored. */
#ifndef EMIT_H
#define EMIT_H

#include "graph/op.h"
#include "text.h"

enum { EMIT_OPERANDS = 24, EMIT_NAME = 24 };

/* The function under construction. Operands are those of the group. */
typedef struct {
    text t;
    const adj_group *group;
    const adj_node *root;
    const char *result; /* name of the result */
    char name[EMIT_OPERANDS][EMIT_NAME];
    char is_used[EMIT_OPERANDS]; /* operands that the body names: the parameters */
    int has_scratch;             /* the body names `scratch` */
    int has_r;                   /* the scope declares `r`, of put_result */
    int is_rounded;              /* the root's filter, operand 1, is int8 with `scale` */
    int has_double;              /* sums in local variables are double */
} function;

/* Operands whose elements an elementwise op reads for element i of its result. */
typedef enum { EACH, ONE, BY_CHANNEL, OTHERWISE } access_kind;
access_kind access_of(const adj_node *operand, const adj_node *result);

/* Returns the name of an operand of the root, which becomes a parameter. */
const char *operand_name(function *f, int i);
/* Writes the stores of a result: applies the chain to value and stores it at the element. channel:
 * an expression for operands with one element for each channel, such as "o". */
void put_result(function *f, const char *value, const char *element, const char *channel);
/* Writes the store in a scope that has the stores of other results. */
void put_next_result(function *f, const char *value, const char *element, const char *channel);

/* Returns an element of the filter, operand 1 of the root, without its scale. */
expression weight_at(function *f, const char *index);
/* Returns a sum of products with such elements, multiplied by the scale of an output channel. */
expression with_scale(const function *f, const char *sum, const char *channel);

/* Declares a sum, 0, and adds a float to it; returns its value as a float. */
void put_sum(function *f, const char *name);
void put_term(function *f, const char *name, const char *term);
expression sum_of(const function *f, const char *sum);
/* Returns the product of two floats, or of doubles of their values. */
expression product_of(const function *f, const char *a, const char *b);

/* Writes a group's parameters and body, the text behind the function's name, into memory that the
 * caller frees. is_shared: the result is computed in place. is_rounded: the filter is int8.
 * has_double: sums are double. base: the expected name, for the breaks of lines. NULL: out of
 * memory. */
char *function_text(function *f, const adj_group *g, int is_shared, int is_rounded, int has_double,
                    const char *base);

/* A row of the table. */
typedef struct {
    const adj_op *op;
    void (*write)(function *f); /* writes the body; NULL: write_elementwise */
    /* Elementwise ops: the value of an element; %a, %b, ... are the elements of the operands, %0,
     * %1, ... the op's numbers, %A, %B, ... 1 minus them. instead: that of gelu's form tanh. */
    const char *expression, *instead;
    const char *operands; /* names of the parameters: "x w" */
    const char *result;   /* NULL: "y" */
    const char *formula;  /* ops without an expression; %h, %w: the window's row and column */
    /* 1: write calls put_result. 2: after it has written to the result, which then shares no
     * memory with operands of the chain. */
    int has_chain;
    int in_place;       /* ADJ_IN(i): the result may overwrite operand i, if sizes are equal */
    const char *suffix; /* suffix of the function's name; NULL: the op's name */
    size_t (*scratch)(const adj_node *n); /* bytes; NULL: none */
    /* Returns why the node cannot be written, or NULL if it can be; NULL: always can. */
    const char *(*refuses)(const adj_node *n);
} writer;

/* Returns the row of the op, or NULL if there is none. */
const writer *writer_of(const adj_op *op);

/* The backend that plans a file: it takes the groups that are written as functions and leaves what
 * parameters alone determine to the reference, whose values become constants. */
extern const adj_backend emit_backend;

/* An axis of an index: the expression of the position, and the size. */
typedef struct {
    const char *at;
    int64_t size;
} axis;
/* Returns the row-major index, "(n * 28 + oh) * 28 + ow", without axes of size 1; "0" if nothing is
 * left. */
expression index_of(int n, const axis a[]);
/* Returns "index + 3", or the other one if one is 0. */
expression plus(const char *a, const char *b);
/* Blocks of elements: at most `size`, as many as expression count says, from first on. */
typedef struct {
    int braces; /* to close */
    int64_t size;
    expression first, count; /* first: "0" for one block */
} blocks;
/* Opens a loop over blocks of at most `most` of n elements, for sums in an array of the blocks'
 * size, which compilers keep in registers. */
blocks put_blocks(text *t, const char *variable, int64_t n, int64_t most);

/* Sets the elements of the result. */
void put_filled(function *f, double value);
/* Variables of loops over axes. */
extern const char *const axis_loop[ADJ_MAX_RANK];

/* ---- writers ---- */

void write_elementwise(function *f), write_fill(function *f);
void write_conv2d(function *f), write_conv2d_backprop_input(function *f),
    write_conv2d_backprop_filter(function *f);
void write_matmul(function *f);
void write_max_pool(function *f), write_max_pool_grad(function *f), write_avg_pool(function *f),
    write_avg_pool_grad(function *f);
void write_reduce(function *f), write_bias_add_grad(function *f),
    write_prelu_grad_slope(function *f), write_resize(function *f), write_resize_grad(function *f);
void write_pad(function *f), write_slice(function *f), write_transpose(function *f),
    write_concat(function *f), write_broadcast_to(function *f);
void write_batch_norm(function *f), write_batch_norm_stats(function *f),
    write_batch_norm_grad_sums(function *f), write_batch_norm_grad(function *f);
void write_group_norm(function *f), write_group_norm_grad_sums(function *f),
    write_group_norm_grad(function *f);
void write_softmax(function *f), write_cross_entropy(function *f),
    write_cross_entropy_grad(function *f), write_label_count(function *f);
void write_adam_step(function *f), write_dropout(function *f);
/* Writes the function that dropout and initial values call. */
void put_philox(FILE *f);
/* Writes the function for elements of tanh. */
void put_tanh(FILE *f);
size_t batch_norm_scratch(const adj_node *n), batch_norm_grad_scratch(const adj_node *n);

#endif
