/* samples.h - repeated measurements and their statistics. */
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

/* Adds a time; returns 0 if there is no room. */
int samples_add(samples *s, double seconds);
/* Sorts the samples and returns their statistics; all zero without samples. */
spread samples_spread(samples *s);
void samples_free(samples *s);

#endif
