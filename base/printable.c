/* printable.c - see printable.h. */
#include <ctype.h>
#include <string.h>

#include "c_locale.h"
#include "printable.h"

enum { SENTENCE = 8192 };

int utf8_character(const char *text, uint32_t *code)
{
    static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000}; /* smallest code by length */
    const unsigned char *s = (const unsigned char *)text;
    int n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    *code = n > 1 ? s[0] & (0x7fU >> n) : s[0];
    if (n == 0 || s[0] >= 0xf8)
        return 0;
    for (int k = 1; k < n; k++) {
        if ((s[k] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[k] & 0x3fU);
    }
    int surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < min[n] || surrogate || *code > 0x10ffff ? 0 : n;
}

/* True if c is a control or format character: it acts on a terminal, changes the direction of
 * writing, ends a line, or is invisible. Joiners of letters and signs (U+200C, U+200D) are text. */
static int is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x61c || c == 0x180e || c == 0x200b ||
           c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
           (c >= 0xe0000 && c <= 0xe007f);
}

/* Copies n bytes of text, unchanged or each as \xNN; n == 0 copies one stray byte. Returns how
 * many. */
static int copy_bytes(const char *text, int n, int as_is, char piece[PIECE])
{
    if (as_is) {
        memcpy(piece, text, (size_t)n);
        piece[n] = '\0';
        return n;
    }
    n = n > 0 ? n : 1;
    for (int k = 0; k < n; k++)
        piece += snprintf(piece, 5, "\\x%02x", (unsigned char)text[k]);
    return n;
}

int printable(const char *text, char piece[PIECE])
{
    uint32_t code;
    int n = utf8_character(text, &code);
    return copy_bytes(text, n, n > 0 && !is_control(code), piece);
}

static int printable_in_xml(const char *text, char piece[PIECE])
{
    static const char special[] = "&<>\"";
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    uint32_t code;
    int n = utf8_character(text, &code);
    const char *entity = strchr(special, *text);
    if (entity != NULL)
        return snprintf(piece, PIECE, "%s", entities[entity - special]), 1;
    if (n == 1 && code < ' ')
        return snprintf(piece, PIECE, " "), 1;
    const int is_odd = is_control(code) || code == 0xfffe || code == 0xffff;
    return copy_bytes(text, n, n > 0 && !is_odd, piece);
}

/* Formats twice, with different marker bytes for the format's own characters that must stay. A
 * byte that differs between the two is a marker, which no argument can forge. */
void vput_escaped(FILE *f, text_form form, const char *format, va_list args)
{
    static const char *const kept[] = {[FOR_TERMINAL] = "\n", [FOR_XML] = "&<>\"\n"};
    char text[SENTENCE], marked[SENTENCE], other[SENTENCE], piece[PIECE];
    va_list again;
    snprintf(other, sizeof other, "%s", format);
    for (char *c = other; (c = strpbrk(c, kept[form])) != NULL;)
        *c = '\r';
    va_copy(again, args);
    c_vsnprintf(text, sizeof text, format, args);
    c_vsnprintf(marked, sizeof marked, other, again);
    va_end(again);
    for (const char *c = text; *c != '\0';) {
        if (*c != marked[c - text]) {
            fputc(*c++, f);
            continue;
        }
        c += form == FOR_XML ? printable_in_xml(c, piece) : printable(c, piece);
        fputs(piece, f);
    }
}

void put_escaped(FILE *f, text_form form, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vput_escaped(f, form, format, args);
    va_end(args);
}

void put_text(FILE *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vput_escaped(f, FOR_TERMINAL, format, args);
    va_end(args);
}

/* ---- C ---- */

void put_in_comment(FILE *f, const char *s)
{
    char piece[PIECE];
    for (char before = 0; *s != '\0';) { /* no end, no trigraph, no line splice */
        const int is_unsafe = (before == '*' && *s == '/') || (before == '/' && *s == '*') ||
                              (before == '?' && *s == '?');
        before = *s;
        s += printable(s, piece);
        fputs(is_unsafe || strcmp(piece, "\\") == 0 ? "." : piece, f);
    }
}

void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s != '\0'; s++)
        if ((unsigned char)*s < 128 &&
            (isalnum((unsigned char)*s) || strchr("/_-.,: ", *s) != NULL))
            fputc(*s, f);
        else
            fprintf(f, "\\%03o", (unsigned char)*s);
    fputc('"', f);
}
