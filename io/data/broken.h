/* broken.h - names the images of a data set that cannot be read, or leaves them out. */
#ifndef IO_DATA_BROKEN_H
#define IO_DATA_BROKEN_H

#include "data.h"

/* The outcome of reading one image; ADJ_OK also if it was not tried. */
typedef struct reading {
    adj_status status;
    char *why; /* the message; NULL when out of memory */
} reading;

/* Stores a failure and its sentence. */
void io_reading_set(reading *r, adj_status status, const adj_error *error);
void io_readings_free(reading *each, int64_t n);

/* Returns ADJ_OK if all n images of d were read; else lists the broken ones in origin.broken.
 * Without skip it fails with a message that names the first ones. With skip it removes them, and
 * fails if a class that had images loses all of them, unless d takes its classes from another
 * split. Running out of memory always fails. Called once for a data set. */
adj_status io_settle_broken(dataset *d, const reading each[], int skip);

#endif
