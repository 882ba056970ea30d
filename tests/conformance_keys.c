/* conformance_keys.c - the known keys of a case. A case with an unknown key must not pass, as that
 * key would not be tested. */
#include <stdio.h>
#include <string.h>

#include "conformance.h"

const json_t *case_read(conformance_case *c, const char *object, const char *key)
{
    if (c->n_read < CASE_READ)
        snprintf(c->read[c->n_read++], sizeof c->read[0], "%s.%s", object, key);
    return json_object_get(json_object_get(c->json, object), key);
}

static int is_listed(const char *const list[], const char *key)
{
    for (int i = 0; list[i] != NULL; i++)
        if (strcmp(list[i], key) == 0)
            return 1;
    return 0;
}

static int is_read(const conformance_case *c, const char *object, const char *key)
{
    char name[sizeof c->read[0]];
    snprintf(name, sizeof name, "%s.%s", object, key);
    for (int i = 0; i < c->n_read; i++)
        if (strcmp(c->read[i], name) == 0)
            return 1;
    return 0;
}

static void unknown(conformance_case *c, const char *object, const char *key)
{
    char name[100];
    snprintf(name, sizeof name, "%.40s%s%.50s", object, object[0] != '\0' ? "." : "", key);
    case_malformed(c, "unknown key", name);
}

static void check_tensor(conformance_case *c, const char *name, const json_t *tensor)
{
    static const char *const known[] = {"shape", "data", NULL};
    const char *key;
    const json_t *value;
    if (json_is_object(tensor))
        json_object_foreach((json_t *)tensor, key, value) if (!is_listed(known, key))
            unknown(c, name, key);
}

/* Checks that an object has the keys that the op used, and no others. */
static void check_object(conformance_case *c, const char *object)
{
    const char *key;
    const json_t *value;
    json_object_foreach(json_object_get(c->json, object), key, value)
    {
        if (!is_read(c, object, key))
            unknown(c, object, key);
        check_tensor(c, key, value);
    }
}

/* Objects by the names of inputs: a type or a gradient each. */
static void check_by_input(conformance_case *c, const char *object)
{
    const char *key;
    const json_t *value;
    json_object_foreach(json_object_get(c->json, object), key, value)
    {
        if (!is_read(c, "inputs", key) ||
            (json_is_object(value) &&
             !json_is_object(json_object_get(json_object_get(c->json, "inputs"), key))))
            unknown(c, object, key);
        check_tensor(c, key, value);
    }
}

static void check_scope(conformance_case *c)
{
    static const char *const known[] = {"kernel-limit", "cpu-only", "sensible", "quality", NULL};
    const json_t *scope = json_object_get(c->json, "scope");
    const char *word = json_string_value(scope);
    if (scope != NULL && (word == NULL || !is_listed(known, word)))
        case_malformed(c, "unknown scope", word != NULL ? word : "no word");
}

void case_check_keys(conformance_case *c)
{
    /* The second line is for people. gradient_of_op says what expected_grads shows. */
    static const char *const known[] = {"id",
                                        "op",
                                        "attrs",
                                        "inputs",
                                        "dtype",
                                        "dtypes",
                                        "rtol",
                                        "atol",
                                        "expected",
                                        "alt_expected",
                                        "expected_error",
                                        "alt_expected_error",
                                        "expected_grads",
                                        "gradient_of_op",
                                        "scope",
                                        "source",
                                        "expected_from",
                                        "note",
                                        "error_kind",
                                        "tf_status",
                                        "identity",
                                        NULL};
    const char *key, *second = c->second.expected;
    const json_t *value;
    json_object_foreach((json_t *)c->json, key, value)
    {
        if (!is_listed(known, key) && (second == NULL || strcmp(key, second) != 0))
            unknown(c, "", key);
        if (strstr(key, "expected") != NULL && strcmp(key, "expected_grads") != 0)
            check_tensor(c, key, value);
    }
    check_object(c, "inputs");
    check_object(c, "attrs");
    check_by_input(c, "dtypes");
    check_by_input(c, "expected_grads");
    check_scope(c);
    if (json_is_true(json_object_get(c->json, "gradient_of_op")) &&
        json_object_get(c->json, "expected_grads") == NULL)
        case_malformed(c, "gradient_of_op without", "expected_grads");
}
