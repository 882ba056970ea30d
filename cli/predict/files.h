/* files.h - image files named on a command line. */
#ifndef CLI_PREDICT_FILES_H
#define CLI_PREDICT_FILES_H

#include "adjoint.h"
#include "io/data/string_list.h"

typedef struct {
    string_list paths; /* to be freed */
    int64_t left_out;  /* number of files in folders without the name of an image */
} file_list;

/* Adds the path; of a folder, the images in it and below by name (io/data/image_name.h), in the
 * order of their bytes. A folder without images is a failure. Images too deep are left out. */
adj_status files_add(file_list *list, const char *path, adj_error *error);

#endif
