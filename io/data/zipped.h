/* zipped.h - zip archives (.npz) by libzip. A lack of memory is an error, never a missing member.
 */
#ifndef IO_DATA_ZIPPED_H
#define IO_DATA_ZIPPED_H

#include <zip.h>

#include "io/io.h"

/* Opens an archive; NULL after an error, which names the file. */
zip_t *zipped_open(const char *path, adj_error *error);
/* Returns 1 if the archive has a member of this name, 0 if not, -1 if memory is short. */
int zipped_has(zip_t *archive, const char *name);
/* The read function of an array_stream, from a zip_file_t. It reads in pieces, since libzip
 * miscounts a read of 2^32 bytes. */
int64_t zipped_read(void *file, void *to, int64_t n);

#endif
