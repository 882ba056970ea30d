/* file.c - the table of winners, the tune file that stores it, and the selection of one plan.
 *
 * The file is text: a header for this machine and these backends (key.c), one winner a line, and a
 * last line with their number:
 *
 *   backend TAB kernel TAB candidate TAB microseconds TAB implementation TAB key
 *   end 17
 *
 * If there was no time to time a group, backend and kernel are "-", the microseconds are those of
 * the untuned kernel, and the implementation field has the number of seconds that was too short. A
 * selection has the same lines without the header. Either is used as a whole or ignored as a whole.
 * It only determines which candidate is prepared: the one with the given implementation and layouts
 * or, for operands in other layouts, with the given implementation. The candidate's number only
 * says where to look first. So a forged file can do no more than select slow kernels. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/new_file.h"
#include "tune.h"

enum { MAX_BYTES = 8 << 20, FIELDS = 6 };

__attribute__((format(printf, 2, 3))) static void warn(adj_exec *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c_vsnprintf(e->warning, sizeof e->warning, format, args);
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

/* Returns room for a new last entry, or NULL when out of memory. */
static tune_entry *new_entry(tuner *t)
{
    tune_entry *list = region_grow(t->region, t->entry, t->n_entry, &t->max_entry, sizeof *list);
    if (list == NULL)
        return NULL;
    t->entry = list;
    return &list[t->n_entry++];
}

adj_status tune_add(tuner *t, const tune_entry *entry)
{
    tune_entry copy = *entry, *old = tune_find(t, entry->key);
    copy.key = old != NULL ? old->key : region_string(t->region, entry->key);
    copy.impl = region_string(t->region, entry->impl);
    if (copy.key == NULL || copy.impl == NULL)
        return ADJ_ENOMEM;
    if (old == NULL && (old = new_entry(t)) == NULL)
        return ADJ_ENOMEM;
    *old = copy;
    return ADJ_OK;
}

/* ---- reading ---- */

/* Returns the whole number without sign from 0 to max, or -1 if the text is none. */
static long number(const char *text, long max)
{
    char *end;
    errno = 0;
    long v = text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10) : -1;
    return v >= 0 && *end == '\0' && errno == 0 && v <= max ? v : -1;
}

static const char *read_entry(tuner *t, char *line, tune_origin origin, adj_status *status)
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
    long candidate = number(field[2], MAX_CANDIDATES);
    char *end;
    double us = c_strtod(field[3], &end);
    if (candidate < 0 || *end != '\0' || !(us >= 0 && us < 1e12))
        return "has a number out of range";
    const int is_late = strcmp(field[0], "-") == 0 && strcmp(field[1], "-") == 0;
    const double too_few = is_late ? c_strtod(field[4], &end) : 0;
    if (is_late && (*end != '\0' || !(too_few > 0 && too_few < 1e7)))
        return "has a number out of range";
    tune_entry *entry = new_entry(t);
    if (entry == NULL)
        *status = ADJ_ENOMEM;
    else /* the strings are the text's, which the region keeps */
        *entry = (tune_entry){.key = field[5],
                              .backend = is_late ? NULL : field[0],
                              .kernel = is_late ? NULL : field[1],
                              .candidate = (int)candidate,
                              .impl = is_late ? "" : field[4],
                              .seconds = 1e-6 * us,
                              .too_few = too_few,
                              .origin = origin};
    return NULL;
}

/* True if everything but tabs and ends of lines is printable. */
static int is_text(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < ' ' && c != '\t' && c != '\n') || c >= 0x7f)
            return 0;
    }
    return 1;
}

/* Reads entries up to the last line and appends them to the table. Returns what is wrong with a
 * line, or NULL; *n_line counts the lines. */
static const char *read_lines(tuner *t, char *line, tune_origin origin, int *n_line,
                              adj_status *status)
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
            return number(line + 4, TUNE_ENTRIES) == n && *next == '\0' ? NULL
                                                                        : "the count is wrong";
        if (n++ == TUNE_ENTRIES)
            return "there are too many lines";
        wrong = read_entry(t, line, origin, status);
        line = next;
    }
    return wrong;
}

adj_status tune_read_selection(adj_exec *e, const char *text)
{
    tuner *t = e->planning->tuner;
    adj_status status = ADJ_OK;
    int line = 0;
    if (text == NULL || text[0] == '\0')
        return ADJ_OK;
    char *copy = region_string(t->region, text);
    if (copy == NULL)
        return ADJ_ENOMEM;
    const size_t size = strlen(copy);
    const char *wrong = size > MAX_BYTES ? "is too long"
                        : !is_text(copy, size)
                            ? "is not text"
                            : read_lines(t, copy, FROM_SELECTION, &line, &status);
    if (wrong != NULL) {
        warn(e, "the selection of kernels is ignored: line %d: %s", line, wrong);
        t->n_entry = 0;
    }
    return status;
}

