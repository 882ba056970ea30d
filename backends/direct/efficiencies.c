/* efficiencies.c - the efficiency table of direct's kernels. Measured by bench/efficiency.py, cold,
 * on two threads; rows for AMX follow from the ratios to oneDNN's kernels of the same products. */
#include "backends/efficiency.h"

const efficiency direct_efficiencies[] = {
    {"depthwise", "", FORWARD, GROUPED, {0.18, 0.22, 0.26}},
    {"depthwise", "", INPUT, GROUPED, {0.23, 0.36, 0.60}},
    {"depthwise", "", FILTER, GROUPED, {0.20, 0.28, 0.28}},
    {"conv_bf16x3", "", ALL_DIRECTIONS, SMALL, {0.20, 2.7, 2.0}},
    {"conv_bf16x3", "", ALL_DIRECTIONS, LARGE, {0.20, 4.0, 4.0}},
    {"conv_bf16:", "", ALL_DIRECTIONS, SMALL, {1.0, 5.0, 4.0}},
    {"conv_bf16:", "", ALL_DIRECTIONS, POINT | LARGE, {1.0, 3.0, 4.0}},
    {"filter_bf16x3", "", FILTER, SMALL, {0.20, 2.8, 2.0}},
    {"filter_bf16x3", "", FILTER, LARGE, {0.20, 4.0, 4.0}},
    {"filter_bf16:", "amx", FILTER, WINDOW, {1.5, 5.0, 6.5}},
    {"filter_bf16:", "amx", FILTER, POINT, {1.5, 4.5, 4.0}},
    {"filter_bf16:", "", FILTER, DENSE, {0.40, 2.1, 1.8}},
    {"winograd", "", ALL_DIRECTIONS, WINDOW, {2.1, 2.1, 2.05}},
    {"winograd", "", ALL_DIRECTIONS, PACKED, {1, 4, 4}},
    {"filter_gemm", "avx512", FILTER, DENSE, {0.43, 1.0, 1.15}},
    {"filter_gemm", "", FILTER, DENSE, {1.0, 1.2, 1.25}},
    {"gemm", "avx512", FORWARD, DENSE, {0.70, 1.1, 1.3}},
    {"gemm", "avx512", INPUT, DENSE, {0.07, 1.2, 1.35}},
    {"gemm", "", FORWARD | INPUT, DENSE, {0.60, 1.35, 1.35}},
    {"gemm", "", FORWARD, MATMUL, {1.0, 0.30, 0.30}},
    {0},
};
