/* file.c - the table of winners, the file it is kept in, and the selection of one plan.
 *
 * The file is text: the header that this machine and these backends give (key.c), the machine's
 * speed if it was measured, one winner a line, and a last line that counts them:
 *   speed TAB threads TAB f32 TAB bf16 TAB f16 TAB L2 TAB L3 TAB memory
 *   backend TAB kernel TAB candidate TAB microseconds TAB implementation TAB key
 *   end 17
 * The speeds are operations, or bytes, a second, with so many threads asked for; 0: it has none, or
 * it is not known. They decide how time is shared among races, and what a reorder is taken to cost
 * that was not timed. Where there was no time for a race, backend and kernel are "-", the
 * microseconds are those of what is usual, and in place of the implementation are the seconds that
 * were too few. A selection is the same without the header. Both are taken whole or not at all, and
 * believed, but for the speeds, in nothing but which candidate to prepare: the one that prepares to
 * the implementation and layouts named, or, on operands in other layouts, to the implementation,
 * wherever it is in the backend's list (the number is only where to look first). So the worst that
 * a forged one does is to select slow kernels, or to share out time badly. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/new_file.h"
#include "tune.h"

enum { MAX_BYTES = 8 << 20, MAX_ENTRIES = 10000, FIELDS = 6 };

__attribute__((format(printf, 2, 3))) static void warn(adj_exec *e, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(e->warning, sizeof e->warning, format, args);
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
    tune_entry *list = region_grow(&t->region, t->entry, t->n_entry, &t->max_entry, sizeof *list);
    if (list == NULL)
        return NULL;
    t->entry = list;
    return &list[t->n_entry++];
}

adj_status tune_add(tuner *t, const tune_entry *entry)
{
    tune_entry copy = *entry, *old = tune_find(t, entry->key);
    copy.key = old != NULL ? old->key : region_string(&t->region, entry->key);
    copy.impl = region_string(&t->region, entry->impl);
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
    else if (s.st_size > MAX_BYTES)
        wrong = "is too large";
    else if ((*text = region_alloc(&t->region, (size_t)s.st_size + 1, 1)) == NULL)
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

/* A whole number without sign from 0 to max; -1: it is none. */
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
    double us = strtod(field[3], &end);
    if (candidate < 0 || *end != '\0' || !(us >= 0 && us < 1e12))
        return "has a number out of range";
    const int is_late = strcmp(field[0], "-") == 0 && strcmp(field[1], "-") == 0;
    const double too_few = is_late ? strtod(field[4], &end) : 0;
    if (is_late && (*end != '\0' || !(too_few > 0 && too_few < 1e7)))
        return "has a number out of range";
    tune_entry *entry = new_entry(t);
    if (entry == NULL)
        *status = ADJ_ENOMEM;
    else if (is_late)
        *entry = (tune_entry){.key = field[5],
                              .impl = "",
                              .seconds = 1e-6 * us,
                              .too_few = too_few,
                              .origin = origin};
    else /* the strings are the text's, which the region keeps */
        *entry = (tune_entry){.key = field[5],
                              .backend = field[0],
                              .kernel = field[1],
                              .candidate = (int)candidate,
                              .impl = field[4],
                              .seconds = 1e-6 * us,
                              .origin = origin};
    return NULL;
}

static const char speed[] = "speed\t";

static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Operations or bytes a second: far below any machine's, and large enough to be divided by. */
static const double min_speed = 1e6;

/* The line at *text, which is put behind it. */
static const char *read_speed(tuner *t, char **text)
{
    enum { F32, BF16, F16, L2, L3, MEMORY, N };
    double v[N];
    char *end = *text + strlen(speed);
    const long threads = is_digit(*end) ? strtol(end, &end, 10) : 0;
    for (int i = 0; i < N; i++) {
        if (*end != '\t' || !is_digit(end[1]))
            return "has not seven numbers";
        v[i] = strtod(end + 1, &end);
        if (v[i] != 0 && !(v[i] >= min_speed && v[i] < 1e18))
            return "has a number out of range";
    }
    *text = end + (*end == '\n');
    if (*end != '\n' || threads < 1 || threads > INT_MAX || v[F32] == 0)
        return "has a number out of range";
    t->speed = (machine_speed){.threads = (int)threads,
                               .f32 = {1, v[F32], ""},
                               .bf16 = {v[BF16] > 0, v[BF16], ""},
                               .f16 = {v[F16] > 0, v[F16], ""},
                               .l2 = v[L2],
                               .l3 = v[L3],
                               .memory = v[MEMORY]};
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
            return number(line + 4, MAX_ENTRIES) == n && *next == '\0' ? NULL
                                                                       : "the count is wrong";
        if (n++ == MAX_ENTRIES)
            return "there are too many lines";
        wrong = read_entry(t, line, origin, status);
        line = next;
    }
    return wrong;
}

