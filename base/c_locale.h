/* c_locale.h - text and numbers in the C locale, whatever locale the host program has set.
 *
 * A program under de_DE prints 0,5 and reads 0.5 as 0. The library's files and messages are the
 * same everywhere: numbers go through these functions alone (tests/test_c_locale.sh). The locale
 * is set for the calling thread only, until the call returns. The file includes no other header
 * of the project; both libraries and the tool each compile a copy. */
#ifndef BASE_C_LOCALE_H
#define BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>

int c_snprintf(char *to, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int c_vsnprintf(char *to, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
/* Appends to a text, which has room for size bytes; returns 0 if the end was cut off. */
int c_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int c_fprintf(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
double c_strtod(const char *text, char **end);
/* Compares without regard to the case of ASCII letters. (In a Turkish locale, strcasecmp does
 * not match i and I.) */
int c_strcasecmp(const char *a, const char *b);

/* Sets the C locale for calls of other libraries that print and read numbers. Returns the
 * previous locale, for c_locale_end. */
locale_t c_locale_begin(void);
void c_locale_end(locale_t before);

#endif
