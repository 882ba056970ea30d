/* environment.h - settings in the environment: the folder of the tune file; how OpenMP's threads
 * wait.
 */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

enum { CACHE_PATH = 4096 };
/* Default time limit of tuning in train and eval, in seconds. */
enum { DEFAULT_TUNE_SECONDS = 2 };

/* Returns "$XDG_CACHE_HOME/adjoint/", else "~/.cache/adjoint/", whether it exists or not. Returns
 * NULL if the environment has neither, or if ADJOINT_TUNE, which has precedence, names a file. */
const char *tune_cache(char path[CACHE_PATH]);
/* True if ADJOINT_TUNE turns tuning off by default. */
int tuning_is_off(void);

/* Starts the tool again with a short spin, as libgomp reads the setting before main, unless the
 * environment already sets how threads wait. Returns if that is unnecessary or fails. */
void spin_shortly(char **argv);
/* Returns the setting, such as "GOMP_SPINCOUNT=10000", or NULL for libgomp's default. */
const char *spin_setting(char *text, int size);

#endif
