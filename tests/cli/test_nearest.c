/* test_nearest.c - suggestions for misspelled names. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/command.h"

Test(nearest, names)
{
    static const char *const names[] = {"train", "eval", "models"};
    static const struct {
        const char *name, *nearest;
    } cases[] = {{"train", "train"}, {"trian", "train"},  {"rain", "train"},
                 {"evil", "eval"},   {"model", "models"}, {"", NULL},
                 {"xyzzy", NULL},    {"t", NULL},         {"mdoels", "models"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = nearest_name(cases[i].name, names, 3, sizeof names[0]);
        cr_expect(got == cases[i].nearest || (got != NULL && cases[i].nearest != NULL &&
                                              strcmp(got, cases[i].nearest) == 0),
                  "%s: %s", cases[i].name, got != NULL ? got : "none");
    }
    char endless[10001];
    memset(endless, 'x', 10000);
    endless[10000] = '\0';
    cr_expect_null(nearest_name(endless, names, 3, sizeof names[0]));
}
