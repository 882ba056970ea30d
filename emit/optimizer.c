/* optimizer.c - the function of Adam's step. 1 - beta^t is -expm1(t * log(beta)), which does not
 * cancel in f32. */
#include <math.h>

#include "emit.h"

void write_adam_step(function *f)
{
    text *t = &f->t;
    const adj_adam_attrs *a = f->root->attrs;
    const char *p = operand_name(f, 0), *m = operand_name(f, 1), *v = operand_name(f, 2);
    const char *step = operand_name(f, 3), *lr = operand_name(f, 4);
    put(t, "const float m_scale = -1.0f / expm1f(%s * (float)%s[0]);", literal(log(a->beta1)).s,
        step);
    put(t, "const float v_scale = -1.0f / expm1f(%s * (float)%s[0]);", literal(log(a->beta2)).s,
        step);
    put_loop(t, "i", adj_shape_elems(f->root->type.shape));
    put(t, "const float direction = m_scale * %s[i] / (sqrtf(v_scale * %s[i]) + %s);", m, v,
        literal(a->epsilon).s);
    put(t, "%s[i] = %s[i] - %s[0] * (direction + %s * %s[i]);", f->result, p, lr,
        literal(a->decay).s, p);
    put_end(t, 1);
}
