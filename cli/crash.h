/* crash.h - prints a last line when a kernel crashes the tool. */
#ifndef CLI_CRASH_H
#define CLI_CRASH_H

/* Prints this line, which must stay valid, when a signal ends the tool from now on. */
void announce_crashes(const char *line);

#endif
