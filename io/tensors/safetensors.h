/* safetensors.h - the format's facts, shared by reader and writer.
 *
 * 8 bytes: the header's length, little-endian; the header: a JSON object {"name": {"dtype": "F32",
 * "shape": [..], "data_offsets": [begin, end]}, .., "__metadata__": {"key": "value", ..}}; the
 * data, little-endian, row-major, to the end of the file. The tensors cover the data without gap or
 * overlap.
 *
 * Ours have checksums among the metadata, CRC-32 as eight hexadecimal digits: "adjoint.crc32:NAME"
 * of a tensor's data, and "adjoint.crc32" of the header (safetensors_write.c). Other readers need
 * not know them; a file that has none of them is read without. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include <jansson.h>

#include "io/io.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied as they lie");

#define METADATA_KEY "__metadata__"
enum { LENGTH_BYTES = 8 };
static const int64_t max_header_bytes = 100000000; /* as in the reference implementation */

#define SUM_KEY "adjoint.crc32"
enum { SUM_TEXT = 9 };
/* True if the key is that of a checksum, of the header or of a tensor. */
int is_sum_key(const char *key);
/* Returns the key of a tensor's checksum, to be freed, or NULL when out of memory. */
char *sum_key(const char *name);
void sum_data(const void *data, int64_t bytes, char sum[SUM_TEXT]);
/* Computes the header's checksum, independent of order: over the metadata except SUM_KEY and each
 * tensor's name, dtype and shape. ADJ_OK or ADJ_ENOMEM. */
adj_status sum_header(const json_t *header, char sum[SUM_TEXT]);

#endif
