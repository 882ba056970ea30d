/* cache.h - folder of the tune file, which can be deleted and made again. */
#ifndef CLI_CACHE_H
#define CLI_CACHE_H

enum { CACHE_PATH = 4096 };
/* Default time limit of tuning in train and eval, in seconds. */
enum { DEFAULT_TUNE_SECONDS = 2 };

/* Returns "$XDG_CACHE_HOME/adjoint/", else "~/.cache/adjoint/", whether it exists or not. Returns
 * NULL if the environment has neither, or if ADJOINT_TUNE, which has precedence, names a file. */
const char *tune_cache(char path[CACHE_PATH]);
/* True if ADJOINT_TUNE turns tuning off by default. */
int tuning_is_off(void);

#endif
