/* cache.h - where the tool keeps what it can find again: the kernels that were fastest here. */
#ifndef CLI_CACHE_H
#define CLI_CACHE_H

enum { CACHE_PATH = 4096 };
/* How long train and eval look for the fastest kernels, unless they are told otherwise. */
enum { DEFAULT_TUNE_SECONDS = 2 };

/* "$XDG_CACHE_HOME/adjoint/", else "~/.cache/adjoint/", whether it is there or not. NULL: the
 * environment names neither, or ADJOINT_TUNE, which comes first, names a file. */
const char *tune_cache(char path[CACHE_PATH]);
/* Does ADJOINT_TUNE say that nothing is timed unless it is asked for? */
int tuning_is_off(void);

#endif
