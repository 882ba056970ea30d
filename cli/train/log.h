/* log.h - files of JSON objects, one a line: --log, and metrics.jsonl in the folder of --out. */
#ifndef CLI_TRAIN_LOG_H
#define CLI_TRAIN_LOG_H

#include <jansson.h>
#include <stdio.h>

/* Opens and locks the file. append: keeps its lines and starts a new one behind them. Returns NULL
 * with errno on failure, such as EWOULDBLOCK if another process holds the file. */
FILE *log_open(const char *path, int append);
/* Returns the sentence for errno after log_open has failed. */
const char *log_open_error(void);
/* Writes the object as a line at once, in one piece, so that who is killed leaves whole lines; and
 * frees it. f == NULL: only that. 0 on success. */
int log_line(FILE *f, json_t *object);

#endif
