/* control_group.c - finds the folders of this process's control groups; see limits.h. */
#include <stdio.h>
#include <string.h>

#include "limits.h"

enum { LINE = 4096 };

/* True if the comma-separated list, such as "cpu,cpuacct", names the controller. The list of
 * version 2 is empty and matches "". */
static int has_controller(const char *list, const char *controller)
{
    const size_t n = strlen(controller);
    for (;; list++) {
        const size_t length = strcspn(list, ",");
        if (length == n && strncmp(list, controller, n) == 0)
            return 1;
        list += length;
        if (*list == '\0')
            return 0;
    }
}

/* Returns the path "/a/b" of a line "4:cpu,cpuacct:/a/b", or NULL if the line is of another
 * hierarchy. */
static char *path_in(char *line, const char *controller)
{
    char *list = strchr(line, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;
    if (path == NULL || path[1] != '/')
        return NULL;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    return has_controller(list + 1, controller) ? path : NULL;
}

/* Returns the path of the process's group below the mount point, stored in line, or NULL if
 * there is none. */
static const char *find_group(const char *root, const char *controller, char line[LINE])
{
    char file[CONTROL_GROUP_PATH];
    const char *path = NULL;
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *f = fopen(file, "re");
    while (f != NULL && path == NULL && fgets(line, LINE, f) != NULL)
        path = path_in(line, controller);
    if (f != NULL)
        fclose(f);
    return path;
}

void control_groups_visit(const char *root, const char *controller,
                          void (*visit)(void *user, const char *folder), void *user)
{
    char line[LINE], folder[CONTROL_GROUP_PATH];
    const char *path = find_group(root, controller, line);
    if (path == NULL)
        return;
    int top = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s%s", root,
                       *controller != '\0' ? "/" : "", controller);
    if (top < 0 || (size_t)top + strlen(path) >= sizeof folder)
        return;
    memcpy(folder + top, path, strlen(path) + 1);
    for (char *end; (end = strrchr(folder + top, '/')) != NULL; *end = '\0')
        visit(user, folder);
    visit(user, folder);
}
