/* map_find.h - the usual names of each parameter in another program, and which of them a file has.
 */
#ifndef IO_WEIGHTS_MAP_FIND_H
#define IO_WEIGHTS_MAP_FIND_H

#include "map.h"

enum { MAX_LAYERS = 9 };

/* The names that a parameter's tensors may have: layer, separator, part. */
typedef struct {
    char own[MAP_NAME], own_part[MAP_NAME]; /* our layer and part */
    int n_layer;
    char layer[MAX_LAYERS][MAP_NAME];
    const char *part[MAP_SOURCES], *other; /* other: of part[0], as some call it; NULL: none */
    const char *kind; /* Keras's name of such a layer that was given none; NULL: not known */
    int index;        /* of part[0] among Keras's variables of the layer */
} names;

/* Completes the entries of m, whose names are in all, by what is in the file; theirs NULL: by the
 * first of the names. ADJ_EARG if the file has two complete sets of them. */
adj_status map_find_names(weight_map *m, names all[], int keras, const adj_tensors *theirs,
                          adj_error *error);

#endif
