/* cache.c - see cache.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"

/* The first word of a file of the i-th cache's folder. */
static int read_word(int i, const char *name, char word[16])
{
    char path[96];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return 0;
    int n = fscanf(f, "%15s", word);
    fclose(f);
    return n == 1;
}

int cpu_cache_at(int i, cpu_cache *c)
{
    char level[16], size[16]; /* "512K" */
    if (!read_word(i, "level", level) || !read_word(i, "type", c->type) ||
        !read_word(i, "size", size))
        return 0;
    c->level = (int)strtol(level, NULL, 10);
    c->bytes = (size_t)strtoull(size, NULL, 10) << 10;
    return 1;
}
