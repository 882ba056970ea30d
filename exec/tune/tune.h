/* tune.h - declarations shared by the files of tuning: the table of winners, the header of a tune
 * file, and the buffers in which candidates run. All of it is freed when the plan is complete. */
#ifndef ADJ_TUNE_H
#define ADJ_TUNE_H

#include "exec/backends.h"
#include "exec/exec.h"
#include "exec/invariant.h"
#include "exec/memory.h"
#include "exec/run.h"
#include "exec/select_kernel.h"

#define TUNE_BEGIN "adjoint tune" /* of every tune file, whatever its version */
enum { TUNE_KEY = 320, TUNE_IMPL = 256, TUNE_HEADER = 2048 };
enum { MAX_CANDIDATES = 64 };  /* of one kernel that are timed */
enum { TUNE_ENTRIES = 10000 }; /* at most, in a file */

typedef enum { TIMED, FROM_FILE, FROM_SELECTION } tune_origin;

typedef struct { /* the winner for a key; strings live in the tuner's region */
    const char *key;
    const char *backend, *kernel; /* NULL: no time for a race, the untuned kernel is used */
    int candidate;
    const char
        *impl; /* what the candidate must prepare to: its name and, on plain operands, layouts */
    double seconds; /* of a run, without reorders; 0: not known */
    double too_few; /* without kernel: seconds in which a race could not be held; 0: not known */
    tune_origin origin;
    int is_met; /* among the plan's groups */
    int used;   /* in this plan */
} tune_entry;

typedef struct { /* memory that grows on demand */
    char *data;
    size_t bytes;
} area;

/* Beside those of a candidate's values: its scratch, and what is read to empty the caches. */
enum { SCRATCH_AREA = N_AREA, COLD_AREA, N_TUNE_AREA };

typedef struct reorder_cost {
    adj_type type;
    int backend;
    const adj_layout *from, *to; /* NULL: plain */
    int is_free;                 /* it is not done in every run */
    double seconds;
    struct reorder_cost *next;
} reorder_cost;

struct tuner {
    region *region;    /* the planning's */
    char *path;        /* of the file; NULL: none */
    int makes_folders; /* in which it is, if they are not there */
    int may_time, may_write, changed;
    char header[TUNE_HEADER];
    int n_entry, max_entry;
    tune_entry *entry;
    reorder_cost *cost;    /* of those that were timed */
    double seconds, spent; /* allowed, used */
    double runs;           /* of the plan, that time may be taken of; HUGE_VAL: as many as needed */
    double work_left;      /* of the groups that are to be met, see budget.c */
    int groups_left;
    int left; /* steps that there was no time for */
    area area[N_TUNE_AREA];
    size_t cold; /* bytes that a step of the whole graph touches between two runs of one node, at
                    most the last cache's */
    uint64_t seen;
};

/* ---- key.c ---- */

/* Writes what is to be computed, and among whom: equal keys have equal winners. Layouts are no part
 * of it: which there are follows from the winners. It is readable, but the hash at its end covers
 * what does not fit. ADJ_ENOMEM: out of memory. */
adj_status tune_key(const adj_exec *e, const adj_group *g, char key[TUNE_KEY]);
/* Writes the first lines of a file that holds for this machine and these backends. */
void tune_header(const adj_exec *e, char header[TUNE_HEADER]);
/* Writes what s is prepared as: implementation and layouts, in printable characters without tabs.
 * Returns how many of them are the implementation's. */
size_t tune_impl(const adj_exec *e, const step *s, char impl[TUNE_IMPL]);

/* ---- file.c: fills and writes the table; what is wrong with a text is in e->warning ---- */

/* Reads a selection; or the file, whose entries come after those that are there. */
adj_status tune_read_selection(adj_exec *e, const char *text);
adj_status tune_read(adj_exec *e);
void tune_write(adj_exec *e);
/* Returns the entries that were used, as tune_read_selection reads them; "": there are none. NULL:
 * out of memory. */
const char *tune_selection(adj_exec *e);
tune_entry *tune_find(const tuner *t, const char *key);
/* Adds an entry or replaces the key's; strings are copied. */
adj_status tune_add(tuner *t, const tune_entry *entry);

/* Returns room for an entry behind the others, or NULL if there is no memory. */
tune_entry *tune_new_entry(tuner *t);

/* ---- lines.c: the lines of a tune file ---- */

/* True if everything but tabs and ends of lines is printable. */
int tune_is_text(const char *text, size_t size);
/* Reads entries up to the last line and appends them to the table. Returns what is wrong with a
 * line, or NULL; *n_line counts the lines. */
const char *tune_read_lines(tuner *t, char *line, tune_origin origin, int *n_line,
                            adj_status *status);
void tune_write_entry(FILE *f, const tune_entry *x);

/* ---- budget.c: how long a race may take ---- */

/* Counts what is to be decided. runs: of the plan; 0: not known. Requires: groups. */
void budget_open(adj_exec *e, int64_t runs);
/* True if there is time for any race at all. */
int budget_is_open(const tuner *t);
/* Returns the time limit of a group's race, given the seconds of a run without tuning (HUGE_VAL:
 * not known). */
double budget_for(const adj_exec *e, const adj_group *g, double usual);
/* Takes a group that has been decided out of the count. */
void budget_pass(adj_exec *e, const adj_group *g);

/* ---- race.c: the candidates for one group beside each other ---- */

/* Times them; the fastest becomes winner's backend, kernel, candidate, impl and seconds. winner
 * without a kernel: there is none. A single candidate is not timed. *late: set if time ran out. */
adj_status tune_race(adj_exec *e, const step *s, tune_entry *winner, int *late);

/* ---- time.c: running candidates on memory of their own ---- */

/* Makes memory for the values of a prepared step. */
adj_status make_areas(adj_exec *e, step *s);
/* Points the step's call into that memory: after all candidates' make_areas. */
void bind_step(const adj_exec *e, step *s);
/* Returns the seconds of one run on cold memory; HUGE_VAL: it failed. */
double tune_run(adj_exec *e, step *s);
/* Adds the seconds of the reorder, which is timed once; HUGE_VAL: there is none. */
adj_status tune_reorder(adj_exec *e, const reorder_cost *wanted, double *seconds);

#endif
