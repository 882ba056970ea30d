/* conv_rules.h - which convolutions oneDNN is good at, and with which of its kernels: measured, for
 * plans that time nothing. n is one of the six convolutions. */
#ifndef ONEDNN_CONV_RULES_H
#define ONEDNN_CONV_RULES_H

#include "adjoint_ext.h"

/* Are our own kernels (backends/direct) faster? */
int conv_is_slow(const adj_node *n);
/* May they be? They say so by their rank. */
int conv_has_rival(const adj_node *n, adj_math math);
/* How the names begin of the implementations that are faster than what oneDNN's list has first;
 * NULL: nothing is. */
const char *conv_wanted(const adj_node *n);
/* Is nChw16c faster than channels-last? */
int conv_wants_blocks(const adj_node *n);
/* Is Winograd's algorithm, where it is allowed, oneDNN's fastest? */
int conv_winograd_pays(const adj_node *n);

#endif
