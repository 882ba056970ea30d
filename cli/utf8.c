/* utf8.c - see utf8.h. */
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* Bytes of the character at s, 1 to 4; 0: there is none. Neither longer forms than needed nor
 * surrogates nor what is beyond U+10FFFF are characters. */
static int character(const unsigned char *s)
{
    static const struct {
        unsigned char first, last, low, high; /* of the first byte, and of the second */
        int bytes;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                 {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    if (s[0] < 0x80)
        return 1;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (s[0] >= forms[i].first && s[0] <= forms[i].last) {
            if (s[1] < forms[i].low || s[1] > forms[i].high)
                return 0;
            for (int k = 2; k < forms[i].bytes; k++)
                if ((s[k] & 0xc0) != 0x80)
                    return 0;
            return forms[i].bytes;
        }
    return 0;
}

json_t *json_text(const char *text)
{
    if (text == NULL)
        return json_null();
    char *valid = malloc(4 * strlen(text) + 1), *to = valid;
    if (valid == NULL)
        return NULL;
    for (int n; *text != '\0'; text += n > 0 ? n : 1) {
        n = character((const unsigned char *)text);
        if (n > 0)
            memcpy(to, text, (size_t)n);
        else
            snprintf(to, 5, "\\x%02x", (unsigned char)*text);
        to += n > 0 ? n : 4;
    }
    *to = '\0';
    json_t *string = json_string(valid);
    free(valid);
    return string;
}

void write_escaped(FILE *f, const char *text)
{
    for (int n; *text != '\0'; text += n > 0 ? n : 1) {
        n = character((const unsigned char *)text);
        if (n == 0)
            fprintf(f, "\\x%02x", (unsigned char)*text);
        else if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '"')
            fputs("&quot;", f);
        else if ((unsigned char)*text < ' ')
            fputc(' ', f);
        else
            (void)fwrite(text, 1, (size_t)n, f);
    }
}
