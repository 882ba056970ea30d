/* spin.h - spin time of OpenMP's waiting threads. */
#ifndef CLI_SPIN_H
#define CLI_SPIN_H

/* Starts the tool again with a short spin, as libgomp reads the setting before main, unless the
 * environment already sets how threads wait. Returns if that is unnecessary or fails. */
void spin_shortly(char **argv);
/* Returns the setting, such as "GOMP_SPINCOUNT=10000", or NULL for libgomp's default. */
const char *spin_setting(char *text, int size);

#endif
