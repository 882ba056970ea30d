/* depthwise_image_f64.c - depthwise_image.c in double. */
#define DEPTHWISE_F64
#include "depthwise_image.c"
