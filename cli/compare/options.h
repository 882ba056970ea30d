/* options.h - the options of adjoint compare, and the command line that repeats them. */
#ifndef CLI_COMPARE_OPTIONS_H
#define CLI_COMPARE_OPTIONS_H

#include "cli/emitted.h"
#include "cli/op/graph.h"

enum { MAX_LISTED = 32, LINE = 2048 };

typedef struct {
    compared_opts graph;
    const char *configs, *json, *junit;
    double seconds, shrink;
    int64_t seed, runs, threads, exact, all, guard, also_batch;
    int n_config; /* 0: the default ones */
    char *config_text;
    const char *config[MAX_LISTED];
    checked_backends backends;
} compare_opts;

/* CONTINUE, or the exit status. The caller closes o in every case. */
int compare_parse(compare_opts *o, int argc, char **argv);
void compare_close(compare_opts *o);

/* Writes the command line that repeats the comparison with these configurations (NULL: as given),
 * quoted for a shell. */
void compare_line(const compare_opts *o, const compared_opts *described, const char *configs,
                  char line[LINE]);
/* "a,b" as --configs takes it; with ";" where a name has a comma. */
void compare_pair(const char *a, const char *b, char *text, size_t size);

#endif
