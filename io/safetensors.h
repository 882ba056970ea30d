/* safetensors.h - the format's facts, shared by reader and writer.
 *
 * 8 bytes: the header's length, little-endian; the header: a JSON object {"name": {"dtype": "F32",
 * "shape": [..], "data_offsets": [begin, end]}, .., "__metadata__": {"key": "value", ..}}; the
 * data, little-endian, row-major, to the end of the file. The tensors cover the data without gap or
 * overlap. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include "io.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied as they lie");

#define METADATA_KEY "__metadata__"
enum { LENGTH_BYTES = 8 };
static const int64_t largest_header = 100000000; /* as in the reference implementation */

/* By adj_dtype. */
static const char *const dtype_words[] = {"F32", "F64", "F16", "BF16", "I32"};
enum { DTYPE_WORDS = sizeof dtype_words / sizeof dtype_words[0] };

#endif
