/* unzip.h - the bytes of a file, plain or gzip: its first two bytes tell. */
#ifndef UNZIP_H
#define UNZIP_H

#include <stdint.h>

typedef struct unzip unzip;

/* Takes fd over, and closes it on failure too; NULL: out of memory. */
unzip *unzip_open(int fd);
/* Reads up to n bytes (n < 2^32); fewer at the end of the data, or when something is wrong. */
int64_t unzip_read(unzip *u, void *to, int64_t n);
/* What is wrong; NULL: nothing so far. */
const char *unzip_wrong(const unzip *u);
void unzip_close(unzip *u);

#endif
