/* replace.h - a file that is written beside the one it replaces and then takes its name. */
#ifndef IO_REPLACE_H
#define IO_REPLACE_H

#include "base/new_file.h"
#include "io.h"

/* Whom a sentence is for, and about which file. */
typedef struct {
    const char *prefix; /* what it begins with: "safetensors: " or "" */
    const char *path;
    adj_error *error;
} place;

adj_status io_refuse(const place *p, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
adj_status io_out_of_memory(const place *p);
/* errno's sentence. */
adj_status io_system_error(const place *p);

/* new_file_begin and new_file_end, with the sentence. Status: the first that went wrong. */
adj_status io_replace_begin(const place *p, new_file *f);
adj_status io_replace_end(const place *p, new_file *f, adj_status status);

#endif
