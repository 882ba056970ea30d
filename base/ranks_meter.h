/* ranks_meter.h - measurements of a group of processes, for reports. */
#ifndef ADJ_RANKS_METER_H
#define ADJ_RANKS_METER_H

#include "adjoint.h"

/* Behind adj_ranks.meter; NULL for groups of other libraries than libadjoint_mpi. */
typedef struct adj_ranks_meter {
    double (*waited)(void *group); /* total seconds that this process waited for others */
    /* Returns the total seconds in which a reduction of this process was under way. */
    double (*traveled)(void *group);
} adj_ranks_meter;

#endif
