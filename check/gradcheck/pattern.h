/* pattern.h - along which axes the wrong elements of a gradient lie: from pattern.c to likeness.c.
 */
#ifndef ADJ_GRADCHECK_PATTERN_H
#define ADJ_GRADCHECK_PATTERN_H

#include "gradcheck.h"

typedef enum { ALL, ONE, FIRST, LAST, RUN, ENDS, STEP, SCATTERED } spread;

typedef struct {
    spread kind;
    char name; /* 'h' */
    int64_t dim, n, first, last, step;
    const char *seen; /* by index: is a wrong element there? */
} along;

static inline int64_t index_at(adj_shape shape, int64_t element, int axis)
{
    for (int64_t a = shape.rank - 1; a > axis; a--)
        element /= shape.dim[a];
    return element % shape.dim[axis];
}

/* likeness.c: dx is what was computed. By sign and size: "sign ok, scaled by 0.5". */
const char *ratio_text(const subject *s, const failure *f, const double *dx);
/* "padding-top", "transposed, h and w swapped"; NULL: nothing that the evidence leaves no doubt of.
 * x: by axis. */
const char *likeness(const subject *s, const failure *f, const double *dx, const along x[],
                     int64_t wrong);

#endif
