/* tune_file.c - the table of winners, and the file it is kept in.
 *
 * The file is text: the header that this machine and these backends give (tune_key.c), one winner a
 * line, and a last line that counts them:
 *   backend TAB kernel TAB candidate TAB microseconds TAB implementation TAB key
 *   end 17
 * It is taken whole or not at all, and believed in nothing but which candidate to prepare: the one
 * that prepares to the implementation and layouts named, wherever it is in the backend's list (the
 * number is only where to look first). So the worst that a forged file does is to choose slow
 * kernels. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tune.h"

enum { MOST_BYTES = 8 << 20, MOST_ENTRIES = 10000, MOST_CANDIDATES = 1000, FIELDS = 6 };

__attribute__((format(printf, 2, 3))) static void note(adj_exec *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_message(e->note, format, args); /* the first one stays */
    va_end(args);
}

/* ---- the table ---- */

tune_entry *tune_find(const tuner *t, const char *key)
{
    for (int i = 0; i < t->n_entry; i++)
        if (strcmp(t->entry[i].key, key) == 0)
            return &t->entry[i];
    return NULL;
}

static tune_entry *new_entry(tuner *t)
{
    if (t->n_entry == t->max_entry) {
        int more = t->max_entry > 0 ? 2 * t->max_entry : 64;
        tune_entry *bigger = pool_alloc(&t->pool, (size_t)more, sizeof *bigger);
        if (bigger == NULL)
            return NULL;
        if (t->n_entry > 0)
            memcpy(bigger, t->entry, (size_t)t->n_entry * sizeof *bigger);
        t->entry = bigger;
        t->max_entry = more;
    }
    return &t->entry[t->n_entry++];
}

adj_status tune_add(tuner *t, const tune_entry *entry)
{
    tune_entry copy = *entry, *old = tune_find(t, entry->key);
    copy.key = old != NULL ? old->key : pool_string(&t->pool, entry->key);
    copy.impl = pool_string(&t->pool, entry->impl);
    if (copy.key == NULL || copy.impl == NULL)
        return ADJ_ENOMEM;
    if (old == NULL && (old = new_entry(t)) == NULL)
        return ADJ_ENOMEM;
    *old = copy;
    return ADJ_OK;
}

/* ---- reading ---- */

/* Opening must not hang on a pipe, nor reading go on for ever on a device. The whole file in *text,
 * ended by 0; NULL: there is none. Returns what is wrong with it, NULL: nothing. */
static const char *load(tuner *t, char **text, size_t *size, adj_status *status)
{
    struct stat s;
    *text = NULL;
    int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT ? NULL : strerror(errno);
    const char *wrong = NULL;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode))
        wrong = "is not a regular file";
    else if (s.st_size > MOST_BYTES)
        wrong = "is too large";
    else if ((*text = pool_alloc(&t->pool, (size_t)s.st_size + 1, 1)) == NULL)
        *status = ADJ_ENOMEM;
    for (*size = 0; *text != NULL && *size < (size_t)s.st_size;) {
        ssize_t got = read(fd, *text + *size, (size_t)s.st_size - *size);
        if (got == 0 || (got < 0 && errno != EINTR))
            break; /* it became shorter: its last line is missing */
        *size += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return wrong;
}

/* A whole number without sign from 0 to most; -1: it is none. */
static long number(const char *text, long most)
{
    char *end;
    errno = 0;
    long v = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    return v >= 0 && *end == '\0' && errno == 0 && v <= most ? v : -1;
}

static const char *read_entry(tuner *t, char *line, adj_status *status)
{
    char *field[FIELDS];
    for (int i = 0; i < FIELDS; i++) {
        field[i] = line;
        line += strcspn(line, "\t");
        if (line == field[i] || (*line == '\t') != (i < FIELDS - 1))
            return "has not six fields";
        if (*line == '\t')
            *line++ = '\0';
    }
    if (strlen(field[4]) >= TUNE_IMPL || strlen(field[5]) >= TUNE_KEY)
        return "is too long";
    long candidate = number(field[2], MOST_CANDIDATES);
    char *end;
    double us = strtod(field[3], &end);
    if (candidate < 0 || *end != '\0' || !(us >= 0 && us < 1e12))
        return "has a number out of range";
    tune_entry *entry = new_entry(t);
    if (entry == NULL)
        *status = ADJ_ENOMEM;
    else /* the strings are the text's, which the pool keeps */
        *entry = (tune_entry){.key = field[5],
                              .backend = field[0],
                              .kernel = field[1],
                              .candidate = (int)candidate,
                              .impl = field[4],
                              .seconds = 1e-6 * us,
                              .from_file = 1};
    return NULL;
}

