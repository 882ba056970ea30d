/* repeat.c - a command line that repeats a run: see command.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "command.h"

void repeat_command(char *line, size_t size, const char *command)
{
    const char *quarantine = getenv("ADJOINT_QUARANTINE");
    const int is_off = quarantine != NULL && strcmp(quarantine, "off") == 0;
    snprintf(line, size, "%sadjoint %s", is_off ? "ADJOINT_QUARANTINE=off " : "", command);
}

void repeat_word(char *line, size_t size, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=:,./@%";
    const int quotes = word[0] == '\0' || word[strspn(word, plain)] != '\0';
    c_append(line, size, quotes ? " '" : " ");
    for (const char *c = word; *c != '\0'; c++)
        c_append(line, size, "%.*s", *c == '\'' ? 4 : 1, *c == '\'' ? "'\\''" : c);
    c_append(line, size, "%s", quotes ? "'" : "");
}

void repeat_option(char *line, size_t size, const char *option, const char *value)
{
    if (value == NULL)
        return;
    repeat_word(line, size, option);
    if (value[0] != '\0')
        repeat_word(line, size, value);
}

const char *number_text(double value, char text[NUMBER_TEXT])
{
    /* option values are read without an exponent */
    const int is_whole = fabs(value) < 0x1p53 && value == trunc(value);
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, NUMBER_TEXT, "%.*g", digits, value);
        if (strtod(text, NULL) == value && (!is_whole || strchr(text, 'e') == NULL))
            break;
    }
    return text;
}

void repeat_number(char *line, size_t size, const char *option, double value, double default_value)
{
    char text[NUMBER_TEXT];
    (void)number_text(value, text);
    repeat_option(line, size, option, value != default_value ? text : NULL);
}
