/* planted.h - oneDNN's backend with a fault planted into it: for every filter gradient of a dense
 * f32 convolution, the implementation that it would take first without a quarantine is wrong; all
 * others are what they are. The convolution's stride selects the kind of fault, so that the sweep
 * can be tested on any machine and with any oneDNN. LeNet's second filter gradient is wrong by any
 * implementation, but only for more than eight images; its first one, which is oneDNN's on some
 * machines alone, is right. */
#ifndef TESTS_CLI_PLANTED_H
#define TESTS_CLI_PLANTED_H

#include "graph/op.h"

enum { /* strides */
       PLANTED_WRONG = 1,
       PLANTED_NAN = 2,
       PLANTED_CRASH = 3,
       PLANTED_HANG_KERNEL = 5,   /* filters of this size, and 3 output channels: never returns */
       PLANTED_IMAGES_KERNEL = 5, /* filters of this size, 32 outputs at least */
       PLANTED_IMAGES = 8         /* right for at most so many */
};

/* NULL-ended, for adj_exec_opts.backends and adj_compare_opts.backends. */
const adj_backend *const *planted_backends(void);

/* Makes run_tool start the tool with these backends and default plans from now on. */
void planted_use_tool(void);

#endif
