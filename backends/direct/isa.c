/* isa.c - the table of one instruction set's code. */
#include "isa.h"
#include "chain.h"

const direct_isa DIRECT(isa) = {
    .name = ISA_NAME,
    .chain_segment = DIRECT(chain_segment),
};
