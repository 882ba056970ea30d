/* replace.h - a file that is written beside the one it replaces and then takes its name. */
#ifndef IO_REPLACE_H
#define IO_REPLACE_H

#include "io.h"

/* Whom a sentence is for, and about which file. */
typedef struct {
    const char *what; /* what it begins with: "safetensors: " or "" */
    const char *path;
    char *message;
    size_t size;
} place;

adj_status io_out_of_memory(const place *p);
/* errno's sentence. */
adj_status io_system_error(const place *p);

/* The new file is open and locked between begin and end; end with status != ADJ_OK throws it away.
 * Status: the first that went wrong, with its sentence. */
typedef struct {
    char *target;  /* the file itself: symbolic links are followed */
    char *partial; /* the new one's name until it is whole */
    int fd;
} replacement;
adj_status io_replace_begin(const place *p, replacement *r);
adj_status io_replace_end(const place *p, replacement *r, adj_status status);

#endif
