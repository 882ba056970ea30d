/* crash.h - the last line of a comparison that is ended by one of its kernels. */
#ifndef CLI_COMPARE_CRASH_H
#define CLI_COMPARE_CRASH_H

/* From now on a signal that ends the tool is told with a line about --guard, and ends it still. */
void announce_crashes(void);

#endif
