/* progress.c - see progress.h. */
#include <limits.h>
#include <string.h>

#include "exec/clock.h"
#include "progress.h"

enum { BAR = 16, CURVE_ROWS = 3, NARROW = 40 };

progress progress_start(terminal t, int64_t epochs, int64_t steps, int64_t batch)
{
    double now = seconds_now();
    return (progress){.terminal = t,
                      .epochs = epochs,
                      .steps = steps,
                      .batch = batch,
                      .started = now,
                      .shown = now};
}

/* What a line may take: all of a file's. */
static int columns_of(const progress *p)
{
    return p->terminal.lines ? terminal_columns() : INT_MAX;
}

static void write_bar(const progress *p, int64_t done, char text[PIECE_TEXT])
{
    const char *full = p->terminal.unicode ? "\xe2\x94\x81" : "#";  /* heavy line */
    const char *empty = p->terminal.unicode ? "\xe2\x94\x80" : "."; /* light line */
    size_t n = 0;
    for (int64_t i = 0; i < BAR; i++)
        n += (size_t)snprintf(text + n, PIECE_TEXT - n, "%s",
                              i < done * BAR / p->steps ? full : empty);
}

void progress_step(progress *p, int64_t epoch, int64_t step, double loss, double accuracy)
{
    double now = seconds_now();
    if (step == p->from)
        p->epoch_started = now;
    if (step == p->from || now - p->shown < (p->terminal.lines ? 0.1 : 10))
        return;
    p->shown = now;

    double each =
        (now - p->epoch_started) / (double)(step - p->from); /* seconds; without the tests */
    int64_t left = (int64_t)(each * (double)((p->epochs - epoch) * p->steps - step - 1));
    line_piece piece[] = {
        {.rank = 0}, {.rank = 2, .colour = COLOUR_BAR},   {.rank = 1},
        {.rank = 3}, {.rank = 5, .colour = COLOUR_QUIET}, {.rank = 4, .colour = COLOUR_QUIET}};
    snprintf(piece[0].text, PIECE_TEXT, "%lld/%lld", (long long)epoch + 1, (long long)p->epochs);
    write_bar(p, step + 1, piece[1].text);
    snprintf(piece[2].text, PIECE_TEXT, "loss %.4f", loss);
    snprintf(piece[3].text, PIECE_TEXT, "accuracy %.2f %%", accuracy);
    snprintf(piece[4].text, PIECE_TEXT, "%.0f images/s", (double)p->batch / each);
    snprintf(piece[5].text, PIECE_TEXT, "%lld:%02lld left", (long long)(left / 60),
             (long long)(left % 60));
    if (p->terminal.lines)
        fputs("\r\033[K", stdout);
    /* One column stays free: in the last one a terminal may wait to wrap, and \r not lead back. */
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

void progress_epoch(const progress *p, const epoch_line *e)
{
    int columns = columns_of(p), is_narrow = columns < NARROW;
    line_piece piece[] = {{.rank = 0}, {.rank = 2}, {.rank = 3},
                          {.rank = 4}, {.rank = 1}, {.rank = 5, .colour = COLOUR_QUIET}};
    piece[4].colour = e->best ? COLOUR_GOOD : NULL;
    snprintf(piece[0].text, PIECE_TEXT, is_narrow ? "%lld/%lld" : "epoch %2lld/%lld",
             (long long)e->epoch, (long long)p->epochs);
    snprintf(piece[1].text, PIECE_TEXT, "loss %.4f", e->loss);
    snprintf(piece[2].text, PIECE_TEXT, "accuracy %.2f %%", e->accuracy);
    snprintf(piece[3].text, PIECE_TEXT, "%s loss %.4f", e->held, e->held_loss);
    if (is_narrow)
        snprintf(piece[4].text, PIECE_TEXT, "%.2f %%", e->held_accuracy);
    else
        snprintf(piece[4].text, PIECE_TEXT, "%s accuracy %.2f %%", e->held, e->held_accuracy);
    snprintf(piece[5].text, PIECE_TEXT, "%.0f images/s", e->images_per_second);
    put_pieces(stdout, &p->terminal, columns, sizeof piece / sizeof *piece, piece);
    fputc('\n', stdout);
    fflush(stdout);
}

void progress_curve(const progress *p, int n, const double loss[])
{
    if (!p->terminal.unicode || n < 2)
        return;
    fputs("loss\n", stdout);
    put_curve(stdout, &p->terminal, columns_of(p), CURVE_ROWS, n, loss);
}
