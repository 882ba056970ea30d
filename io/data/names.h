/* names.h - the names by which a data set's files and folders are images, splits or neither. Data
 * sets of folders and the tool's lists of files and options use no other rules. */
#ifndef IO_DATA_NAMES_H
#define IO_DATA_NAMES_H

#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "adjoint_data.h"
#include "base/c_locale.h"

/* The endings that is_image_name accepts, for messages. */
#define IMAGE_ENDINGS ".png, .jpg, .jpeg, .jpe, .jfif or .webp"

/* True if path is a folder or a link to one. */
static inline int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* True if name is hidden or written by an operating system beside the user's files, such as the
 * ._photo.png and __MACOSX of a macOS archive: neither an image nor a class. */
static inline int is_ignored_name(const char *name)
{
    static const char *const names[] = {"__MACOSX", "Thumbs.db", "desktop.ini"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (c_strcasecmp(name, names[i]) == 0)
            return 1;
    return name[0] == '.';
}

/* True if name ends as image files do, in any case, and is not ignored. */
static inline int is_image_name(const char *name)
{
    static const char *const endings[] = {".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp"};
    const char *end = strrchr(name, '.');
    if (end == NULL || is_ignored_name(name))
        return 0;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (c_strcasecmp(end, endings[i]) == 0)
            return 1;
    return 0;
}

/* Names of splits, in order of precedence if folders of several names exist. */
static const struct {
    adj_dataset_part part;
    const char *name;
} part_names[] = {
    {ADJ_TRAIN, "train"},           {ADJ_TRAIN, "training"}, {ADJ_TEST, "test"},
    {ADJ_TEST, "testing"},          {ADJ_VALIDATION, "val"}, {ADJ_VALIDATION, "valid"},
    {ADJ_VALIDATION, "validation"},
};
enum { PART_NAMES = sizeof part_names / sizeof part_names[0] };

#endif
