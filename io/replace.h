/* replace.h - writes a new file beside the one that it replaces, then renames it. */
#ifndef IO_REPLACE_H
#define IO_REPLACE_H

#include "base/new_file.h"
#include "io.h"

/* Prefix of messages and the file they are about. */
typedef struct {
    const char *prefix; /* prefix of messages: "safetensors: " or "" */
    const char *path;
    adj_error *error;
} place;

adj_status io_refuse(const place *p, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
adj_status io_out_of_memory(const place *p);
/* Sets the message for errno. */
adj_status io_system_error(const place *p);

/* Call new_file_begin and new_file_end and set the message. The status is that of the first
 * failure. */
adj_status io_replace_begin(const place *p, new_file *f);
adj_status io_replace_end(const place *p, new_file *f, adj_status status);

#endif
