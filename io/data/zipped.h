/* zipped.h - zip archives (.npz), by libzip: a failure of memory is never taken for "not there". */
#ifndef IO_DATA_ZIPPED_H
#define IO_DATA_ZIPPED_H

#include <zip.h>

#include "io/io.h"

/* NULL after an error, which names the file. */
zip_t *zipped_open(const char *path, adj_error *error);
/* Whether the archive has a member of this name; -1: out of memory. */
int zipped_has(zip_t *archive, const char *name);
/* An npy_stream's read of a zip_file_t. libzip counts a read of 2^32 bytes wrong, so it reads
 * pieces. */
int64_t zipped_read(void *file, void *to, int64_t n);

#endif
