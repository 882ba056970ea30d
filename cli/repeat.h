/* repeat.h - a command line that does something again, as a shell reads it back. */
#ifndef CLI_REPEAT_H
#define CLI_REPEAT_H

#include <stddef.h>

/* Begins the line: "adjoint gradcheck", behind ADJOINT_QUARANTINE=off if the environment has it. */
void repeat_command(char *line, size_t size, const char *command);
/* Adds " word", in quotes if it has letters that a shell minds. */
void repeat_word(char *line, size_t size, const char *word);
/* Adds " --option value", "" of a flag; NULL: nothing. What does not fit is cut off. */
void repeat_option(char *line, size_t size, const char *option, const char *value);
/* The same, unless the value is the default. */
void repeat_number(char *line, size_t size, const char *option, double value, double default_value);

#endif
