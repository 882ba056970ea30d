/* host_locale.c - preloaded by tests/run.sh (TEST_LOCALE): sets a locale in test programs, as a
 * host program would. The tool sets no locale and is left alone. */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((constructor)) static void set_locale(void)
{
    const char *name = getenv("TEST_LOCALE");
    if (name == NULL || strncmp(program_invocation_short_name, "test_", 5) != 0)
        return;
    if (setlocale(LC_ALL, name) == NULL) {
        fprintf(stderr, "host_locale: there is no locale %s\n", name);
        abort();
    }
}
