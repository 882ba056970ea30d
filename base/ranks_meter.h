/* ranks_meter.h - measurements of a group of processes, for reports. */
#ifndef ADJ_RANKS_METER_H
#define ADJ_RANKS_METER_H

#include "adjoint.h"

/* Behind adj_ranks.meter; NULL for groups of other libraries than libadjoint_mpi. */
typedef struct adj_ranks_meter {
    double (*waited)(void *group); /* total seconds that this process waited for others */
    /* Returns the total seconds in which a reduction of this process was under way. */
    double (*traveled)(void *group);
    /* Measures the link from rank 0 to rank 1: seconds of an empty message and bits per second of a
     * large one. */
    adj_status (*measure_link)(void *group, double *latency, double *bits_per_second,
                               adj_error *error);
} adj_ranks_meter;

#endif
