/* score.h - statistics of a classifier's predictions: scores of classes, confused classes,
 * confident mistakes.
 *
 * Of an answer, truth is the label and guess the class with the largest logit. */
#ifndef CLI_TRAIN_SCORE_H
#define CLI_TRAIN_SCORE_H

#include <stdint.h>

typedef struct {
    int64_t n;
    int classes; /* labels and guesses: 0 .. classes-1 */
    const int32_t *truth, *guess;
    const float *probability; /* softmax probability of the guess */
} answers;

typedef struct {
    int64_t images, guessed, right; /* of the class; taken for it; both */
    double precision, recall;       /* right / guessed, right / images; NaN: 0 / 0 */
    double f1;                      /* 2 right / (images + guessed); NaN: 0 / 0 */
} class_score;

/* score: a row for each class. */
void score_classes(const answers *a, class_score score[]);

/* count[truth * classes + guess], the caller's, classes^2 numbers. */
void count_confusion(const answers *a, int64_t count[]);

typedef struct {
    int32_t truth, guess;
    int64_t count;
} confused_pair;
/* Lists the most frequent mistakes, at most max, equally frequent ones ordered by truth and guess.
 * Returns their number; -1 when out of memory. */
int list_confused(const answers *a, int max, confused_pair pair[]);

/* Lists the mistakes with the highest probability, at most max, equal ones in their order. Returns
 * their number. */
int list_confident_mistakes(const answers *a, int max, int64_t index[]);

#endif
