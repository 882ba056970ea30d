/* crash.h - the last line of a checker that is ended by one of the kernels that it runs. */
#ifndef CLI_CRASH_H
#define CLI_CRASH_H

/* From now on a signal that ends the tool is reported with this line, which stays, and ends it
 * still. */
void announce_crashes(const char *line);

#endif
