/* file_kind.h - recognizes by its first bytes a file that is none of the readers' formats. */
#ifndef IO_FILE_KIND_H
#define IO_FILE_KIND_H

#include "adjoint_io.h"

/* Writes a sentence that names the file, its kind, the expected kinds ("safetensors") and how its
 * tensors are exported. Returns 0, without a sentence, if the file cannot be read or is a damaged
 * one of those kinds. */
int file_kind_sentence(const char *path, const char *expected, char message[ADJ_MESSAGE]);
/* Writes the sentence for a file of n bytes in memory. */
int file_kind_sentence_of(const char *name, const void *bytes, size_t n, const char *expected,
                          char message[ADJ_MESSAGE]);

#endif
