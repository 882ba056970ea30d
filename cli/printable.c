/* printable.c - see printable.h. */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "command.h"
#include "printable.h"
#include "utf8.h"

enum { SENTENCE = 8192 }; /* what is longer is cut off */

static int acts_on_terminal(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x200e || c == 0x200f ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

int printable(const char *text, char piece[PIECE])
{
    uint32_t code;
    int n = utf8_character(text, &code);
    if (n > 0 && !acts_on_terminal(code)) {
        memcpy(piece, text, (size_t)n);
        piece[n] = '\0';
        return n;
    }
    n = n > 0 ? n : 1;
    for (int k = 0; k < n; k++)
        piece += snprintf(piece, 5, "\\x%02x", (unsigned char)text[k]);
    return n;
}

static void put(FILE *f, const char *text, int lines)
{
    char piece[PIECE];
    while (*text != '\0')
        if (lines && *text == '\n') {
            fputc(*text++, f);
        } else {
            text += printable(text, piece);
            fputs(piece, f);
        }
}

void put_lines(FILE *f, const char *text) { put(f, text, 1); }

/* Formatted twice, once with another byte for the format's own ends of lines: where the two differ
 * is such an end, which no argument can forge. */
void put_text(FILE *f, const char *format, ...)
{
    char text[SENTENCE], marked[SENTENCE], other[SENTENCE], *line = text;
    va_list args, again;
    snprintf(other, sizeof other, "%s", format);
    for (char *c = other; (c = strchr(c, '\n')) != NULL;)
        *c = '\r';
    va_start(args, format);
    va_copy(again, args);
    vsnprintf(text, sizeof text, format, args);
    vsnprintf(marked, sizeof marked, other, again);
    va_end(again);
    va_end(args);
    for (size_t i = 0, n = strlen(text); i < n; i++)
        if (text[i] != marked[i]) {
            text[i] = '\0';
            put(f, line, 0);
            fputc('\n', f);
            line = text + i + 1;
        }
    put(f, line, 0);
}

void say(const char *format, ...)
{
    char text[SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(stdout, text, 0);
    fputc('\n', stdout);
}

int complain(const char *command, int status, const char *format, ...)
{
    char text[SENTENCE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "adjoint %s: ", command);
    put(stderr, text, 0);
    fputc('\n', stderr);
    return status;
}
