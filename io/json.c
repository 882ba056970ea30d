/* json.c - see json.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/printable.h"
#include "json.h"

/* jansson silently drops bytes of a token if its buffer cannot grow, and reads on behind a string
 * whose closing quote is dropped. So the text is read as [10...0e-N, TEXT]: that number is 1 and
 * makes the buffer large enough for all tokens, or loses zeros and is not 1. The buffer doubles
 * from 16 bytes: with a power of two of zeros it does not grow for a byte of the exponent. */
json_t *io_json_read(const char *text, size_t n, size_t flags, json_error_t *error)
{
    char exponent[24];
    size_t zeros = 16;
    while (zeros < n)
        zeros *= 2;
    const size_t bytes = (size_t)snprintf(exponent, sizeof exponent, "e-%zu,", zeros);
    const size_t first = 2 + zeros + bytes; /* bytes before TEXT */
    char *all = malloc(first + n + 1);
    json_t *value = NULL;

    *error = (json_error_t){.text = "out of memory"};
    if (all == NULL)
        return NULL;
    memset(all, '0', 2 + zeros);
    all[0] = '[';
    all[1] = '1';
    memcpy(all + 2 + zeros, exponent, bytes);
    memcpy(all + first, text, n);
    all[first + n] = ']';
    const locale_t locale = c_locale_begin();
    json_t *list = json_loadb(all, first + n + 1, flags, error);
    c_locale_end(locale);
    free(all);
    const int before = (int)first;
    error->position -= error->position > before ? before : error->position;
    if (json_array_size(list) == 2 && json_real_value(json_array_get(list, 0)) == 1)
        value = json_incref(json_array_get(list, 1));
    else if (list != NULL)
        snprintf(error->text, sizeof error->text, "is not one value");
    json_decref(list);
    return value;
}

/* json_dumps ignores that a key cannot be written for lack of memory: the text is written to a
 * buffer of its size. */
char *io_json_text(const json_t *value, size_t flags)
{
    const locale_t locale = c_locale_begin();
    const size_t n = json_dumpb(value, NULL, 0, flags | JSON_ENCODE_ANY);
    char *text = n > 0 ? malloc(n + 1) : NULL;
    const int failed = text == NULL || json_dumpb(value, text, n, flags | JSON_ENCODE_ANY) != n;
    c_locale_end(locale);
    if (failed) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

int io_is_utf8(const char *text)
{
    uint32_t code;
    for (int n; *text != '\0'; text += n)
        if ((n = utf8_character(text, &code)) == 0)
            return 0;
    return 1;
}
