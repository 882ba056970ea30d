/* help.h - what the tool says of itself, from the tables of its options: as text, of which
 * docs/man.sh makes manual pages, and as what shells complete. */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include <stdio.h>

#include "command.h"

/* Complains of the first variable with an unknown value among those that the command reads.
 * CONTINUE, or an exit status after a complaint. */
int check_variables(const usage *u);
/* Text of at most 80 columns. */
void print_help(const usage *u);
void print_overview(FILE *f);
/* A sub-command's part of a completion script, and what is in front of all of these and behind. */
void print_bash(const usage *u);
extern const char bash_end[];
void print_bash_head(void);
void print_zsh(const usage *u);
extern const char zsh_end[];
void print_zsh_head(void);

/* "bash", "zsh": prints the sub-command's. An exit status. */
int print_document(const usage *u, const char *form);
/* adjoint --document FORM, hidden: "bash" and "zsh": a whole script; "commands": their names. An
 * exit status. */
int command_document(int argc, char **argv);

#endif
