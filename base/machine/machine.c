/* machine.c - the processor and its caches as the system describes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"

enum { PATH = 320, LINE = 8192 };
static const size_t max_cache = (size_t)1 << 40;

/* ---- files of one line ---- */

/* Reads the first line of a file below root, without its newline. Returns 0 if it cannot. */
static int read_line(char line[LINE], const char *root, const char *path)
{
    char whole[PATH];
    if (snprintf(whole, sizeof whole, "%s%s", root, path) >= (int)sizeof whole)
        return 0;
    FILE *f = fopen(whole, "re");
    if (f == NULL)
        return 0;
    char *text = fgets(line, LINE, f);
    fclose(f);
    if (text != NULL)
        text[strcspn(text, "\n")] = '\0';
    return text != NULL;
}

/* ---- the processor ---- */

/* Copies the value of the first line of /proc/cpuinfo that begins with the key. */
static int cpuinfo(const char *root, const char *key, size_t size, char *value)
{
    char path[PATH], line[LINE];
    int found = 0;
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    FILE *f = fopen(path, "re");
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        found = strncmp(line, key, strlen(key)) == 0 && colon != NULL;
        if (found) {
            colon += strspn(colon, ": \t");
            snprintf(value, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        }
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* Stores the words of the list that are instruction sets of kernels. */
static void keep_features(machine_facts *m, char *list)
{
    static const char known[] =
        " sse4_2 avx f16c fma avx2 avx_vnni avx512f avx512dq avx512bw avx512vl avx512_vnni "
        "avx512_bf16 avx512_fp16 amx_tile amx_int8 amx_bf16 "
        "asimd asimdhp fphp asimdfhm i8mm bf16 sve sve2 svebf16 sme ";
    char *next = NULL;
    size_t used = 0;
    for (char *word = strtok_r(list, " \t", &next); word != NULL;
         word = strtok_r(NULL, " \t", &next)) {
        char between[40];
        snprintf(between, sizeof between, " %.32s ", word);
        if (strstr(known, between) != NULL && used + strlen(word) + 2 < sizeof m->features)
            used += (size_t)snprintf(m->features + used, sizeof m->features - used, "%s%s",
                                     used > 0 ? " " : "", word);
    }
}

/* ---- caches ---- */

static int read_cache(machine_cache *c, const char *root, int i)
{
    static const char *const names[] = {"level", "type", "size"};
    enum { LEVEL, TYPE, SIZE, N };
    char value[N][LINE];
    for (int k = 0; k < N; k++) {
        char path[PATH];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, names[k]);
        if (!read_line(value[k], root, path))
            return 0;
    }
    char *unit;
    unsigned long long size = strtoull(value[SIZE], &unit, 10); /* "512K" */
    const int shift = *unit == 'K' ? 10 : *unit == 'M' ? 20 : 0;
    *c = (machine_cache){.level = (int)strtol(value[LEVEL], NULL, 10),
                         .bytes = size <= max_cache >> shift ? (size_t)size << shift : 0};
    snprintf(c->type, sizeof c->type, "%.15s", value[TYPE]);
    return 1;
}

const machine_cache *machine_data_cache(const machine_facts *m, int level)
{
    for (int i = 0; i < m->n_cache; i++)
        if (m->cache[i].level == level && m->cache[i].bytes > 0 &&
            strcmp(m->cache[i].type, "Instruction") != 0)
            return &m->cache[i];
    return NULL;
}

size_t machine_shared_cache(const machine_facts *m)
{
    const machine_cache *c = machine_data_cache(m, 4);
    if (c == NULL)
        c = machine_data_cache(m, 3);
    return c != NULL ? c->bytes : 0;
}

machine_facts machine_look(const char *root)
{
    machine_facts m = {.name = "unknown processor"};
    char list[LINE];
    (void)cpuinfo(root, "model name", sizeof m.name, m.name);
    if (cpuinfo(root, "flags", sizeof list, list) ||  /* the key on x86 */
        cpuinfo(root, "Features", sizeof list, list)) /* on 64-bit ARM */
        keep_features(&m, list);
    while (m.n_cache < MACHINE_CACHES && read_cache(&m.cache[m.n_cache], root, m.n_cache))
        m.n_cache++;
    return m;
}
