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

enum { MAX_BYTES = 8 << 20 };

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

tune_entry *tune_new_entry(tuner *t)
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
    if (old == NULL && (old = tune_new_entry(t)) == NULL)
        return ADJ_ENOMEM;
    *old = copy;
    return ADJ_OK;
}

/* ---- reading ---- */

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
                        : !tune_is_text(copy, size)
                            ? "is not text"
                            : tune_read_lines(t, copy, FROM_SELECTION, &line, &status);
    if (wrong != NULL) {
        warn(e, "the selection of kernels is ignored: line %d: %s", line, wrong);
        t->n_entry = 0;
    }
    return status;
}

/* True if it was once written here. Another file is never replaced, whatever it is called. */
static int is_ours(const char *text) { return strncmp(text, TUNE_BEGIN, strlen(TUNE_BEGIN)) == 0; }

/* Reads a whole file of this machine: appends its entries to the table. Returns what is
 * wrong with the file, or NULL; *line: the line, 0 if no line is wrong. */
static const char *read_file(tuner *t, char *text, size_t size, int *line, adj_status *status)
{
    const size_t header = strlen(t->header);
    if (!tune_is_text(text, size))
        return "is not text";
    if (size < header || memcmp(text, t->header, header) != 0)
        return "was made for another CPU or another version of adjoint or its backends";
    for (size_t i = 0; i < header; i++)
        *line += text[i] == '\n';
    text += header;
    return tune_read_lines(t, text, FROM_FILE, line, status);
}

adj_status tune_read(adj_exec *e)
{
    tuner *t = e->planning->tuner;
    adj_status status = ADJ_OK;
    char *text;
    size_t size = 0;
    const char *wrong = load(t, &text, &size, &status);
    int line = 0, before = t->n_entry;

    if (status != ADJ_OK)
        return status;
    t->may_write = wrong == NULL && (text == NULL || size == 0 || is_ours(text));
    if (wrong == NULL && text == NULL)
        return ADJ_OK;
    if (wrong == NULL && !t->may_write)
        wrong = "is not a tune file and is left unchanged";
    if (wrong == NULL)
        wrong = read_file(t, text, size, &line, &status);
    if (wrong != NULL && line > 0)
        warn(e, "tune file %.200s is ignored: line %d: %s", t->path, line, wrong);
    else if (wrong != NULL)
        warn(e, "tune file %.200s is ignored: %s", t->path, wrong);
    if (wrong != NULL)
        t->n_entry = before;
    return status;
}

/* ---- writing ---- */

/* True if the file keeps it: a selection came from elsewhere, and holds for this plan alone. */
static int writes_entry(const tune_entry *entry)
{
    return (entry->kernel != NULL || entry->too_few > 0) && entry->origin != FROM_SELECTION;
}

/* Makes the table what the file holds now, which other processes may have written, with what this
 * one has timed. Requires: the file is locked. */
static adj_status merge_file(tuner *t)
{
    tuner all = *t;
    adj_status status = ADJ_OK;
    char *text;
    size_t size = 0;
    int line = 0;
    const char *wrong = load(t, &text, &size, &status);
    if (status != ADJ_OK || wrong != NULL || size == 0)
        return status;
    if (!is_ours(text))
        return ADJ_EIO;
    all.n_entry = all.max_entry = 0;
    wrong = read_file(&all, text, size, &line, &status);
    if (status != ADJ_OK || wrong != NULL)
        return status;
    for (int i = 0; i < t->n_entry && status == ADJ_OK; i++) {
        const tune_entry *x = &t->entry[i];
        const tune_entry *theirs = x->origin == TIMED ? tune_find(&all, x->key) : NULL;
        if (x->origin == TIMED && (x->kernel != NULL || theirs == NULL || theirs->kernel == NULL))
            status = tune_add(&all, x);
    }
    *t = all;
    return status;
}

static int write_text(FILE *f, void *user)
{
    tuner *t = user;
    if (merge_file(t) != ADJ_OK)
        return -1;
    int n = 0, skip = -TUNE_ENTRIES; /* the newest are last, and kept */
    for (int i = 0; i < t->n_entry; i++)
        skip += writes_entry(&t->entry[i]);
    fputs(t->header, f);
    for (int i = 0; i < t->n_entry; i++) {
        const tune_entry *x = &t->entry[i];
        if (!writes_entry(x) || skip-- > 0)
            continue;
        tune_write_entry(f, x);
        n++;
    }
    fprintf(f, "end %d\n", n);
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
            tune_write_entry(f, &t->entry[i]);
            n++;
        }
    if (n > 0)
        fprintf(f, "end %d\n", n);
    if (fclose(f) == 0)
        kept = region_string(&e->region, n > 0 ? text : "");
    free(text);
    return kept;
}
