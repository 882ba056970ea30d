/* text.c - see text.h. */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"

enum { PER_LINE = 6 };

int memory_open(memory *m)
{
    m->f = open_memstream(&m->text, &m->length);
    return m->f != NULL;
}

int memory_end(memory *m)
{
    const int failed = m->f == NULL || ferror(m->f);
    const int closed = m->f != NULL && fclose(m->f) == 0;
    m->f = NULL;
    return closed && !failed;
}

void put(text *t, const char *format, ...)
{
    char line[1024];
    va_list args;
    va_start(args, format);
    c_vsnprintf(line, sizeof line, format, args);
    va_end(args);
    t->depth -= format[0] == '}';
    fprintf(t->f, "%*s%s\n", 4 * t->depth, "", line);
    t->depth += format[strlen(format) - 1] == '{';
}

void put_loop_to(text *t, const char *variable, const char *end)
{
    put(t, "for (int %s = 0; %s < %s; %s++) {", variable, variable, end, variable);
}

void put_loop(text *t, const char *variable, int64_t n)
{
    put_loop_to(t, variable, expr("%lld", (long long)n).s);
}

int put_loop_unless_one(text *t, const char *variable, int64_t n)
{
    if (n == 1)
        return 0;
    put_loop(t, variable, n);
    return 1;
}

void put_end(text *t, int braces)
{
    while (braces-- > 0)
        put(t, "}");
}

expression expr(const char *format, ...)
{
    expression e = {""};
    va_list args;
    va_start(args, format);
    c_vsnprintf(e.s, sizeof e.s, format, args);
    va_end(args);
    return e;
}

expression times(const char *a, int64_t factor)
{
    if (factor == 1)
        return expr("%s", a);
    return strcmp(a, "1") == 0 ? expr("%lld", (long long)factor)
                               : expr("%s * %lld", a, (long long)factor);
}

/* Writes a finite float with that many significant digits, as a float literal. */
static expression digits_of(float v, int digits)
{
    expression e = {""};
    c_snprintf(e.s, sizeof e.s, "%.*g", digits, (double)v);
    const size_t n = strlen(e.s);
    snprintf(e.s + n, sizeof e.s - n, "%sf", strpbrk(e.s, ".e") == NULL ? ".0" : "");
    return e;
}

/* The shortest text, or the first digits that are always enough. */
static expression float_literal(float v, int shortest)
{
    enum { ENOUGH = 9 };
    if (isnan(v) || isinf(v))
        return expr("%s", isnan(v) ? "NAN" : v > 0 ? "INFINITY" : "-INFINITY");
    for (int digits = 1; shortest && digits < ENOUGH; digits++) {
        const expression e = digits_of(v, digits);
        if ((float)c_strtod(e.s, NULL) == v)
            return e;
    }
    return digits_of(v, ENOUGH);
}

expression literal(double value) { return float_literal((float)value, 1); }

expression shape_of(adj_shape s) { return expr("%s", adj_shape_text(s).s); }

/* ---- identifiers ---- */

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

int is_identifier(const char *s, int max)
{
    int n = 0;
    for (; n <= max && s[n] != '\0'; n++)
        if (!is_letter(s[n]) && (n == 0 || (!is_digit(s[n]) && s[n] != '_')))
            return 0;
    return n > 0 && n <= max;
}

static int is_name_taken(const name_list *l, const char *name)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->name[i], name) == 0)
            return 1;
    return 0;
}

int new_name(name_list *l, const char *from, const char *suffix, char to[IDENTIFIER])
{
    enum { SUFFIX = 40, STEM = IDENTIFIER - SUFFIX - 12 };
    int n = 0;
    for (; *from != '\0' && n < STEM; from++)
        if (is_letter(*from) || is_digit(*from))
            to[n++] = *from;
        else if (n > 0 && to[n - 1] != '_')
            to[n++] = '_';
    n -= n > 0 && to[n - 1] == '_';
    if (n == 0 || is_digit(to[0])) { /* a number, or no usable character at all */
        memmove(to + 1, to, (size_t)n);
        to[0] = 'n';
        n++;
    }
    n += snprintf(to + n, SUFFIX, "%s", suffix);
    for (int number = 2; is_name_taken(l, to); number++)
        snprintf(to + n, 12, "_%d", number);
    void *more = realloc(l->name, ((size_t)l->n + 1) * sizeof *l->name);
    if (more == NULL)
        return 0;
    l->name = more;
    memcpy(l->name[l->n++], to, IDENTIFIER);
    return 1;
}

/* ---- numbers ---- */

void put_elements(FILE *f, adj_dtype dtype, const void *data, int64_t n)
{
    fputc('{', f);
    for (int64_t i = 0; i < n; i++) {
        const double v = adj_load(dtype, data, i);
        fputs(i % PER_LINE == 0 ? "\n    " : " ", f);
        if (dtype == ADJ_I32 && v == (double)INT32_MIN)
            fputs("INT32_MIN,", f);
        else if (dtype == ADJ_I32)
            fprintf(f, "%d,", (int)v);
        else
            fprintf(f, "%s,", float_literal((float)v, 0).s);
    }
    fputs("\n}", f);
}

void put_bytes(FILE *f, const int8_t data[], int64_t n)
{
    enum { BYTES = 2 * PER_LINE };
    fputc('{', f);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%s%d,", i % BYTES == 0 ? "\n    " : " ", data[i]);
    fputs("\n}", f);
}
