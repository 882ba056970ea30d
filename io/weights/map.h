/* map.h - maps names and layouts of another program's tensors ("theirs") to this library's
 * ("ours"). */
#ifndef IO_WEIGHTS_MAP_H
#define IO_WEIGHTS_MAP_H

#include "io/tensors/tensors.h"

enum { MAP_NAME = 256, MAP_SOURCES = 2, MAP_STEPS = 8 };

typedef struct {
    int is_reshape;
    adj_shape list; /* the new shape, in which one size may be -1; or axis i becomes list.dim[i] of
                       what there was */
} map_step;

/* Entry of a map: how one of our tensors is made from theirs. Two of theirs are stacked as [2,
 * ...]; then each step is applied in order. */
typedef struct {
    char ours[MAP_NAME], theirs[MAP_SOURCES][MAP_NAME];
    int n_theirs, n_step;
    map_step step[MAP_STEPS];
    int line; /* line of a file; 0: no file */
} map_entry;

typedef struct {
    int n;
    map_entry *entry;
} weight_map;

/* The caller clears m in every case. map: "pytorch" or "keras", which need the graph with adjoint's
 * parameters (theirs may be NULL; the names in the file select among common names); else a file's
 * name. */
adj_status map_open(weight_map *m, const char *map, adj_graph *g, const adj_tensors *theirs,
                    adj_error *error);
void map_clear(weight_map *m);
/* Adds an entry, all zero; returns NULL with an error when out of memory. */
map_entry *map_add(weight_map *m, adj_error *error);
const map_entry *map_find(const weight_map *m, const char *ours);

/* Adds an entry for every parameter and state of the graph except states of training (map_names.c).
 */
adj_status map_name(weight_map *m, int keras, adj_graph *g, const adj_tensors *theirs,
                    adj_error *error);

/* Adds our tensor, made from theirs (map_apply.c). ADJ_EIO: a tensor is missing; ADJ_ESHAPE: its
 * shape does not match. */
adj_status map_import(const map_entry *e, const adj_tensors *theirs, adj_tensors *ours,
                      adj_error *error);
/* Adds their tensors, made from ours. */
adj_status map_export(const map_entry *e, const adj_tensors *ours, adj_tensors *theirs,
                      adj_error *error);

/* ---- the tensor in another program's file for each parameter (map_find.c) ---- */

enum { MAX_LAYERS = 9 };

/* The names that a parameter's tensors may have: layer, separator, part. */
typedef struct {
    char own[MAP_NAME], own_part[MAP_NAME]; /* our layer and part */
    int n_layer;
    char layer[MAX_LAYERS][MAP_NAME];
    const char *part[MAP_SOURCES], *other; /* other: another name of part[0]; NULL: none */
    const char *kind; /* Keras's name of such a layer without a given one; NULL: unknown */
    int index;        /* index of part[0] among Keras's variables of the layer */
} names;

/* Sets the names of the entries of m, whose candidates are in all, to those that the file has;
 * theirs NULL: to the first candidates. ADJ_EARG if the file has two complete sets. */
adj_status map_find_names(weight_map *m, names all[], int keras, const adj_tensors *theirs,
                          adj_error *error);
#endif
