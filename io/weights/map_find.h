/* map_find.h - finds the tensor in another program's file for each parameter. */
#ifndef IO_WEIGHTS_MAP_FIND_H
#define IO_WEIGHTS_MAP_FIND_H

#include "map.h"

enum { MAX_LAYERS = 9 };

/* The names that a parameter's tensors may have: layer, separator, part. */
typedef struct {
    char own[MAP_NAME], own_part[MAP_NAME]; /* our layer and part */
    int n_layer;
    char layer[MAX_LAYERS][MAP_NAME];
    const char *part[MAP_SOURCES], *other; /* other: another name of part[0]; NULL: none */
    const char *kind; /* Keras's name of such a layer without a given one; NULL: unknown */
    int index;        /* of part[0] among Keras's variables of the layer */
} names;

/* Sets the names of the entries of m, whose candidates are in all, to those that the file has;
 * theirs NULL: to the first candidates. ADJ_EARG if the file has two complete sets. */
adj_status map_find_names(weight_map *m, names all[], int keras, const adj_tensors *theirs,
                          adj_error *error);
/* Puts in front of the entries' names the prefix that at least half of them have in the file, where
 * the file has such a name. ADJ_EARG if two prefixes do. */
adj_status map_find_prefix(weight_map *m, const adj_tensors *theirs, adj_error *error);

#endif
