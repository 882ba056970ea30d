/* json.c - see json.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "json.h"

static int out_of_memory, is_reported;

static void *allocate(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL)
        out_of_memory = 1;
    return memory;
}

void json_watch_memory(void) { json_set_alloc_funcs(allocate, free); }

int json_is_out_of_memory(void) { return out_of_memory; }

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

json_t *json_number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

json_t *json_sizes(int64_t n, const int64_t size[])
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_integer(size[i]));
    return list;
}

int json_write(FILE *f, json_t *j, size_t flags, int failed)
{
    failed |= j == NULL || out_of_memory;
    char *text = failed ? NULL : json_dumps(j, flags | JSON_ENSURE_ASCII);
    failed |= text == NULL || out_of_memory || fputs(text, f) == EOF || fputc('\n', f) == EOF ||
              fflush(f) != 0;
    free(text);
    json_decref(j);
    if (out_of_memory && !is_reported)
        fputs("adjoint: out of memory\n", stderr);
    is_reported |= out_of_memory;
    return failed;
}
