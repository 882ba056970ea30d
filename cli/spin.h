/* spin.h - how long OpenMP's threads spin where they wait for each other. */
#ifndef CLI_SPIN_H
#define CLI_SPIN_H

/* Starts this program once again with a spin that is short, unless the environment says how to
 * wait. Returns where it does, or where the program cannot be started. */
void bound_spin(char **argv);

#endif
