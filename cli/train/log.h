/* log.h - files of JSON objects, one a line: --log, and metrics.jsonl in the folder of --out. */
#ifndef CLI_TRAIN_LOG_H
#define CLI_TRAIN_LOG_H

#include <jansson.h>
#include <stdio.h>

/* Opens and locks the file. append: keeps its lines and starts a new one behind them. Returns NULL
 * with errno on failure (lock_error). */
FILE *log_open(const char *path, int append);
/* Writes the object as a line in one write, so that a killed process leaves whole lines, and frees
 * it. f == NULL: only frees it. 0 on success. */
int log_line(FILE *f, json_t *object);

#endif
