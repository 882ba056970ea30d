/* progress.c - see progress.h. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "progress.h"

enum { BAR = 16, NARROW = 40 };

progress progress_start(terminal t, int64_t batch)
{
    double now = seconds_now();
    return (progress){.terminal = t, .batch = batch, .started = now, .shown = now};
}

/* Returns the maximum width of a line; no limit for a file. */
static int columns_of(const progress *p)
{
    return p->terminal.lines ? terminal_columns() : INT_MAX;
}

static void write_bar(const progress *p, const adj_fit_progress *f, char text[PIECE_TEXT])
{
    const char *full = p->terminal.unicode ? "\xe2\x94\x81" : "#";  /* heavy line */
    const char *empty = p->terminal.unicode ? "\xe2\x94\x80" : "."; /* light line */
    size_t n = 0;
    for (int64_t i = 0; i < BAR; i++)
        n += (size_t)snprintf(text + n, PIECE_TEXT - n, "%s",
                              i < f->step * BAR / f->steps ? full : empty);
}

void progress_step(progress *p, const adj_fit_progress *f)
{
    double now = seconds_now();
    if (f->epoch != p->epoch) {
        p->epoch = f->epoch;
        p->from = f->step;
        p->epoch_started = now;
    }
    if (f->step == p->from || now - p->shown < (p->terminal.lines ? 0.1 : 10))
        return;
    p->shown = now;

    double each =
        (now - p->epoch_started) / (double)(f->step - p->from); /* seconds; without the tests */
    int64_t left = (int64_t)(each * (double)((f->epochs - f->epoch + 1) * f->steps - f->step));
    line_piece piece[] = {
        {.rank = 0}, {.rank = 2, .color = COLOR_BAR},   {.rank = 1},
        {.rank = 3}, {.rank = 5, .color = COLOR_QUIET}, {.rank = 4, .color = COLOR_QUIET}};
    if (p->terminal.lines) {
        snprintf(piece[0].text, PIECE_TEXT, "%lld/%lld", (long long)f->epoch, (long long)f->epochs);
        write_bar(p, f, piece[1].text);
    } else {
        snprintf(piece[0].text, PIECE_TEXT, "epoch %2lld/%lld", (long long)f->epoch,
                 (long long)f->epochs);
        snprintf(piece[1].text, PIECE_TEXT, "step %lld/%lld", (long long)f->step,
                 (long long)f->steps);
    }
    snprintf(piece[2].text, PIECE_TEXT, "loss %.4f", f->train.loss);
    snprintf(piece[3].text, PIECE_TEXT, "accuracy %.2f %%", 100 * f->train.accuracy);
    snprintf(piece[4].text, PIECE_TEXT, "%.0f images/s", (double)p->batch / each);
    snprintf(piece[5].text, PIECE_TEXT, "%lld:%02lld left", (long long)(left / 60),
             (long long)(left % 60));
    if (p->terminal.lines)
        fputs("\r\033[K", stdout);
    /* One column stays free: after the last one, a terminal may wrap so that \r does not return to
     * the line. */
    put_pieces(stdout, &p->terminal, columns_of(p) - 1, sizeof piece / sizeof *piece, piece);
    if (!p->terminal.lines)
        fputc('\n', stdout);
    fflush(stdout);
}

void progress_clear(const progress *p)
{
    if (p->terminal.lines)
        fputs("\r\033[K", stdout);
}

