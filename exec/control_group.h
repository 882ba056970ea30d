/* control_group.h - the control groups (v2) that this process is in, as Linux tells them. */
#ifndef ADJ_CONTROL_GROUP_H
#define ADJ_CONTROL_GROUP_H

/* Calls visit with the folder of each, the innermost first. None where they are not told. root: "",
 * or for tests a folder with a proc and a sys. */
void control_groups_visit(const char *root, void (*visit)(void *user, const char *folder),
                          void *user);

enum { CONTROL_GROUP_PATH = 4352 }; /* bytes of a folder's name */

#endif
