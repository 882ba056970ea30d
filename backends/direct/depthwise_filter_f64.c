/* depthwise_filter_f64.c - depthwise_filter.c in double. */
#define DEPTHWISE_F64
#include "depthwise_filter.c"
