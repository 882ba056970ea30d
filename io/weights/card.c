/* card.c - a model card as strings: numbers as JSON has them, lists as JSON arrays. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "io/json.h"
#include "io/tensors/formats.h"
#include "weights.h"

enum { MAX_SIDE = 32768, MAX_CLASSES = 100000 };

static const char *const formats[] = {[ADJ_NHWC] = "NHWC", [ADJ_NCHW] = "NCHW", NULL};
static const char *const precisions[] = {[ADJ_PRECISION_AS_BUILT] = "f32",
                                         [ADJ_PRECISION_BF16] = "bf16",
                                         [ADJ_PRECISION_F16] = "f16",
                                         NULL};
static const char *const maths[] = {[ADJ_MATH_EXACT] = "exact", [ADJ_MATH_FAST] = "fast", NULL};
static const char *const resizes[] = {"auto", "error", NULL};
static const char *const inputs[] = {"pixels", "normalized", NULL};

/* ---- writing ---- */

static json_t *list_of(const double *v, int64_t n)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < n; i++)
        if (json_array_append_new(list, json_real(v[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* Fails if a name is not UTF-8. */
static adj_status check_strings(const adj_model_card *c, adj_error *error)
{
    if (c->model != NULL && !io_is_utf8(c->model))
        return adj_error_set(error, ADJ_EARG,
                             "model card: the model's name is not UTF-8 (got %.80s)", c->model);
    for (int64_t i = 0; c->class_names != NULL && i < c->options.classes; i++)
        if (c->class_names[i] == NULL || !io_is_utf8(c->class_names[i]))
            return adj_error_set(error, ADJ_EARG,
                                 "model card: the name of class %lld is not UTF-8 (got "
                                 "%.80s; rename the class or its folder)",
                                 (long long)i,
                                 c->class_names[i] != NULL ? c->class_names[i] : "NULL");
    return ADJ_OK;
}

static json_t *names_of(const adj_model_card *c)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < c->options.classes; i++)
        if (json_array_append_new(list, json_string(c->class_names[i])) != 0) {
            json_decref(list);
            return NULL; /* it is no UTF-8 */
        }
    return list;
}

/* Entries that are being written, a key and a value one after the other, each with its final 0. */
typedef struct {
    FILE *f;
    int n;
} writer;

/* Writes an entry and releases the value. Returns 0 if the value is NULL or memory is short. */
static int put(writer *w, const char *key, json_t *value)
{
    char *text = json_is_string(value) ? strdup(json_string_value(value))
                                       : io_json_text(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    const int ok = text != NULL && fprintf(w->f, "%s%c%s%c", key, 0, text, 0) > 0;
    w->n++;
    free(text);
    json_decref(value);
    return ok;
}

/* Writes the known fields of the card. Returns 0 if a value cannot be created. */
static int put_all(const adj_model_card *c, writer *w)
{
    int ok = put(w, "adjoint.version", json_string(adj_version_text()));
    if (c->model != NULL)
        ok &= put(w, "model", json_string(c->model));
    if (c->options.multiplier != 0)
        ok &= put(w, "multiplier", json_real(c->options.multiplier));
    if (c->options.size.h > 0)
        ok &= put(w, "input",
                  json_pack("[I,I,I]", (json_int_t)c->options.size.h, (json_int_t)c->options.size.w,
                            (json_int_t)c->options.size.c));
    ok &= put(w, "format", json_string(formats[c->options.format == ADJ_NCHW]));
    if (c->deviation[0] != 0 && c->options.size.c <= ADJ_CARD_CHANNELS) {
        ok &= put(w, "mean", list_of(c->mean, c->options.size.c));
        ok &= put(w, "deviation", list_of(c->deviation, c->options.size.c));
    }
    if (c->normalized)
        ok &= put(w, "adjoint.input", json_string(inputs[1]));
    if (c->low < 0 || c->high > 0)
        ok &= put(w, "adjoint.range", list_of((const double[]){c->low, c->high}, 2));
    if (c->options.classes > 0)
        ok &= put(w, "classes", json_integer(c->options.classes));
    if (c->class_names != NULL)
        ok &= put(w, "class_names", names_of(c));
    if (c->resize != NULL)
        ok &= put(w, "resize", json_string(c->resize));
    if ((int)c->precision >= 0 && c->precision <= ADJ_PRECISION_F16)
        ok &= put(w, "precision", json_string(precisions[c->precision]));
    if (c->math == ADJ_MATH_FAST)
        ok &= put(w, "math", json_string(maths[ADJ_MATH_FAST]));
    if (c->accuracy > 0)
        ok &= put(w, "accuracy", json_real(c->accuracy));
    return ok & put(w, "seed", json_integer(c->seed));
}

int is_card_key(const char *key)
{
    static const char *const keys[] = {
        "adjoint.version", "model",   "multiplier",  "input",  "format",    "mean", "deviation",
        "adjoint.input",   "classes", "class_names", "resize", "precision", "math", "adjoint.range",
        "accuracy",        "seed"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i], key) == 0)
            return 1;
    return 0;
}

/* Returns the entries and their strings in one memory block, or NULL if memory is short. */
static adj_metadata *pack(int n, const char *text, size_t bytes)
{
    adj_metadata *list = malloc((size_t)n * sizeof *list + bytes);
    if (list == NULL)
        return NULL;
    char *at = memcpy(list + n, text, bytes);
    for (int i = 0; i < n; i++) {
        list[i] = (adj_metadata){at, at + strlen(at) + 1};
        at += strlen(list[i].key) + strlen(list[i].value) + 2;
    }
    return list;
}

adj_status adj_model_card_write(const adj_model_card *card, adj_metadata **metadata, int *n,
                                adj_error *error)
{
    if (card == NULL || metadata == NULL || n == NULL)
        return adj_error_set(error, ADJ_EARG, "model card: expected a card and room for a list");
    *metadata = NULL;
    *n = 0;
    if (check_strings(card, error) != ADJ_OK)
        return ADJ_EARG;
    char *text = NULL;
    size_t bytes = 0;
    writer w = {.f = open_memstream(&text, &bytes)};
    const int is_put = w.f != NULL && put_all(card, &w);
    const int is_whole = w.f != NULL && fclose(w.f) == 0;
    adj_status status = ADJ_OK;
    if (is_whole && !is_put)
        status = adj_error_set(error, ADJ_EARG,
                               "model card: a number is not finite, the resize rule is not UTF-8, "
                               "or there is no memory");
    else if (!is_whole || (*metadata = pack(w.n, text, bytes)) == NULL)
        status = adj_error_set(error, ADJ_ENOMEM, "model card: out of memory");
    else
        *n = w.n;
    free(text);
    return status;
}

/* ---- reading ---- */

/* A card that is being read from a file. After a failure nothing more is read. */
typedef struct {
    int n;
    const adj_metadata *entry; /* n of them */
    adj_model_card card;
    json_t *names; /* NULL: none */
    adj_status status;
    adj_error *error;
} reading;

static const char *text_at(const reading *r, const char *key)
{
    return metadata_value(r->n, r->entry, key);
}

static void fail(reading *r, const char *key, const char *expected)
{
    r->status = adj_error_set(r->error, ADJ_EIO, "entry %s is invalid (got %.80s, expected %s)",
                              key, text_at(r, key), expected);
}

/* Returns the value of a key, or NULL if it is missing or not JSON, or after a failure. */
static json_t *parse(reading *r, const char *key)
{
    const char *text = r->status == ADJ_OK ? text_at(r, key) : NULL;
    json_error_t why;
    json_t *value = text != NULL ? io_json_read(text, strlen(text), 0, &why) : NULL;

    if (text != NULL && value == NULL)
        fail(r, key, "a number or a list");
    return value;
}

static void read_integer(reading *r, const char *key, int64_t low, int64_t high, int64_t *to)
{
    char expected[80];
    json_t *value = parse(r, key);
    const int64_t v = json_integer_value(value);

    snprintf(expected, sizeof expected, "a whole number, %lld to %lld", (long long)low,
             (long long)high);
    if (value != NULL && json_is_integer(value) && v >= low && v <= high)
        *to = v;
    else if (value != NULL)
        fail(r, key, expected);
    json_decref(value);
}

static void read_real(reading *r, const char *key, double low, double high, double *to)
{
    char expected[80];
    json_t *value = parse(r, key);
    const double v = json_number_value(value);

    c_snprintf(expected, sizeof expected, "a number, %g to %g", low, high);
    if (value != NULL && json_is_number(value) && v >= low && v <= high)
        *to = v;
    else if (value != NULL)
        fail(r, key, expected);
    json_decref(value);
}

/* Reads a list of exactly n numbers. */
static void read_list(reading *r, const char *key, int64_t n, double low, double high, double *to)
{
    json_t *list = parse(r, key);
    int ok = list == NULL || (json_is_array(list) && (int64_t)json_array_size(list) == n);

    for (int64_t i = 0; i < n && ok && list != NULL; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        to[i] = json_number_value(value);
        ok = json_is_number(value) && to[i] >= low && to[i] <= high;
    }
    json_decref(list);
    if (!ok)
        fail(r, key, "a list of numbers, one for each channel or size");
}

/* Returns the index of a key's value among the words; 0 if there is none. */
static int read_word(reading *r, const char *key, const char *const words[], const char *expected)
{
    const char *text = r->status == ADJ_OK ? text_at(r, key) : NULL;

    for (int i = 0; text != NULL && words[i] != NULL; i++)
        if (strcmp(words[i], text) == 0)
            return i;
    if (text != NULL)
        fail(r, key, expected);
    return 0;
}

/* Reads height, width and channels; checkpoints of version 0.2.0 have an entry for each. */
static adj_image_size read_size(reading *r)
{
    static const char *const keys[3] = {"height", "width", "channels"};
    const int is_old = text_at(r, "checkpoint") != NULL && text_at(r, "input") == NULL;
    double list[3] = {0};
    int64_t size[3];

    read_list(r, "input", 3, 1, MAX_SIDE, list);
    for (int i = 0; i < 3; i++) {
        if (list[i] != floor(list[i]) && r->status == ADJ_OK)
            fail(r, "input", "height, width and channels");
        size[i] = (int64_t)list[i];
        if (is_old)
            read_integer(r, keys[i], 1, MAX_SIDE, &size[i]);
    }
    return (adj_image_size){size[0], size[1], size[2]};
}

static void read_classes(reading *r)
{
    int64_t *n = &r->card.options.classes;

    read_integer(r, "classes", 1, MAX_CLASSES, n);
    r->names = parse(r, "class_names");
    int ok =
        r->names == NULL || (json_is_array(r->names) && (int64_t)json_array_size(r->names) == *n);
    for (int64_t i = 0; r->names != NULL && i < *n && ok; i++)
        ok = json_is_string(json_array_get(r->names, (size_t)i));
    if (!ok)
        fail(r, "class_names", "a list of names, one for each class");
}

static void read_all(reading *r)
{
    adj_model_card *c = &r->card;
    double range[2] = {0};

    c->model = text_at(r, "model");
    c->resize = text_at(r, "resize");
    const int is_ours = text_at(r, "adjoint.version") != NULL;
    const adj_image_size size = c->options.size = read_size(r);
    if (size.c >= 1 && size.c <= ADJ_CARD_CHANNELS) {
        read_list(r, "mean", size.c, -1e9, 1e9, c->mean);
        read_list(r, "deviation", size.c, 1e-9, 1e9, c->deviation);
    }
    read_classes(r);
    read_real(r, "multiplier", 1e-3, 8, &c->options.multiplier);
    read_real(r, "accuracy", 0, 100, &c->accuracy);
    read_integer(r, "seed", 0, INT64_MAX, &c->seed);
    if (is_ours) { /* others say there whose file it is: "pt" */
        c->options.format = (adj_format)read_word(r, "format", formats, "NHWC or NCHW");
        (void)read_word(r, "resize", resizes, "auto or error");
    }
    c->normalized = read_word(r, "adjoint.input", inputs, "pixels or normalized");
    read_list(r, "adjoint.range", 2, -255, 255, range);
    c->low = range[0];
    c->high = range[1];
    c->precision = (adj_precision)read_word(r, "precision", precisions, "f32, bf16 or f16");
    c->math = (adj_math)read_word(r, "math", maths, "exact or fast");
}

/* Packs the card, its list of names and the names into one memory block. */
static adj_model_card *keep(const reading *r)
{
    int64_t n = r->names != NULL ? r->card.options.classes : 0;
    size_t bytes = sizeof r->card + (size_t)n * sizeof(char *);

    for (int64_t i = 0; i < n; i++)
        bytes += json_string_length(json_array_get(r->names, (size_t)i)) + 1;
    adj_model_card *c = malloc(bytes);
    if (c == NULL)
        return NULL;
    *c = r->card;
    const char **list = (const char **)(c + 1);
    char *at = (char *)(list + n);
    for (int64_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(r->names, (size_t)i));
        size_t length = strlen(name) + 1;
        list[i] = memcpy(at, name, length);
        at += length;
    }
    c->class_names = n > 0 ? list : NULL;
    return c;
}

