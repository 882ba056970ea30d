/* json.c - see json.h. */
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "graph/printable.h"
#include "json.h"

/* Returns the largest number of bytes between two quotes: no string or number is longer. */
static size_t longest_token(const char *text, size_t n)
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < n; i++) {
        run = text[i] == '"' ? 0 : run + 1;
        if (text[i] == '\\' && i + 1 < n) { /* the escaped character ends nothing */
            i++;
            run++;
        }
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* jansson silently drops bytes of a token if its buffer cannot grow. So the text is read as
 * ["-----", TEXT]: the first string, whose length is checked, makes the buffer large enough for all
 * others. */
json_t *io_json_read(const char *text, size_t n, size_t flags, json_error_t *error)
{
    const size_t first = longest_token(text, n) + 8, before = first + 4;
    char *all = malloc(before + n + 1);
    json_t *list = NULL, *value = NULL;

    *error = (json_error_t){.text = "out of memory"};
    if (all == NULL)
        return NULL;
    memset(all, '-', before);
    all[0] = '[';
    all[1] = all[before - 2] = '"';
    all[before - 1] = ',';
    memcpy(all + before, text, n);
    all[before + n] = ']';
    const locale_t locale = c_locale_begin();
    list = json_loadb(all, before + n + 1, flags, error);
    c_locale_end(locale);
    free(all);
    error->position -= error->position > (int)before ? (int)before : error->position;
    if (json_string_length(json_array_get(list, 0)) == first && json_array_size(list) == 2)
        value = json_incref(json_array_get(list, 1));
    else if (list != NULL)
        snprintf(error->text, sizeof error->text, "is not one value");
    json_decref(list);
    return value;
}

char *io_json_text(const json_t *value, size_t flags)
{
    const locale_t locale = c_locale_begin();
    char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
    c_locale_end(locale);
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