/* Reads the whole file into *text, ended by 0; NULL: there is none. Returns what is wrong with it,
 * or NULL. Opening must not hang on a pipe, nor reading go on for ever on a device. */
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
    else if (s.st_size > MAX_BYTES)
        wrong = "is too large";
    else if ((*text = region_alloc(t->region, (size_t)s.st_size + 1, 1)) == NULL)
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

/* True if it is a tune file; other files are never replaced. */
static int is_ours(const char *text) { return strncmp(text, TUNE_BEGIN, strlen(TUNE_BEGIN)) == 0; }

/* Appends the entries of the tune file, if it was made for this machine, to the table. Returns what
 * is wrong with the file, or NULL; *line: the line, 0 if no line is wrong. */
static const char *read_file(tuner *t, int *line, adj_status *status)
{
    char *text;
    size_t size = 0;
    const size_t header = strlen(t->header);
    const int before = t->n_entry;
    const char *wrong = load(t, &text, &size, status);
    t->may_write = wrong == NULL && (text == NULL || size == 0 || is_ours(text));
    if (wrong != NULL || text == NULL)
        return wrong;
    if (!t->may_write)
        return "is not a tune file and is left unchanged";
    if (!is_text(text, size))
        return "is not text";
    if (size < header || memcmp(text, t->header, header) != 0)
        return "was made for another CPU or another version of adjoint or its backends";
    for (size_t i = 0; i < header; i++)
        *line += text[i] == '\n';
    if ((wrong = read_lines(t, text + header, FROM_FILE, line, status)) != NULL)
        t->n_entry = before;
    return wrong;
}

adj_status tune_read(adj_exec *e)
{
    tuner *t = e->planning->tuner;
    adj_status status = ADJ_OK;
    int line = 0;
    const char *wrong = read_file(t, &line, &status);
    if (wrong != NULL && line > 0)
        warn(e, "tune file %.200s is ignored: line %d: %s", t->path, line, wrong);
    else if (wrong != NULL)
        warn(e, "tune file %.200s is ignored: %s", t->path, wrong);
    return status;
}

/* ---- writing ---- */

static void write_entry(FILE *f, const tune_entry *x)
{
    if (x->kernel == NULL)
        c_fprintf(f, "-\t-\t0\t%.1f\t%.9g\t%s\n", 1e6 * x->seconds, x->too_few, x->key);
    else
        c_fprintf(f, "%s\t%s\t%d\t%.1f\t%s\t%s\n", x->backend, x->kernel, x->candidate,
                  1e6 * x->seconds, x->impl, x->key);
}

/* Writes the entries that the file holds now, which other processes may have written, and what this
 * one has timed; a selection came from elsewhere, and holds for this plan alone. Requires: the file
 * is locked. */
static int write_text(FILE *f, void *user)
{
    const tuner *t = user;
    tuner all = *t;
    adj_status status = ADJ_OK;
    int line = 0;
    all.n_entry = all.max_entry = 0;
    read_file(&all, &line, &status);
    for (int i = 0; i < t->n_entry && status == ADJ_OK && all.may_write; i++) {
        const tune_entry *x = &t->entry[i], *theirs = tune_find(&all, x->key);
        const int is_winner =
            x->kernel != NULL || (x->too_few > 0 && (theirs == NULL || theirs->kernel == NULL));
        if (x->origin == TIMED && is_winner)
            status = tune_add(&all, x);
    }
    if (status != ADJ_OK || !all.may_write)
        return -1;
    const int skip = all.n_entry > TUNE_ENTRIES ? all.n_entry - TUNE_ENTRIES : 0; /* the oldest */
    fputs(t->header, f);
    for (int i = skip; i < all.n_entry; i++)
        write_entry(f, &all.entry[i]);
    fprintf(f, "end %d\n", all.n_entry - skip);
    return ferror(f);
}

/* Makes the folders, for the user alone, as the XDG base directory specification wants it. What
 * cannot be made is reported when the file is written. */
static void make_folders(char *path)
{
    for (char *c = path + 1; *c != '\0'; c++)
        if (*c == '/') {
            *c = '\0';
            (void)mkdir(path, S_IRWXU);
            *c = '/';
        }
}

void tune_write(adj_exec *e)
{
    tuner *t = e->planning->tuner;
    const char *why = "";
    if (t->path == NULL || !t->may_write || !t->changed)
        return;
    if (t->makes_folders)
        make_folders(t->path);
    if (new_file_write(t->path, write_text, t, &why) != ADJ_OK)
        warn(e, "tune file %.200s cannot be written: %s", t->path, why);
}

const char *tune_selection(adj_exec *e)
{
    const tuner *t = e->planning->tuner;
    char *text = NULL, *kept = NULL;
    size_t size = 0;
    int n = 0;
    FILE *f = open_memstream(&text, &size);
    if (f == NULL)
        return NULL;
    for (int i = 0; i < t->n_entry; i++)
        if (t->entry[i].used) {
            write_entry(f, &t->entry[i]);
            n++;
        }
    if (n > 0)
        fprintf(f, "end %d\n", n);
    if (fclose(f) == 0)
        kept = region_string(&e->region, n > 0 ? text : "");
    free(text);
    return kept;
}
