/* backend_name.c - see backend_name.h. */
#include <stdio.h>
#include <string.h>

#include "adjoint_ext.h"
#include "backend_name.h"
#include "cli/command.h"

enum { MAX = 256 };

static int backend_names(const char *to[MAX])
{
    int n = 0;
    for (; n < MAX && adj_backends[n] != NULL; n++)
        to[n] = adj_backends[n]->name;
    return n;
}

static int op_names(const char *to[MAX])
{
    int n = 0;
    for (; n < MAX && adj_ops[n] != NULL; n++)
        to[n] = adj_ops[n]->name;
    return n;
}

static int known(const char *what, const char *name, int n, const char *const names[],
                 char *message, size_t size)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return 1;
    const char *nearest = nearest_name(name, names, n, sizeof names[0]);
    snprintf(message, size, "--backend: unknown %s \"%.64s\" (did you mean %s?)", what, name,
             nearest != NULL ? nearest : names[0]);
    return 0;
}

int backend_is_known(const char *option, char *message, size_t size)
{
    const char *names[MAX] = {""};
    for (const char *part = option; part != NULL;) {
        char word[128];
        size_t length = strcspn(part, ",");
        snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : 127, part);
        char *equals = strchr(word, '=');
        if (equals != NULL)
            *equals = '\0';
        if (equals != NULL && !known("op", word, op_names(names), names, message, size))
            return 0;
        if (!known("backend", equals != NULL ? equals + 1 : word, backend_names(names), names,
                   message, size))
            return 0;
        part = part[length] == ',' ? part + length + 1 : NULL;
    }
    return 1;
}
