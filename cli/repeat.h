/* repeat.h - a command line that repeats a run, quoted for a shell. */
#ifndef CLI_REPEAT_H
#define CLI_REPEAT_H

#include <stddef.h>

/* Starts the line with "adjoint gradcheck", preceded by ADJOINT_QUARANTINE=off if the environment
 * has it. */
void repeat_command(char *line, size_t size, const char *command);
/* Adds " word", in quotes if it has special characters of a shell. */
void repeat_word(char *line, size_t size, const char *word);
/* Adds " --option value", "" of a flag; NULL: nothing. Text that does not fit is cut off. */
void repeat_option(char *line, size_t size, const char *option, const char *value);
enum { NUMBER_TEXT = 40 };
/* Writes the shortest text that reads back as the value, of whole numbers without an exponent. */
const char *number_text(double value, char text[NUMBER_TEXT]);
/* Adds " --option value" for a number, unless it is the default. */
void repeat_number(char *line, size_t size, const char *option, double value, double default_value);

#endif
