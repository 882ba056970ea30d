/* pace.h - how long an executor's runs take, and what follows: whether the next one takes the plan
 * for all threads or the one for fewer.
 *
 * Beside other processes a run waits for its slowest thread, and fewer threads may be faster. That
 * cannot be seen from outside, it is tried: a trial runs the other plan until it was faster five
 * times, or slower three times or once by far; the plan that was faster stays. Of a trial's first
 * run less is expected: it has cold caches, and computes what the other runs find computed. A trial
 * begins when runs with all threads take much longer than usual, and from time to time while fewer
 * run. As what is usual may have been slow from the start, the other plan is tried after the first
 * runs as well, and seldom from then on. Trials that were lost are paid for: the next one waits
 * until they are a small part of the time, and so is changing plans, which takes as long as copying
 * all that has changed.
 *
 * Nothing here knows a clock or a thread: it is fed with seconds. Short runs need no rule of their
 * own. They are slower now and then rather than always, so their medians hardly move, and a trial
 * costs a few of them. */
#ifndef ADJ_PACE_H
#define ADJ_PACE_H

enum { PACE_BASELINE = 31, PACE_RECENT = 8 };

/* The latest of some times. All zero: none yet. */
typedef struct {
    int n, oldest;
    double ring[PACE_BASELINE], sorted[PACE_BASELINE];
} pace_times;

/* All zero at first. */
typedef struct {
    pace_times baseline; /* of undisturbed runs with all threads */
    pace_times recent;   /* of any runs of the plan that stays */
    int fewer;           /* the plan that stays is the one for fewer threads */
    int is_warm;         /* the last run was one of the same plan: the next counts */
    int since;           /* runs that counted since the last trial */
    int wait;            /* how many that must be; 0: there was no trial yet */

    int is_trial;       /* the other plan runs */
    int faster, slower; /* runs of the trial */
    double to_beat;     /* seconds: the median of recent */
    double lost;        /* seconds, against runs that take to_beat and no changes of plans */
} pace;

/* The plans were changed, which took so long, before the run whose seconds come next. */
void pace_change(pace *p, double seconds);
/* The run took so long, changing plans left out. Does the next one take the plan for fewer threads?
 */
int pace_next(pace *p, double seconds);

#endif
