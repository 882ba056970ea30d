/* conv_rules.h - which convolutions oneDNN is good at, and with which of its kernels: measured, for
 * plans that time nothing. n is one of the six convolutions. */
#ifndef ONEDNN_CONV_RULES_H
#define ONEDNN_CONV_RULES_H

#include "adjoint_ext.h"

/* Are the kernels of backends/direct faster than oneDNN's? */
int yields_to_direct(const adj_node *n);
/* May they be? Their rank says so. */
int competes_with_direct(const adj_node *n, adj_math math);
/* How the names begin of the implementations that are faster than what oneDNN's list has first;
 * NULL: nothing is. */
const char *preferred_impl(const adj_node *n);
/* Is nChw16c faster than channels-last? */
int prefers_blocks(const adj_node *n);
/* Is Winograd's algorithm, where it is allowed, oneDNN's fastest? */
int prefers_winograd(const adj_node *n);

#endif
