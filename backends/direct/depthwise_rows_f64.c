/* depthwise_rows_f64.c - depthwise_rows.c in double. */
#define DEPTHWISE_F64
#include "depthwise_rows.c"
