/* json.c - see json.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "json.h"
#include "standard.h"

static int out_of_memory, is_reported;

static void *allocate_watched(size_t size)
{
    void *memory = malloc(size);
    if (memory == NULL)
        out_of_memory = 1;
    return memory;
}

void json_watch_memory(void) { json_set_alloc_funcs(allocate_watched, free); }

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

json_t *json_words(const char *words)
{
    json_t *list = json_array();
    for (size_t n; *words != '\0'; words += n + strspn(words + n, ", ")) {
        n = strcspn(words, ", ");
        (void)json_array_append_new(list, json_stringn(words, n));
    }
    return list;
}

/* Prints a value on the line of its key: for an object "key value, ...", for a list its values. */
static void put_value(FILE *f, const json_t *v)
{
    const char *key = NULL, *between = "";
    json_t *member = NULL;
    json_object_foreach((json_t *)v, key, member)
    {
        fprintf(f, "%s%s ", between, key);
        put_value(f, member);
        between = ", ";
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (i > 0)
            fputs(", ", f);
        put_value(f, json_array_get(v, i));
    }
    if (json_is_string(v))
        put_text(f, "%s", json_string_value(v));
    else if (json_is_real(v))
        fprintf(f, "%.5g", json_real_value(v));
    else if (json_is_integer(v))
        fprintf(f, "%lld", (long long)json_integer_value(v));
    else if (json_is_boolean(v))
        fputs(json_is_true(v) ? "yes" : "no", f);
    else if (json_is_null(v))
        fputs("not known", f);
}

static void put_members(FILE *f, const json_t *j, int indent)
{
    const char *key = NULL;
    json_t *member = NULL;
    json_object_foreach((json_t *)j, key, member)
    {
        const json_t *first = json_is_array(member) ? json_array_get(member, 0) : NULL;
        fprintf(f, "%*s%s:", indent, "", key);
        if (!json_is_object(member) && !json_is_object(first)) {
            fputc(' ', f);
            put_value(f, member);
        }
        fputc('\n', f);
        if (json_is_object(member))
            put_members(f, member, indent + 2);
        for (size_t i = 0; json_is_object(first) && i < json_array_size(member); i++) {
            fprintf(f, "%*s", indent + 2, "");
            put_value(f, json_array_get(member, i));
            fputc('\n', f);
        }
    }
}

/* Prints once that memory was short. */
static int end(json_t *j, int failed)
{
    json_decref(j);
    if (out_of_memory && !is_reported)
        fputs("adjoint: out of memory\n", stderr);
    is_reported |= out_of_memory;
    return failed;
}

int json_print(json_t *j)
{
    const int failed = j == NULL || out_of_memory;
    if (!failed)
        put_members(stdout, j, 0);
    return end(j, failed || ferror(stdout));
}

int json_write(FILE *f, json_t *j, size_t flags, int failed)
{
    failed |= j == NULL || out_of_memory;
    char *text = failed ? NULL : json_dumps(j, flags | JSON_ENSURE_ASCII);
    failed |= text == NULL || out_of_memory || fputs(text, f) == EOF || fputc('\n', f) == EOF ||
              fflush(f) != 0;
    free(text);
    return end(j, failed);
}

static int write_page(FILE *f, const void *source)
{
    return json_write(f, json_incref((json_t *)source), JSON_PAGE, 0);
}

int json_report(const char *path, json_t *j)
{
    const output_file file = {"--json", path, OUTPUT_REPORT};
    const int status = write_only(&file, write_page, j);
    json_decref(j);
    return status;
}
