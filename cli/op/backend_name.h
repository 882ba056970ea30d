/* backend_name.h - is "onednn,max_pool=naive" a choice of backends? */
#ifndef CLI_BACKEND_NAME_H
#define CLI_BACKEND_NAME_H

#include <stddef.h>

/* 0, and a sentence that names the nearest backend or op that exists. */
int backend_is_known(const char *option, char *message, size_t size);

#endif
