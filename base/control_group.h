/* control_group.h - the control groups of this process, as Linux's /proc and /sys list them. */
#ifndef ADJ_CONTROL_GROUP_H
#define ADJ_CONTROL_GROUP_H

/* Calls visit with the folder of each group, the innermost first; never where no group is
 * listed. controller: "" for version 2; "cpu" or "memory" for that controller of version 1,
 * whose groups are below sys/fs/cgroup/cpu. A container may see only the outermost folder of the
 * path, which holds its limits. root: "", or in tests a folder with a proc and a sys. */
void control_groups_visit(const char *root, const char *controller,
                          void (*visit)(void *user, const char *folder), void *user);

enum { CONTROL_GROUP_PATH = 4352 }; /* bytes of a folder's path */

#endif
