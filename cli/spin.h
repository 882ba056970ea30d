/* spin.h - how long OpenMP's waiting threads spin before they sleep. */
#ifndef CLI_SPIN_H
#define CLI_SPIN_H

/* Starts the tool once again with a short spin, unless the environment says how threads wait:
 * libgomp reads that before main. Returns where it need not, or cannot be done. */
void spin_shortly(char **argv);
/* "GOMP_SPINCOUNT=10000": what is set; NULL: nothing, libgomp's own. */
const char *spin_setting(char *text, int size);

#endif
