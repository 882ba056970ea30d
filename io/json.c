/* json.c - see json.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/printable.h"
#include "json.h"

/* True if jansson's buffer, whose size doubles from 16, grows for one of a token's bytes from ..
 * to-1.
 */
static int grows_within(size_t from, size_t to)
{
    size_t last = 15;
    while (last < from)
        last = 2 * last + 1;
    return last < to;
}

/* Returns a number of at least n bytes whose value is 1, "10...0e-N", with a comma, to be freed, or
 * NULL. The buffer does not grow for a byte of its exponent. */
static char *long_one(size_t n, size_t room, size_t *length)
{
    char exponent[24];
    size_t zeros = n < 16 ? 16 : n, bytes;
    do {
        bytes = (size_t)snprintf(exponent, sizeof exponent, "e-%zu", ++zeros);
    } while (grows_within(zeros + 1, zeros + 1 + bytes));
    *length = zeros + bytes + 2;
    char *text = malloc(*length + room);
    if (text == NULL)
        return NULL;
    text[0] = '1';
    memset(text + 1, '0', zeros);
    memcpy(text + 1 + zeros, exponent, bytes);
    text[*length - 1] = ',';
    return text;
}

/* jansson silently drops bytes of a token if its buffer cannot grow, and reads on behind a string
 * whose closing quote is dropped. So the text is read as [10...0e-N, TEXT]: that number makes the
 * buffer large enough for all tokens, or loses zeros or its exponent, and is not 1. */
json_t *io_json_read(const char *text, size_t n, size_t flags, json_error_t *error)
{
    size_t first;
    char *all = long_one(n, n + 2, &first);
    json_t *list = NULL, *value = NULL;

    *error = (json_error_t){.text = "out of memory"};
    if (all == NULL)
        return NULL;
    memmove(all + 1, all, first);
    all[0] = '[';
    memcpy(all + 1 + first, text, n);
    all[1 + first + n] = ']';
    const locale_t locale = c_locale_begin();
    list = json_loadb(all, first + n + 2, flags, error);
    c_locale_end(locale);
    free(all);
    const int before = (int)first + 1;
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
