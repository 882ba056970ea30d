/* help.h - help and completion scripts from the tables of options. docs/man.sh makes manual pages
 * of the help. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "command.h"

/* Prints an error for the first environment variable of the command that has an unknown value.
 * CONTINUE, or an exit status after a complaint. */
int check_variables(const usage *u);
/* Prints the help in at most 80 columns. */
void print_help(const usage *u);
void print_overview(FILE *f);
/* Print a sub-command's section of a completion script, and the text before and after all sections.
 */
void print_bash(const usage *u);
extern const char bash_end[];
void print_bash_head(void);
void print_zsh(const usage *u);
extern const char zsh_end[];
void print_zsh_head(void);

/* Prints the sub-command's section for "bash" or "zsh". Returns an exit status. */
int print_document(const usage *u, const char *form);
/* Runs the hidden adjoint --document FORM: prints a whole script for "bash" or "zsh", the names of
 * the sub-commands for "commands". Returns an exit status. */
int command_document(int argc, char **argv);

#endif
