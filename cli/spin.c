/* spin.c - see spin.h. */
#include <stdlib.h>
#include <unistd.h>

#include "spin.h"

/* libgomp spins for milliseconds at a barrier; where another process has one of the processors, the
 * thread that is awaited waits for that long, too, at each of a step's barriers. Of so few turns,
 * measured, an idle machine notices nothing, and without any (OMP_WAIT_POLICY=passive) a step of
 * many small kernels takes twice as long. libgomp reads the variable when it is loaded: hence
 * execv. */
void bound_spin(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") == NULL && getenv("GOMP_SPINCOUNT") == NULL &&
        setenv("GOMP_SPINCOUNT", "10000", 1) == 0)
        (void)execv("/proc/self/exe", argv);
}
