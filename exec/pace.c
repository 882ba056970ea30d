/* pace.c - see pace.h. */
#include "pace.h"

enum {
    FIRST_TRIAL = 16, /* after so many runs; by then there is a median to beat */
    TO_WIN = 5,
    TO_LOSE = 3, /* fewer than to win: what is about as fast is not worth a change */
    MIN_WAIT = 32,
    MAX_WAIT = 2048,
    UNPROVOKED = 4 /* times as long as the wait is until a trial without slow runs */
};

static const double slow = 1.5;        /* times what is usual */
static const double slow_at_first = 8; /* the same of a trial's first run ... */
static const double start = 1e-3;      /* ... and seconds that making threads may take */
static const double lost_share = 0.02; /* of all time, for trials that are lost */

/* ---- times ---- */

/* At most `room` of them. The hole that the oldest leaves moves to where the new one belongs. */
static void add_time(pace_times *t, int room, double seconds)
{
    int hole = t->n;
    if (t->n < room)
        t->n++;
    else
        for (hole = 0; t->sorted[hole] != t->ring[t->oldest];)
            hole++;
    for (; hole > 0 && t->sorted[hole - 1] > seconds; hole--)
        t->sorted[hole] = t->sorted[hole - 1];
    for (; hole + 1 < t->n && t->sorted[hole + 1] < seconds; hole++)
        t->sorted[hole] = t->sorted[hole + 1];
    t->sorted[hole] = t->ring[t->oldest] = seconds;
    t->oldest = (t->oldest + 1) % room;
}

static double median(const pace_times *t) { return t->sorted[t->n / 2]; }

/* ---- trials ---- */

static void end_trial(pace *p, int is_won)
{
    const double wait = is_won || p->lost <= 0 ? 0 : p->lost / p->to_beat / lost_share;
    p->wait = wait < MIN_WAIT ? MIN_WAIT : wait > MAX_WAIT ? MAX_WAIT : (int)wait;
    p->since = 0;
    p->is_trial = 0;
    p->is_warm = is_won;
    if (!is_won)
        return;
    p->fewer = !p->fewer;
    p->recent = (pace_times){0};
    if (!p->fewer) /* what was usual may have been beside the same neighbours */
        p->baseline = (pace_times){0};
}

/* The first run counts only when it is so slow that nothing excuses it. */
static void count_trial(pace *p, double seconds)
{
    p->lost += seconds - p->to_beat;
    const int is_slow =
        seconds > (p->is_warm ? slow * p->to_beat : slow_at_first * p->to_beat + start);
    p->faster += p->is_warm && seconds < p->to_beat;
    p->slower += p->is_warm && seconds >= p->to_beat;
    p->is_warm = 1;
    if (is_slow || p->slower == TO_LOSE)
        end_trial(p, 0);
    else if (p->faster == TO_WIN)
        end_trial(p, 1);
}

static void begin_trial(pace *p)
{
    p->is_trial = 1;
    p->is_warm = 0;
    p->faster = p->slower = 0;
    p->to_beat = median(&p->recent);
    p->lost = 0;
}

static int is_trial_due(const pace *p)
{
    const int patience = p->wait == 0 ? FIRST_TRIAL : p->fewer ? p->wait : UNPROVOKED * p->wait;
    if (p->recent.n < PACE_RECENT || p->since < p->wait)
        return 0;
    return p->since >= patience || (!p->fewer && median(&p->recent) > slow * median(&p->baseline));
}

static void count(pace *p, double seconds)
{
    if (!p->is_warm) {
        p->is_warm = 1;
        return;
    }
    add_time(&p->recent, PACE_RECENT, seconds);
    if (!p->fewer && (p->baseline.n < PACE_RECENT || seconds <= slow * median(&p->baseline)))
        add_time(&p->baseline, PACE_BASELINE, seconds);
    p->since++;
    if (is_trial_due(p))
        begin_trial(p);
}

/* The change back, if the trial is lost, is taken to be as long. */
void pace_change(pace *p, double seconds)
{
    if (p->is_trial)
        p->lost += 2 * seconds;
}

int pace_next(pace *p, double seconds)
{
    if (p->is_trial)
        count_trial(p, seconds);
    else
        count(p, seconds);
    return p->fewer != p->is_trial;
}
