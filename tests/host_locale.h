/* host_locale.h - the locale of a host program, made for the test: none needs to be installed. */
#ifndef TESTS_HOST_LOCALE_H
#define TESTS_HOST_LOCALE_H

#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sets "de_DE", "UTF-8" for the whole process; skips the test where localedef cannot make it. */
static inline void set_host_locale(const char *folder, const char *language, const char *charset)
{
    char command[512], name[64];
    snprintf(name, sizeof name, "%s.%s", language, charset);
    snprintf(command, sizeof command, "localedef -c -i %s -f %s '%s/%s' >'%s/localedef.log' 2>&1",
             language, charset, folder, name, folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    if (setlocale(LC_ALL, name) == NULL)
        cr_skip_test("localedef makes no %s here", name);
}

static inline void remove_host_locale(const char *folder)
{
    char command[256];
    setlocale(LC_ALL, "C");
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    (void)!system(command);
}

#endif
