/* isa.c - the table of one instruction set's code. */
#include "isa.h"
#include "chain.h"
#include "depthwise.h"

extern const depthwise_code DIRECT(depthwise_image_f32), DIRECT(depthwise_image_f64),
    DIRECT(depthwise_filter_f32), DIRECT(depthwise_filter_f64);

const direct_isa DIRECT(isa) = {
    .name = ISA_NAME,
    .chain_segment = DIRECT(chain_segment),
    .depthwise_image = &DIRECT(depthwise_image_f32),
    .depthwise_filter = &DIRECT(depthwise_filter_f32),
    .depthwise_image_f64 = &DIRECT(depthwise_image_f64),
    .depthwise_filter_f64 = &DIRECT(depthwise_filter_f64),
};