void progress_epoch(const progress *p, const char *held_out_name, const adj_fit_progress *f,
                    double images_per_second)
{
    int columns = columns_of(p), is_narrow = columns < NARROW;
    line_piece piece[] = {{.rank = 0},
                          {.rank = 2},
                          {.rank = 3},
                          {.rank = 4},
                          {.rank = 1},
                          {.rank = 5, .color = COLOR_QUIET},
                          {.rank = 6, .color = COLOR_QUIET}};
    const int n = sizeof piece / sizeof *piece - (f->loss_scale == 0);
    piece[4].color = f->best_epoch == f->epoch ? COLOR_GOOD : NULL;
    snprintf(piece[0].text, PIECE_TEXT, is_narrow ? "%lld/%lld" : "epoch %2lld/%lld",
             (long long)f->epoch, (long long)f->epochs);
    snprintf(piece[1].text, PIECE_TEXT, "loss %.4f", f->train.loss);
    snprintf(piece[2].text, PIECE_TEXT, "accuracy %.2f %%", 100 * f->train.accuracy);
    snprintf(piece[3].text, PIECE_TEXT, "%s loss %.4f", held_out_name, f->held_out.loss);
    if (is_narrow)
        snprintf(piece[4].text, PIECE_TEXT, "%.2f %%", 100 * f->held_out.accuracy);
    else
        snprintf(piece[4].text, PIECE_TEXT, "%s accuracy %.2f %%", held_out_name,
                 100 * f->held_out.accuracy);
    snprintf(piece[5].text, PIECE_TEXT, "%.0f images/s", images_per_second);
    snprintf(piece[6].text, PIECE_TEXT, "loss scale %g, %lld skipped", f->loss_scale,
             (long long)f->skipped);
    put_pieces(stdout, &p->terminal, columns, n, piece);
    fputc('\n', stdout);
    fflush(stdout);
}

/* ---- load by other processes ---- */

/* The columns behind a processor's name (proc(5)); guests are part of the first two. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_COLUMN };

/* Returns the busy ticks of a line "cpu0 1393280 32966 572056 13343292 6130 0 17875 0 0 0" and sets
 * *cpu to the processor; -1: not the line of a single one. */
static double busy_in(const char *line, int *cpu)
{
    char *end;
    double busy = 0;
    *cpu = -1;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return 0;
    long number = strtol(line + 3, &end, 10);
    for (int i = 0; i < N_COLUMN; i++) {
        double ticks = strtod(end, &end);
        busy += i != IDLE && i != IOWAIT ? ticks : 0;
    }
    *cpu = number < CPU_SETSIZE ? (int)number : -1;
    return busy;
}

double cpu_busy(FILE *stat, const cpu_set_t *ours, double ticks)
{
    char line[1024];
    double sum = 0;
    int found = 0, cpu;
    while (fgets(line, sizeof line, stat) != NULL) {
        double busy = busy_in(line, &cpu);
        if (cpu >= 0 && CPU_ISSET(cpu, ours)) {
            sum += busy / ticks;
            found++;
        }
    }
    return found > 0 ? sum : -1;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

cpu_times cpu_times_now(void)
{
    cpu_times t = {.at = seconds_now(), .busy = -1};
    struct rusage own;
    cpu_set_t ours;
    FILE *stat = fopen("/proc/stat", "re");
    if (stat != NULL && sched_getaffinity(0, sizeof ours, &ours) == 0)
        t.busy = cpu_busy(stat, &ours, (double)sysconf(_SC_CLK_TCK));
    if (stat != NULL)
        fclose(stat);
    if (getrusage(RUSAGE_SELF, &own) == 0)
        t.own = seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
    return t;
}

double cpu_neighbors(const cpu_times *from, const cpu_times *to)
{
    const double passed = to->at - from->at;
    const double others = (to->busy - from->busy) - (to->own - from->own);
    return from->busy >= 0 && to->busy >= 0 && passed > 0 && others > 0 ? others / passed : 0;
}

const char *cpu_advice(double others, int processors, char text[ADVICE_TEXT])
{
    const int left = processors - (int)(others + 0.5);
    const char *policy = getenv("OMP_WAIT_POLICY");
    const int waits = policy != NULL && policy[0] != '\0';
    snprintf(text, ADVICE_TEXT,
             "note: other processes keep %.1f of %d processors busy: --threads %d%s may be faster",
             others, processors, left > 1 ? left : 1, waits ? "" : " or OMP_WAIT_POLICY=passive");
    return text;
}
