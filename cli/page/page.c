/* page.c - see page.h. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "graph/printable.h"
#include "page.h"
#include "style.h"

void page_begin(FILE *f, const char *kind, const char *title, const char *summary)
{
    put_escaped(f, FOR_XML,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>%s</title>\n",
                title);
    fputs("<style>\n", f);
    for (size_t i = 0; i < sizeof page_style / sizeof *page_style; i++)
        fputs(page_style[i], f);
    fputs("</style>\n</head>\n", f);
    put_escaped(f, FOR_XML, "<body>\n<main>\n<header>\n<p class=\"kind\">%s</p>\n<h1>%s</h1>\n",
                kind, title);
    if (summary != NULL)
        put_escaped(f, FOR_XML, "<p>%s</p>\n", summary);
    fputs("</header>\n<section>\n<h2 hidden>Summary</h2>\n", f);
}

void page_section(FILE *f, const char *id, const char *title)
{
    put_escaped(f, FOR_XML, "</section>\n<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void page_note(FILE *f, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("<p class=\"note\">", f);
    vput_escaped(f, FOR_XML, format, args);
    fputs("</p>\n", f);
    va_end(args);
}

void page_end(FILE *f) { fputs("</section>\n</main>\n</body>\n</html>\n", f); }

void page_tiles(FILE *f, int n, const page_fact tile[])
{
    fputs("<ul class=\"tiles\">\n", f);
    for (int i = 0; i < n; i++)
        if (tile[i].value != NULL)
            put_escaped(f, FOR_XML, "<li><span>%s</span><b>%s</b></li>\n", tile[i].name,
                        tile[i].value);
    fputs("</ul>\n", f);
}

void page_facts(FILE *f, int n, const page_fact fact[])
{
    fputs("<dl class=\"facts\">\n", f);
    for (int i = 0; i < n; i++)
        if (fact[i].value != NULL)
            put_escaped(f, FOR_XML, "<dt>%s</dt><dd>%s</dd>\n", fact[i].name, fact[i].value);
    fputs("</dl>\n", f);
}

void page_code(FILE *f, const char *line) { put_escaped(f, FOR_XML, "<pre>%s</pre>\n", line); }

void page_frame_begin(FILE *f, const char *label)
{
    put_escaped(f, FOR_XML,
                "<div class=\"frame\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">\n", label);
}

void page_frame_end(FILE *f) { fputs("</div>\n", f); }

/* ---- cells ---- */

void page_cell_text(FILE *f, const char *class, const char *text)
{
    put_escaped(f, FOR_XML, "<td class=\"%s\">%s</td>", class, text);
}

/* With places where the line may be broken. */
static void put_breakable(FILE *f, const char *text)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "_+/");
        put_escaped(f, FOR_XML, "%.*s", (int)n, text);
        text += n;
        if (*text != '\0')
            fprintf(f, "%c<wbr>", *text++);
    }
}

void page_cell_name(FILE *f, const char *name, const char *below)
{
    fputs("<td class=\"l op\">", f);
    put_breakable(f, name);
    if (below[0] != '\0') {
        fputs("<div class=\"sub\">", f);
        put_breakable(f, below);
        fputs("</div>", f);
    }
    fputs("</td>", f);
}

static void put_number(FILE *f, const char *format, double v)
{
    if (isinf(v))
        fputs(v > 0 ? "&infin;" : "&minus;&infin;", f);
    else if (isnan(v))
        fputs("&ndash;", f);
    else
        fprintf(f, format, v);
}

void page_cell_number(FILE *f, const char *class, const char *format, double v)
{
    fprintf(f, "<td class=\"%s\">", class);
    put_number(f, format, v);
    fputs("</td>", f);
}

/* ---- numbers ---- */

const char *page_whole(char text[PAGE_NUMBER], long long v)
{
    char digits[PAGE_NUMBER / 2];
    int n = snprintf(digits, sizeof digits, "%lld", v), k = 0;
    for (int i = 0; i < n; i++) {
        int left = n - i;
        if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') {
            memcpy(text + k, "\xe2\x80\xaf", 3);
            k += 3;
        }
        text[k++] = digits[i];
    }
    text[k] = '\0';
    return text;
}

/* v in steps of 1000 with the prefixes' letters before the unit. */
static const char *scaled(char text[PAGE_NUMBER], double v, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P"};
    int k = 0;
    for (; v >= 999.5 && k < 5; k++)
        v /= 1000;
    const char *space = k > 0 || unit[0] != '\0' ? " " : "";
    snprintf(text, PAGE_NUMBER, k == 0 || v >= 99.95 ? "%.0f%s%s%s" : "%.1f%s%s%s", v, space,
             prefix[k], unit);
    return text;
}

const char *page_bytes(char text[PAGE_NUMBER], double bytes) { return scaled(text, bytes, "B"); }

const char *page_count(char text[PAGE_NUMBER], double v) { return scaled(text, v, ""); }

const char *page_seconds(char text[PAGE_NUMBER], double seconds)
{
    long long s = (long long)(seconds + 0.5);
    if (seconds < 10)
        snprintf(text, PAGE_NUMBER, "%.1f s", seconds);
    else if (s < 60)
        snprintf(text, PAGE_NUMBER, "%lld s", s);
    else if (s < 3600)
        snprintf(text, PAGE_NUMBER, "%lld min %lld s", s / 60, s % 60);
    else
        snprintf(text, PAGE_NUMBER, "%lld h %lld min", s / 3600, s / 60 % 60);
    return text;
}
