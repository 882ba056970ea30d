/* class_weights.c - see class_weights.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "class_weights.h"
#include "data.h"

static const double max_weight = 1e6;

static int balance(const adj_dataset *d, float *weights)
{
    int64_t *count = count_classes(d);
    if (count == NULL)
        return complain("train", EXIT_FAILED, "out of memory");
    for (int k = 0; k < d->classes; k++)
        if (count[k] > 0)
            weights[k] = (float)((double)d->n / ((double)d->classes * (double)count[k]));
    free(count);
    return CONTINUE;
}

/* Reads a list of numbers, the first n into weights. Returns their count; -1 if a number is invalid
 * or negative, or all are 0. */
static int64_t read_list(const char *text, int64_t n, float *weights)
{
    int64_t count = 0;
    double sum = 0;
    for (;; count++, text++) {
        char *end;
        double value = strtod(text, &end);
        if (end == text || isspace((unsigned char)*text) || !(value >= 0 && value <= max_weight) ||
            (*end != ',' && *end != '\0'))
            return -1;
        if (count < n)
            weights[count] = (float)value;
        sum += value;
        text = end;
        if (*text == '\0')
            break;
    }
    return sum > 0 ? count + 1 : -1;
}

static int complain_of(const char *text, const adj_dataset *d, int64_t count)
{
    if (count >= 0)
        return complain("train", EXIT_USAGE,
                        "--class-weights: expected a number for each of %d classes (got %lld)",
                        d->classes, (long long)count);
    return complain("train", EXIT_USAGE,
                    "--class-weights: expected none, balanced or numbers from 0 to %g with "
                    "commas, not all 0 (got \"%s\")",
                    max_weight, text);
}

int read_class_weights(const char *text, const adj_dataset *d, float **weights)
{
    *weights = NULL;
    if (strcmp(text, "none") == 0)
        return CONTINUE;
    *weights = calloc((size_t)d->classes, sizeof **weights);
    if (*weights == NULL)
        return complain("train", EXIT_FAILED, "out of memory");
    if (strcmp(text, "balanced") == 0)
        return balance(d, *weights);
    const int64_t count = read_list(text, d->classes, *weights);
    return count == d->classes ? CONTINUE : complain_of(text, d, count);
}
