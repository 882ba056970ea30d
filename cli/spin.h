/* spin.h - spin time of OpenMP's waiting threads. */
#ifndef CLI_SPIN_H
#define CLI_SPIN_H

/* Starts the tool once again with a short spin, unless the environment says how threads wait:
 * libgomp reads that before main. Returns where it need not, or cannot be done. */
void spin_shortly(char **argv);
/* Returns the setting, such as "GOMP_SPINCOUNT=10000", or NULL for libgomp's default. */
const char *spin_setting(char *text, int size);

#endif
