/* c_locale.c - see c_locale.h. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "c_locale.h"

/* The C library keeps the locale "C" ready: newlocale allocates nothing and does not fail. */
locale_t c_locale_begin(void)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c != (locale_t)0 ? uselocale(c) : (locale_t)0;
}

void c_locale_end(locale_t before)
{
    if (before != (locale_t)0)
        freelocale(uselocale(before));
}

int c_vsnprintf(char *to, size_t size, const char *format, va_list args)
{
    const locale_t before = c_locale_begin();
    const int n = vsnprintf(to, size, format, args);
    c_locale_end(before);
    return n;
}

int c_snprintf(char *to, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = c_vsnprintf(to, size, format, args);
    va_end(args);
    return n;
}

int c_append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    const int n = c_vsnprintf(text + used, size - used, format, args);
    va_end(args);
    return (size_t)n < size - used;
}

int c_fprintf(FILE *f, const char *format, ...)
{
    va_list args;
    const locale_t before = c_locale_begin();
    va_start(args, format);
    const int n = vfprintf(f, format, args);
    va_end(args);
    c_locale_end(before);
    return n;
}

double c_strtod(const char *text, char **end)
{
    const locale_t before = c_locale_begin();
    const double v = strtod(text, end);
    c_locale_end(before);
    return v;
}

int c_strcasecmp(const char *a, const char *b)
{
    const locale_t before = c_locale_begin();
    const int order = strcasecmp(a, b);
    c_locale_end(before);
    return order;
}
