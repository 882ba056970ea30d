/* log.c - see log.h. */
#include "log.h"

int log_line(FILE *f, json_t *object)
{
    int failed = object == NULL;

    if (f != NULL && object != NULL)
        failed = json_dumpf(object, f, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0 ||
                 fputc('\n', f) == EOF || fflush(f) != 0;
    json_decref(object);
    return failed;
}
