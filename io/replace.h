/* replace.h - writes a new file beside the one that it replaces, then renames it; for the tool as
 * well. */
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

/* Replaces a file atomically: write fills FILE.partial, which is flushed to the disk and renamed,
 * so that the file is either the old or the complete new one. write returns 0 on success. If path
 * is a symbolic link, its target is replaced or created. The new file gets mode and owner of the
 * old one as far as permitted; if the group cannot be set, group permissions are reduced to those
 * of others. A FILE.partial left by a killed process is removed by the next call; processes that
 * write one file at the same time wait for each other. */
ADJ_API adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                                    adj_error *error);
/* Checks that a file can be written, in place (in_place 1) or by adj_file_replace, without changing
 * it or its folder; only a FILE.partial left behind is removed. Only regular files can be replaced;
 * in place, anything but a folder that can be opened is accepted. A pipe is not opened, because
 * that would wait for its reader and closing would end the stream. */
ADJ_API adj_status adj_file_check(const char *path, int in_place, adj_error *error);

typedef struct { /* identity of a file: equal (memcmp) for all its names, spellings, symbolic and
                    hard links */
    /* Device and inode of the file, or of its folder if the file does not exist. */
    uint64_t device, number;
    char name[256]; /* "", or the name in that folder if the file does not exist */
} adj_file_id;
/* Sets *id to the identity of the file; with partial 1 that of the FILE.partial of
 * adj_file_replace. */
ADJ_API adj_status adj_file_identify(const char *path, int partial, adj_file_id *id,
                                     adj_error *error);

#endif
