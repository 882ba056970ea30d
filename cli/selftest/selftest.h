/* selftest.h - what the parent's files of adjoint selftest share. */
#ifndef CLI_SELFTEST_H
#define CLI_SELFTEST_H

#include "sweep.h"

enum { ROW = 400 };

typedef struct {
    const char *out;
    int64_t cases, resume, full, bare, rules;
    double seconds, rule_seconds; /* of a batch; of all rules */
    sweep sweep;

    char (*row)[ROW]; /* of the quarantine file */
    int n_row, room;
    int64_t next; /* the case that is tried next */
    int tries;    /* of its implementations that were wrong */
    /* After a crash in a batch: up to this case each has a process of its own, to find whose fault
     * it is. 0: none is looked for. */
    int64_t alone_until;
    int suspicions, rows_before; /* crashes that no case alone repeated; rows before the search */

    int64_t started; /* the first case of this sitting */
    double began, shown;
    char machine[64];
} selftest;

/* These print what is wrong. CONTINUE or an exit status. */

int selftest_add_row(selftest *s, const char *text);
/* Replaces the file whole: at every moment it is the old or the new one. */
int selftest_write(const selftest *s);
/* Takes over rows, sweep and position of the file. */
int selftest_read(selftest *s);

/* Measures the rules of plans in about so many seconds, prints a table, and writes those that hold
 * here to a file (NULL: to none). An exit status. */
int selftest_rules(const char *out, double seconds);

#endif
