/* table.h - functions listed in the table of operators (table.c). */
#ifndef ONNX_TABLE_H
#define ONNX_TABLE_H

#include "import.h"

int fold_cast(call *n);
int fold_clip(call *n);
int fold_concat(call *n);
int fold_constant(call *n);
int fold_constant_of_shape(call *n);
int fold_expand(call *n);
int fold_gather(call *n);
int fold_range(call *n);
int fold_reduce_prod(call *n);
int fold_reshape(call *n);
int fold_slice(call *n);
int fold_squeeze(call *n);
int fold_transpose(call *n);
int fold_unsqueeze(call *n);
int fold_where(call *n);
int import_and(call *n);
int import_arg_max(call *n);
int import_arg_min(call *n);
int import_average_pool(call *n);
int import_batch_norm(call *n);
int import_cast(call *n);
int import_cast_like(call *n);
int import_celu(call *n);
int import_clip(call *n);
int import_concat(call *n);
int import_concat_from_sequence(call *n);
int import_conv(call *n);
int import_conv_transpose(call *n);
int import_depth_to_space(call *n);
int import_dequantize(call *n);
int import_dropout(call *n);
int import_elu(call *n);
int import_equal(call *n);
int import_expand(call *n);
int import_flatten(call *n);
int import_gather(call *n);
int import_gather_nd(call *n);
int import_gelu(call *n);
int import_gemm(call *n);
int import_global_average_pool(call *n);
int import_global_lp_pool(call *n);
int import_global_max_pool(call *n);
int import_greater(call *n);
int import_greater_or_equal(call *n);
int import_group_norm(call *n);
int import_hard_sigmoid(call *n);
int import_identity(call *n);
int import_if(call *n);
int import_instance_norm(call *n);
int import_layer_norm(call *n);
int import_leaky_relu(call *n);
int import_less(call *n);
int import_less_or_equal(call *n);
int import_log_softmax(call *n);
int import_lp_pool(call *n);
int import_lrn(call *n);
int import_matmul(call *n);
int import_max_pool(call *n);
int import_mean(call *n);
int import_mish(call *n);
int import_nll_loss(call *n);
int import_not(call *n);
int import_or(call *n);
int import_pad(call *n);
int import_pow(call *n);
int import_prelu(call *n);
int import_quantize(call *n);
int import_reciprocal(call *n);
int import_reduce_l1(call *n);
int import_reduce_l2(call *n);
int import_reduce_log_sum(call *n);
int import_reduce_log_sum_exp(call *n);
int import_reduce_max(call *n);
int import_reduce_mean(call *n);
int import_reduce_min(call *n);
int import_reduce_sum(call *n);
int import_reduce_sum_square(call *n);
int import_reshape(call *n);
int import_resize(call *n);
int import_selu(call *n);
int import_sequence_at(call *n);
int import_sequence_construct(call *n);
int import_sequence_empty(call *n);
int import_sequence_erase(call *n);
int import_sequence_insert(call *n);
int import_sequence_length(call *n);
int import_shape(call *n);
int import_shrink(call *n);
int import_sign(call *n);
int import_size(call *n);
int import_slice(call *n);
int import_softmax(call *n);
int import_softmax_cross_entropy(call *n);
int import_softsign(call *n);
int import_space_to_depth(call *n);
int import_split(call *n);
int import_split_to_sequence(call *n);
int import_squeeze(call *n);
int import_swish(call *n);
int import_thresholded_relu(call *n);
int import_tile(call *n);
int import_transpose(call *n);
int import_unsqueeze(call *n);
int import_upsample(call *n);
int import_where(call *n);
int import_xor(call *n);

/* Shapes of Squeeze and Unsqueeze; ranges of Slice, for each axis. Return 0 having refused. */
int squeezed_shape(call *n, adj_shape *to);
int unsqueezed_shape(call *n, adj_shape *to);
int read_slice(call *n, int64_t begin[], int64_t count[], int64_t step[]);
/* Sets *to to a shape given as numbers. Returns 0 having refused. */
int shape_from(call *n, const numbers *list, adj_shape *to);
/* Reads perm, the reverse of the axes by default. Returns 0 having refused. */
int read_perm(call *n, int perm[]);
/* Copies element `from` of a to element `to` of b, of the same type. */
void copy_element(const numbers *a, int64_t from, numbers *b, int64_t to);
/* Moves at[] to the next element of a row-major shape. Returns 0 past the last. */
int next_place(const adj_shape *s, int64_t at[]);
double minus(double x);
double is_zero(double x);
double sign(double x);

#endif
