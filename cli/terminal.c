/* terminal.c - see terminal.h. */
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/printable.h"
#include "terminal.h"

/* True if the environment's locale is UTF-8 and installed. */
static int locale_is_utf8(void)
{
    locale_t l = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    int is = l != (locale_t)0 && strcmp(nl_langinfo_l(CODESET, l), "UTF-8") == 0;
    if (l != (locale_t)0)
        freelocale(l);
    return is;
}

terminal terminal_open(void)
{
    const char *name = getenv("TERM"), *no_color = getenv("NO_COLOR");
    int lines =
        isatty(STDOUT_FILENO) && name != NULL && name[0] != '\0' && strcmp(name, "dumb") != 0;
    return (terminal){.lines = lines,
                      .color = lines && (no_color == NULL || no_color[0] == '\0'),
                      .unicode = lines && locale_is_utf8()};
}

int terminal_columns(void)
{
    struct winsize w;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

/* ---- lines of pieces ---- */

/* True if the byte is the first of a character in UTF-8. */
static int begins_character(char byte) { return (byte & 0xc0) != 0x80; }

static int width_of(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += begins_character(*text);
    return n;
}

static int is_left_out(const line_piece *p, int rank) { return p->rank > 0 && p->rank >= rank; }

static int width_without(int n, const line_piece piece[], int rank)
{
    int width = 0;
    for (int i = 0; i < n; i++)
        if (!is_left_out(&piece[i], rank))
            width += (width > 0 ? 2 : 0) + width_of(piece[i].text);
    return width;
}

/* Prints at most max characters of text; returns their number. */
static int put_cut(FILE *f, const char *text, int max)
{
    int n = 0;
    for (; *text != '\0'; text++) {
        n += begins_character(*text);
        if (n > max)
            return max;
        fputc(*text, f);
    }
    return n;
}

void put_pieces(FILE *f, const terminal *t, int columns, int n, const line_piece piece[])
{
    int rank = 1, used = 0;
    for (int i = 0; i < n; i++)
        rank = piece[i].rank >= rank ? piece[i].rank + 1 : rank;
    while (rank > 1 && width_without(n, piece, rank) > columns)
        rank--;
    for (int i = 0; i < n; i++) {
        int color = t->color && piece[i].color != NULL;
        if (is_left_out(&piece[i], rank))
            continue;
        if (used > 0)
            used += put_cut(f, "  ", columns - used);
        if (color)
            fputs(piece[i].color, f);
        used += put_cut(f, piece[i].text, columns - used);
        if (color)
            fputs(COLOR_NONE, f);
    }
}

/* ---- sentences ---- */

void put_wrapped(FILE *f, const char *text, int first, int columns)
{
    int column = first;
    while (*text != '\0') {
        const size_t n = strcspn(text, " ");
        int width = 0;
        for (size_t i = 0; i < n; i++)
            width += begins_character(text[i]);
        if (column > first && column + 1 + width > columns) {
            fprintf(f, "\n%*s", first, "");
            column = first;
        }
        put_text(f, "%s%.*s", column > first ? " " : "", (int)n, text);
        column += width + (column > first);
        text += n + (text[n] == ' ');
    }
}

void say_wrapped(const char *format, ...)
{
    char *text = NULL;
    size_t size = 0;
    FILE *whole = terminal_open().lines ? open_memstream(&text, &size) : NULL;
    va_list args;
    va_start(args, format);
    vput_escaped(whole != NULL ? whole : stdout, FOR_TERMINAL, format, args);
    va_end(args);
    if (whole != NULL && fclose(whole) == 0)
        put_wrapped(stdout, text, 0, terminal_columns());
    fputc('\n', stdout);
    free(text);
}
