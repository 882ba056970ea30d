/* isa.c - the table of kernels compiled for one instruction set. */
#include "isa.h"
#include "backends/direct/gemm/gemm.h"
#include "backends/direct/group_norm/group_norm.h"
#include "backends/direct/max_pool/max_pool.h"
#include "backends/direct/winograd/winograd.h"

extern const direct_code DIRECT(dropout), DIRECT(fused_pointwise), DIRECT(resize), DIRECT(softmax),
    DIRECT(depthwise_image_f32), DIRECT(depthwise_image_f64), DIRECT(depthwise_filter_f32),
    DIRECT(depthwise_filter_f64), DIRECT(filter_gemm_f32), DIRECT(filter_gemm_f64);
extern const gemm_code DIRECT(gemm_f32), DIRECT(gemm_f64);
extern const group_norm_code DIRECT(group_norm_rows_f32), DIRECT(group_norm_rows_bf16),
    DIRECT(group_norm_image_f32), DIRECT(group_norm_image_bf16);
extern const max_pool_code DIRECT(max_pool_f32), DIRECT(max_pool_bf16);
extern const winograd_code DIRECT(winograd_image_f32), DIRECT(winograd_image_bf16),
    DIRECT(winograd_filter_f32), DIRECT(winograd_filter_bf16);

const direct_isa DIRECT(isa) = {
    .name = ISA_NAME,
    .dropout = &DIRECT(dropout),
    .fused_pointwise = &DIRECT(fused_pointwise),
    .resize = &DIRECT(resize),
    .softmax = &DIRECT(softmax),
    .filter_gemm = {&DIRECT(filter_gemm_f32), &DIRECT(filter_gemm_f64)},
    .gemm = {&DIRECT(gemm_f32), &DIRECT(gemm_f64)},
    .vector_bytes = VECTOR_BYTES,
    .depthwise_image = {&DIRECT(depthwise_image_f32), &DIRECT(depthwise_image_f64)},
    .depthwise_filter = {&DIRECT(depthwise_filter_f32), &DIRECT(depthwise_filter_f64)},
    .group_norm_rows = {&DIRECT(group_norm_rows_f32), &DIRECT(group_norm_rows_bf16)},
    .group_norm_image = {&DIRECT(group_norm_image_f32), &DIRECT(group_norm_image_bf16)},
    .max_pool = {&DIRECT(max_pool_f32), &DIRECT(max_pool_bf16)},
    .winograd_image = {&DIRECT(winograd_image_f32), &DIRECT(winograd_image_bf16)},
    .winograd_filter = {&DIRECT(winograd_filter_f32), &DIRECT(winograd_filter_bf16)},
};
