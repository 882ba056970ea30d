/* tune.h - declarations shared by the files of tuning: the table of winners, the header of a tune
 * file, and the buffers in which candidates run. All of it is freed when the plan is complete. */
#ifndef ADJ_TUNE_H
#define ADJ_TUNE_H

#include "exec/exec.h"
#include "exec/invariant.h"
#include "exec/memory.h"
#include "exec/run.h"
#include "exec/select_kernel.h"

#define TUNE_BEGIN "adjoint tune" /* first words of a tune file of any version */
enum { TUNE_KEY = 320, TUNE_IMPL = 256, TUNE_HEADER = 2048 };
enum { MAX_CANDIDATES = 64 };  /* maximum number of timed candidates of one group */
enum { TUNE_ENTRIES = 10000 }; /* maximum number in a file */

typedef enum { TIMED, FROM_FILE, FROM_SELECTION } tune_origin;

typedef struct { /* the winner for a key; strings live in the tuner's region */
    const char *key;
    const char *backend, *kernel; /* NULL: the time was too short; the untuned kernel is used */
    int candidate;
    const char *impl; /* the implementation and, for plain operands, the layouts that the candidate
                         must have */
    double seconds;   /* seconds of a run without reorders; 0: unknown */
    double too_few;   /* without a kernel: seconds that were too short for timing; 0: unknown */
    tune_origin origin;
    int is_met; /* 1: the plan has such a group */
    int used;   /* 1: used in this plan */
} tune_entry;

/* Further areas: the scratch of a candidate, and memory that is read to empty the caches. */
enum { SCRATCH_AREA = N_AREA, COLD_AREA, N_TUNE_AREA };

typedef struct reorder_cost {
    adj_type type;
    int backend;
    const adj_layout *from, *to; /* NULL: plain */
    int is_free;                 /* 1: it does not run in every run of the plan */
    double seconds;
    struct reorder_cost *next;
} reorder_cost;

struct tuner {
    region *region;    /* region of the planning */
    char *path;        /* path of the tune file; NULL: none */
    int makes_folders; /* 1: missing folders of the path are created */
    int may_time, may_write, changed;
    char header[TUNE_HEADER];
    int n_entry, max_entry;
    tune_entry *entry;
    reorder_cost *cost;    /* list of the reorders that were timed */
    double seconds, spent; /* time limit of the plan; time used */
    double runs;      /* number of runs whose time limits the measurement; HUGE_VAL: no limit */
    double work_left; /* work of the groups still to be decided, see tune.c */
    int groups_left;
    int left;                    /* steps that were not timed because time ran out */
    exec_area area[N_TUNE_AREA]; /* memory that grows on demand */
    size_t cold; /* bytes that a run of the graph touches between two runs of a node, at most the
                    size of the last cache */
    uint64_t seen;
};

/* ---- key.c ---- */

/* Writes the key of a group: the nodes, and the backends that compete. Groups with equal keys have
 * equal winners. Layouts are not part of it, as they follow from earlier winners. The key is
 * readable text; a hash at its end covers what was truncated. */
adj_status tune_key(const adj_exec *e, const adj_group *g, char key[TUNE_KEY]);
/* Writes the header of a tune file for this machine and these backends. */
void tune_header(const adj_exec *e, char header[TUNE_HEADER]);
/* Writes the implementation and layouts of a prepared step in printable characters without tabs.
 * Returns the length of the implementation's part. */
size_t tune_impl(const adj_exec *e, const step *s, char impl[TUNE_IMPL]);

/* ---- file.c: reads and writes the table; problems of a text are in e->warning ---- */

/* Reads a selection, or the tune file, whose entries are appended to those present. */
adj_status tune_read_selection(adj_exec *e, const char *text);
adj_status tune_read(adj_exec *e);
void tune_write(adj_exec *e);
/* Returns the used entries as text for tune_read_selection; "" if there are none, NULL when out of
 * memory. */
const char *tune_selection(adj_exec *e);
tune_entry *tune_find(const tuner *t, const char *key);
/* Adds an entry, or replaces the one with the same key; strings are copied. */
adj_status tune_add(tuner *t, const tune_entry *entry);

/* ---- tune.c: time limits ---- */

/* True if time is left for timing a group. */
int budget_is_open(const tuner *t);
/* Returns the time limit for timing a group. untuned: seconds of its untuned kernel; HUGE_VAL:
 * unknown. */
double budget_for(const adj_exec *e, const adj_group *g, double untuned);

/* ---- race.c: times the candidates for one group ---- */

/* Times the candidates and stores the fastest in winner; its kernel is NULL if there is no
 * candidate. A single candidate is not timed. *late: set if time ran out. */
adj_status tune_race(adj_exec *e, const step *s, tune_entry *winner, int *late);

/* ---- time.c: runs candidates on separate memory ---- */

/* Allocates memory for the values of a prepared step. */
adj_status make_areas(adj_exec *e, step *s);
/* Points the step's call into that memory. Requires: make_areas of all candidates. */
void bind_step(const adj_exec *e, step *s);
/* Returns the seconds of one run with cold caches; HUGE_VAL if it failed. */
double tune_run(adj_exec *e, step *s);
/* Adds the seconds of the reorder, which is timed once; HUGE_VAL if it is impossible. */
adj_status tune_reorder(adj_exec *e, const reorder_cost *wanted, double *seconds);

#endif
