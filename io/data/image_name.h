/* image_name.h - which names in a folder are those of folders and of images: the same for data sets
 * and for the tool's lists of files. */
#ifndef IO_DATA_IMAGE_NAME_H
#define IO_DATA_IMAGE_NAME_H

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* Also a link to one. */
static inline int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Whether the name ends as those of PNG and JPEG files do. */
static inline int is_image_name(const char *name)
{
    const char *end = strrchr(name, '.');
    return end != NULL && (strcasecmp(end, ".png") == 0 || strcasecmp(end, ".jpg") == 0 ||
                           strcasecmp(end, ".jpeg") == 0);
}

#endif
