/* wanted_impl.h - what both checkers say where an implementation was asked for by name. */
#ifndef ADJ_CHECK_WANTED_IMPL_H
#define ADJ_CHECK_WANTED_IMPL_H

#include <stddef.h>

/* Does the implementation's name contain what is wanted? NULL and "": anything will do. */
int is_wanted_impl(const char *implementation, const char *wanted);

/* Room for the sentence of say_other_impl. */
enum { OTHER_IMPL = 200 };
/* That none has the name, and what ran instead; "": nothing did. */
void say_other_impl(char text[OTHER_IMPL], const char *wanted, const char *backend,
                    const char *implementation);

#endif
