/* utf8.c - see utf8.h. */
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

int utf8_character(const char *text, uint32_t *code)
{
    static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000}; /* else a shorter form is due */
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

json_t *json_text(const char *text)
{
    if (text == NULL)
        return json_null();
    char *valid = malloc(4 * strlen(text) + 1), *to = valid;
    if (valid == NULL)
        return NULL;
    uint32_t code;
    for (int n; *text != '\0'; text += n > 0 ? n : 1) {
        n = utf8_character(text, &code);
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

/* DEL, C1, and what is no character in XML. */
static int is_odd(uint32_t code)
{
    return (code >= 0x7f && code <= 0x9f) || code == 0xfffe || code == 0xffff;
}

void write_escaped(FILE *f, const char *text)
{
    uint32_t code;
    for (int n; *text != '\0'; text += n > 0 ? n : 1) {
        n = utf8_character(text, &code);
        if (n == 0 || is_odd(code))
            for (int k = 0; k < (n > 0 ? n : 1); k++)
                fprintf(f, "\\x%02x", (unsigned char)text[k]);
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
