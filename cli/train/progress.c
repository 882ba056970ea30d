/* progress.c - see progress.h. */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json.h"
#include "progress.h"

enum { BAR = 16, LINE = 200 };

progress progress_start(int64_t batch)
{
    double now = seconds_now();
    return (progress){
        .terminal = isatty(STDOUT_FILENO), .batch = batch, .started = now, .shown = now};
}

/* Columns of the terminal, 80 if it does not tell. */
static size_t width(void)
{
    struct winsize w;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

void progress_step(progress *p, const adj_fit_progress *f)
{
    double now = seconds_now();
    if (f->epoch != p->epoch) {
        p->epoch = f->epoch;
        p->from = f->step;
        p->epoch_started = now;
    }
    if (f->step == p->from || now - p->shown < (p->terminal ? 0.1 : 10))
        return;
    p->shown = now;

    double each =
        (now - p->epoch_started) / (double)(f->step - p->from); /* seconds; without the tests */
    int64_t left = (int64_t)(each * (double)((f->epochs - f->epoch + 1) * f->steps - f->step));
    int full = (int)(f->step * BAR / f->steps);
    char line[LINE], bar[BAR + 1];
    memset(bar, '#', (size_t)full);
    memset(bar + full, '.', (size_t)(BAR - full));
    bar[BAR] = '\0';
    snprintf(line, sizeof line,
             "%lld/%lld %s loss %.4f  accuracy %.2f %%  %.0f images/s  %lld:%02lld left",
             (long long)f->epoch, (long long)f->epochs, bar, f->loss, 100 * f->accuracy,
             (double)p->batch / each, (long long)(left / 60), (long long)(left % 60));
    if (p->terminal) {
        size_t columns = width(); /* a longer line would wrap, and \r not lead back */
        if (columns - 1 < sizeof line)
            line[columns - 1] = '\0';
        printf("\r\033[K%s", line);
    } else
        printf("%s\n", line);
    fflush(stdout);
}

void progress_clear(const progress *p)
{
    if (p->terminal)
        printf("\r\033[K");
}

/* ---- the log ---- */

/* Whether a run before could not write the last line to its end. */
static int ends_in_a_line(const char *path)
{
    struct stat s;
    int last = '\n';
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) /* a pipe must not be read */
        return 1;
    FILE *f = fopen(path, "r");
    if (f != NULL && fseek(f, -1, SEEK_END) == 0)
        last = fgetc(f);
    if (f != NULL)
        fclose(f);
    return last == '\n';
}

FILE *log_open(const char *path, int append)
{
    int whole = !append || ends_in_a_line(path);
    FILE *f = fopen(path, append ? "a" : "w");
    if (f == NULL)
        return NULL;
    if (!whole)
        fputc('\n', f); /* a failure is the next line's */
    return f;
}

int log_line(FILE *f, json_t *object)
{
    if (f != NULL)
        return json_write(f, object, JSON_COMPACT | JSON_REAL_PRECISION(9), 0);
    int failed = object == NULL;
    json_decref(object);
    return failed;
}
