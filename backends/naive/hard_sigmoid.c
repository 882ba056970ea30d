/* hard_sigmoid.c - hard_sigmoid and its gradient. A NaN stays one; its gradient is 0, as relu6's.
 */
#include "parts.h"

static void forward(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 3 ? 1 : x > -3 || x != x ? (x + 3) / 6 : 0);
    }
}

adj_status KERNEL(hard_sigmoid)(const adj_call *c) { return for_parts(c, forward); }

static void backward(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        st(&p->y[i], x > -3 && x < 3 ? dy / 6 : 0);
    }
}

adj_status KERNEL(hard_sigmoid_grad)(const adj_call *c) { return for_parts(c, backward); }
