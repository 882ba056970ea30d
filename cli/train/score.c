/* score.c - see report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

static double ratio(int64_t a, int64_t b) { return b > 0 ? (double)a / (double)b : NAN; }

void score_classes(const answers *a, class_score score[])
{
    memset(score, 0, (size_t)a->classes * sizeof *score);
    for (int64_t i = 0; i < a->n; i++) {
        score[a->truth[i]].images++;
        score[a->guess[i]].guessed++;
        score[a->truth[i]].right += a->truth[i] == a->guess[i];
    }
    for (int k = 0; k < a->classes; k++) {
        class_score *s = &score[k];
        s->precision = ratio(s->right, s->guessed);
        s->recall = ratio(s->right, s->images);
        s->f1 = ratio(2 * s->right, s->images + s->guessed);
    }
}

void count_confusion(const answers *a, int64_t count[])
{
    memset(count, 0, (size_t)a->classes * (size_t)a->classes * sizeof *count);
    for (int64_t i = 0; i < a->n; i++)
        count[(int64_t)a->truth[i] * a->classes + a->guess[i]]++;
}

/* ---- confused classes ---- */

static int by_classes(const void *a, const void *b)
{
    const confused_pair *p = a, *q = b;
    return p->truth != q->truth ? (p->truth > q->truth) - (p->truth < q->truth)
                                : (p->guess > q->guess) - (p->guess < q->guess);
}

static int by_count(const void *a, const void *b)
{
    const confused_pair *p = a, *q = b;
    return p->count != q->count ? (p->count < q->count) - (p->count > q->count) : by_classes(a, b);
}

int list_confused(const answers *a, int max, confused_pair pair[])
{
    int64_t n = 0, different = 0;
    confused_pair *all = malloc(((size_t)a->n + 1) * sizeof *all);
    if (all == NULL)
        return -1;
    for (int64_t i = 0; i < a->n; i++)
        if (a->truth[i] != a->guess[i])
            all[n++] = (confused_pair){a->truth[i], a->guess[i], 1};
    qsort(all, (size_t)n, sizeof *all, by_classes);
    for (int64_t i = 0; i < n; i++)
        if (different > 0 && by_classes(&all[different - 1], &all[i]) == 0)
            all[different - 1].count++;
        else
            all[different++] = all[i];
    qsort(all, (size_t)different, sizeof *all, by_count);
    int listed = different < max ? (int)different : max;
    memcpy(pair, all, (size_t)listed * sizeof *pair);
    free(all);
    return listed;
}

/* ---- confident mistakes ---- */

int list_confident_mistakes(const answers *a, int max, int64_t index[])
{
    int n = 0;
    for (int64_t i = 0; i < a->n; i++) {
        if (a->truth[i] == a->guess[i])
            continue;
        int k = n < max ? n++ : max;
        for (; k > 0 && a->probability[index[k - 1]] < a->probability[i]; k--)
            if (k < max)
                index[k] = index[k - 1];
        if (k < max)
            index[k] = i;
    }
    return n;
}