/* Everything but tabs and ends of lines is printable. */
static int is_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t' && c != '\n') || c >= 0x7f)
            return 0;
    }
    return 1;
}

/* The lines behind the header. */
static const char *read_lines(tuner *t, char *line, int *n_line, adj_status *status)
{
    const char *wrong = NULL;
    int n = 0;
    while (wrong == NULL && *status == ADJ_OK) {
        char *next = strchr(line, '\n');
        ++*n_line;
        if (next == NULL)
            return "the end is missing";
        *next++ = '\0';
        if (strncmp(line, "end ", 4) == 0)
            return number(line + 4, MOST_ENTRIES) == n && *next == '\0' ? NULL
                                                                        : "the count is wrong";
        if (n++ == MOST_ENTRIES)
            return "there are too many lines";
        wrong = read_entry(t, line, status);
        line = next;
    }
    return wrong;
}

adj_status tune_read(adj_exec *e)
{
    tuner *t = e->tuner;
    adj_status status = ADJ_OK;
    char *text;
    size_t size, header = strlen(t->header);
    const char *wrong = load(t, &text, &size, &status);
    int line = 0;

    t->may_write = wrong == NULL || text != NULL;
    if (status != ADJ_OK || (wrong == NULL && text == NULL))
        return status;
    if (wrong == NULL && !is_text(text, size))
        wrong = "is not text";
    if (wrong == NULL && (size < header || memcmp(text, t->header, header) != 0))
        wrong = "was made for another CPU or another version of adjoint or its backends";
    if (wrong == NULL) {
        for (size_t i = 0; i < header; i++)
            line += text[i] == '\n';
        wrong = read_lines(t, text + header, &line, &status);
    }
    if (wrong != NULL && line > 0)
        note(e, "tune file %.200s is ignored: line %d: %s", t->path, line, wrong);
    else if (wrong != NULL)
        note(e, "tune file %.200s is ignored: %s", t->path, wrong);
    if (wrong != NULL)
        t->n_entry = 0;
    return status;
}

/* ---- writing ---- */

static int writes_entry(const tune_entry *entry) { return entry->kernel != NULL; }

static int write_text(const tuner *t, FILE *f)
{
    int n = 0, skip = -MOST_ENTRIES; /* the newest are last, and kept */
    for (int i = 0; i < t->n_entry; i++)
        skip += writes_entry(&t->entry[i]);
    fputs(t->header, f);
    for (int i = 0; i < t->n_entry; i++) {
        const tune_entry *x = &t->entry[i];
        if (!writes_entry(x) || skip-- > 0)
            continue;
        fprintf(f, "%s\t%s\t%d\t%.1f\t%s\t%s\n", x->backend, x->kernel, x->candidate,
                1e6 * x->seconds, x->impl, x->key);
        n++;
    }
    fprintf(f, "end %d\n", n);
    return fflush(f) == 0 && !ferror(f) && fsync(fileno(f)) == 0;
}

/* The empty file of that name under a lock; -1: another process is at it, or it cannot be made. The
 * name is always the same, so that a killed process leaves at most one behind. */
static int open_partial(const char *name)
{
    struct stat held, named;
    int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    if (fstat(fd, &held) == 0 && S_ISREG(held.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        lstat(name, &named) == 0 && named.st_ino == held.st_ino && named.st_dev == held.st_dev &&
        ftruncate(fd, 0) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The old file or the new one is there whenever the process dies; the new one has the old one's
 * mode. */
static int replace(const tuner *t, const char *target, const char *name)
{
    struct stat old;
    int fd = open_partial(name);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    int done = (stat(target, &old) != 0 || fchmod(fd, old.st_mode & 07777) == 0) &&
               write_text(t, f) && rename(name, target) == 0;
    if (!done)
        unlink(name);
    fclose(f); /* and with it the lock, not before the name is free for others */
    return done;
}

/* What the path's symbolic links lead to, if that exists: links stay. */
static const char *target_of(tuner *t)
{
    char resolved[PATH_MAX];
    return realpath(t->path, resolved) != NULL ? pool_string(&t->pool, resolved) : t->path;
}

void tune_write(adj_exec *e)
{
    tuner *t = e->tuner;
    static const char partial[] = ".partial";
    if (t->path == NULL || !t->may_write || !t->changed)
        return;
    const char *target = target_of(t);
    size_t size = target != NULL ? strlen(target) + sizeof partial : 0;
    char *name = target != NULL ? pool_alloc(&t->pool, size, 1) : NULL;
    if (name != NULL)
        snprintf(name, size, "%s%s", target, partial);
    errno = 0;
    if (name == NULL || !replace(t, target, name))
        note(e, "tune file %.200s cannot be written: %s", t->path,
             name == NULL ? "out of memory"
             : errno != 0 ? strerror(errno)
                          : "it is in use");
}
