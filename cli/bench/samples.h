/* samples.h - times of the same thing, and what they have in common. */
#ifndef CLI_BENCH_SAMPLES_H
#define CLI_BENCH_SAMPLES_H

typedef struct {
    int n, max;
    double *seconds;
} samples;

typedef struct {
    int n;
    double median, min, q1, q3; /* seconds */
} spread;

/* 0: there is no room for more. */
int samples_add(samples *s, double seconds);
/* Sorts them. All zero if there are none. */
spread samples_spread(samples *s);
void samples_free(samples *s);

#endif