adj_status tune_read_selection(adj_exec *e, const char *text)
{
    tuner *t = e->tuner;
    adj_status status = ADJ_OK;
    int line = 0;
    if (text == NULL || text[0] == '\0')
        return ADJ_OK;
    size_t size = strlen(text);
    const char *wrong = size > MAX_BYTES       ? "is too long"
                        : !is_text(text, size) ? "is not text"
                                               : NULL;
    char *copy = wrong == NULL ? region_string(&t->region, text) : NULL;
    if (wrong == NULL && copy == NULL)
        return ADJ_ENOMEM;
    if (wrong == NULL)
        wrong = read_lines(t, copy, FROM_SELECTION, &line, &status);
    if (wrong == NULL)
        return status;
    warn(e, "the selection of kernels is ignored: line %d: %s", line, wrong);
    t->n_entry = 0;
    return status;
}

/* Whether it was once written here. Another file is never replaced, whatever it is called. */
static int is_ours(const char *text) { return strncmp(text, TUNE_BEGIN, strlen(TUNE_BEGIN)) == 0; }

adj_status tune_read(adj_exec *e)
{
    tuner *t = e->tuner;
    adj_status status = ADJ_OK;
    char *text;
    size_t size = 0, header = strlen(t->header);
    const char *wrong = load(t, &text, &size, &status);
    int line = 0, before = t->n_entry;

    if (status != ADJ_OK)
        return status;
    t->may_write = wrong == NULL && (text == NULL || size == 0 || is_ours(text));
    if (wrong == NULL && text == NULL)
        return ADJ_OK;
    if (wrong == NULL && !t->may_write)
        wrong = "is no tune file, and stays as it is";
    if (wrong == NULL && !is_text(text, size))
        wrong = "is not text";
    if (wrong == NULL && (size < header || memcmp(text, t->header, header) != 0))
        wrong = "was made for another CPU or another version of adjoint or its backends";
    if (wrong == NULL) {
        for (size_t i = 0; i < header; i++)
            line += text[i] == '\n';
        char *rest = text + header;
        if (strncmp(rest, speed, strlen(speed)) == 0) {
            line++;
            wrong = read_speed(t, &rest);
        }
        if (wrong == NULL)
            wrong = read_lines(t, rest, FROM_FILE, &line, &status);
    }
    if (wrong != NULL && line > 0)
        warn(e, "tune file %.200s is ignored: line %d: %s", t->path, line, wrong);
    else if (wrong != NULL)
        warn(e, "tune file %.200s is ignored: %s", t->path, wrong);
    if (wrong != NULL) {
        t->n_entry = before;
        t->speed.threads = 0;
    }
    return status;
}

/* ---- writing ---- */

/* A selection came from elsewhere: it holds for this plan alone. */
static int writes_entry(const tune_entry *entry)
{
    return (entry->kernel != NULL || entry->too_few > 0) && entry->origin != FROM_SELECTION;
}

/* A type without arithmetic of its own has no speed. */
static void write_speed(FILE *f, const machine_speed *s)
{
    const double v[] = {s->f32.flops,
                        s->bf16.is_native > 0 ? s->bf16.flops : 0,
                        s->f16.is_native > 0 ? s->f16.flops : 0,
                        s->l2,
                        s->l3,
                        s->memory};
    if (s->threads < 1 || v[0] < min_speed)
        return;
    fprintf(f, "%s%d", speed, s->threads);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        fprintf(f, "\t%.4g", v[i] < min_speed ? 0 : v[i]);
    fputc('\n', f);
}

static void write_entry(FILE *f, const tune_entry *x)
{
    if (x->kernel == NULL)
        fprintf(f, "-\t-\t0\t%.1f\t%.9g\t%s\n", 1e6 * x->seconds, x->too_few, x->key);
    else
        fprintf(f, "%s\t%s\t%d\t%.1f\t%s\t%s\n", x->backend, x->kernel, x->candidate,
                1e6 * x->seconds, x->impl, x->key);
}

static int write_text(FILE *f, void *user)
{
    const tuner *t = user;
    int n = 0, skip = -MAX_ENTRIES; /* the newest are last, and kept */
    for (int i = 0; i < t->n_entry; i++)
        skip += writes_entry(&t->entry[i]);
    fputs(t->header, f);
    write_speed(f, &t->speed);
    for (int i = 0; i < t->n_entry; i++) {
        const tune_entry *x = &t->entry[i];
        if (!writes_entry(x) || skip-- > 0)
            continue;
        write_entry(f, x);
        n++;
    }
    fprintf(f, "end %d\n", n);
    return ferror(f);
}

/* For the user alone, as the XDG base directory specification wants it. What cannot be made is
 * reported when the file is written. */
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
    tuner *t = e->tuner;
    const char *why = "";
    if (t->path == NULL || !t->may_write || !t->changed)
        return;
    if (t->makes_folders)
        make_folders(t->path);
    if (new_file_write(t->path, 0, write_text, t, &why) != ADJ_OK)
        warn(e, "tune file %.200s cannot be written: %s", t->path, why);
}

const char *tune_selection(adj_exec *e)
{
    const tuner *t = e->tuner;
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
