/* efficiencies.c - the efficiency table of oneDNN's implementations. Measured by
 * bench/efficiency.py, cold, on two threads; rows for AMX follow from the ratios to direct's
 * kernels of the same products. */
#include "backends/efficiency.h"

const efficiency onednn_efficiencies[] = {
    {"jit_dw", "avx512", ALL_DIRECTIONS, GROUPED, {0.11, 0.30, 0.33}},
    {"jit_dw", "", ALL_DIRECTIONS, GROUPED, {0.45, 0.34, 0.54}},
    {"", "", ALL_DIRECTIONS, GROUPED, {0.03, 0.02, 0.02}},
    {"x64:gemm", "", ALL_DIRECTIONS, DENSE, {0.15, 0.55, 0.88}},
    {"", "amx", ALL_DIRECTIONS, DENSE, {1.1, 4.0, 6.0}},
    {"brgconv", "bf16", FORWARD | INPUT, DENSE, {0.80, 1.4, 2.5}},
    {"jit_bf16", "", FORWARD | INPUT, DENSE, {1.0, 2.3, 2.6}},
    {"jit_bf16", "", FILTER, DENSE, {1.0, 1.4, 1.7}},
    {"brgconv", "", FORWARD | INPUT, DENSE, {0.50, 1.3, 1.6}},
    {"jit_wino", "", ALL_DIRECTIONS, SMALL, {0.20, 1.3, 1.7}},
    {"jit_1x1", "avx512", FORWARD | INPUT, POINT, {0.40, 1.15, 1.45}},
    {"jit_1x1", "avx512", FILTER, POINT, {0.40, 0.85, 1.1}},
    {"jit_1x1", "", FORWARD | INPUT, POINT, {0.95, 1.4, 1.45}},
    {"jit_1x1", "", FILTER, POINT, {0.95, 0.85, 1.1}},
    {"jit:", "avx512", FORWARD, DENSE, {1.0, 1.3, 1.3}},
    {"jit:", "avx512", INPUT, DENSE, {0.20, 1.35, 1.3}},
    {"jit:", "avx512", FILTER, WINDOW, {0.70, 1.05, 1.2}},
    {"jit:", "", FORWARD, DENSE, {0.90, 0.97, 0.97}},
    {"jit:", "", INPUT, DENSE, {0.40, 1.3, 1.3}},
    {"jit:", "", FILTER, WINDOW, {0.95, 1.1, 1.1}},
    {0},
};
