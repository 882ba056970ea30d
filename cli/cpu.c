/* cpu.c - see cpu.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu.h"

const char *cpu_name(char name[CPU_NAME])
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");

    snprintf(name, CPU_NAME, "unknown processor");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *value = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || value == NULL)
            continue;
        value += strspn(value, ": ");
        snprintf(name, CPU_NAME, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (f != NULL)
        fclose(f);
    return name;
}

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