adj_status adj_model_card_from_metadata(int n, const adj_metadata metadata[], adj_model_card **card,
                                        adj_error *error)
{
    reading r = {.n = n, .entry = metadata, .error = error};

    if (card == NULL)
        return adj_error_set(error, ADJ_EARG, "model card: expected room for it");
    *card = NULL;
    if (n > 0 && metadata == NULL)
        return adj_error_set(error, ADJ_EARG, "model card: metadata is NULL (got n %d)", n);
    read_all(&r);
    if (r.status == ADJ_OK && (*card = keep(&r)) == NULL)
        r.status = adj_error_set(error, ADJ_ENOMEM, "model card: out of memory");
    json_decref(r.names);
    return r.status;
}

adj_status adj_model_card_read(const adj_tensors *t, adj_model_card **card, adj_error *error)
{
    return adj_model_card_from_metadata(t != NULL ? t->n_metadata : 0,
                                        t != NULL ? t->metadata : NULL, card, error);
}

/* ---- comparing ---- */

adj_status adj_model_card_check(const adj_model_card *card, int64_t channels, int64_t classes,
                                const char *const *class_names, adj_error *error)
{
    const int converts =
        (channels == 1 || channels == 3 || channels == 4) && card->options.size.c != 2;
    if (card->options.size.c > 0 && card->options.size.c != channels && !converts)
        return adj_error_set(error, ADJ_ESHAPE,
                             "its model takes images of %lld channel%s (the data have %lld)",
                             (long long)card->options.size.c, card->options.size.c > 1 ? "s" : "",
                             (long long)channels);
    if (card->options.classes > 0 && card->options.classes != classes)
        return adj_error_set(error, ADJ_ESHAPE, "its model has %lld classes (the data have %lld)",
                             (long long)card->options.classes, (long long)classes);
    for (int64_t i = 0;
         card->class_names != NULL && class_names != NULL && i < card->options.classes; i++)
        if (strcmp(card->class_names[i], class_names[i]) != 0)
            return adj_error_set(error, ADJ_ESHAPE,
                                 "class %lld of its model is %.80s (in the data %.80s)",
                                 (long long)i, card->class_names[i], class_names[i]);
    return ADJ_OK;
}
