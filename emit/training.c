/* training.c - functions of training alone: dropout, Adam's step, and the random words that dropout
 * and initial values read (Philox4x32-10, Salmon et al. 2011): word i % 4 of
 * philox({i / 4, 0, step, 0}, seed) belongs to element i. */
#include <inttypes.h>
#include <math.h>

#include "emit.h"

void write_dropout(function *f)
{
    text *t = &f->t;
    const adj_dropout_attrs *a = f->root->attrs;
    const int64_t n = adj_shape_elems(f->root->type.shape);
    const double least = ceil(a->rate * 0x1p32); /* least random word that keeps its element */
    const char *x = operand_name(f, 0), *step = operand_name(f, 1);
    put(t, "uint32_t word[4];");
    put_loop(t, "i", n);
    put(t, "if (i %% 4 == 0)");
    put(t,
        "    philox((uint32_t)(i / 4), (uint32_t)%s[0], 0, UINT32_C(%" PRIu32 "), UINT32_C(%" PRIu32
        "), word);",
        step, (uint32_t)a->seed, (uint32_t)(a->seed >> 32));
    put(t, "%s[i] = word[i %% 4] >= UINT32_C(%" PRIu32 ") ? %s[i] * %s : 0.0f;", f->result,
        (uint32_t)least, x, literal(1 / (1 - a->rate)).s);
    put_end(t, 1);
}

/* 1 - beta^t is -expm1(t * log(beta)), which does not cancel in f32. */
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

void put_philox(FILE *f)
{
    fputs("/* Philox4x32-10: four random words for a counter and a key. */\n"
          "static void philox(uint32_t c0, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1,\n"
          "    uint32_t word[4])\n{\n"
          "    uint32_t c1 = 0;\n"
          "    for (int round = 0; round < 10; round++) {\n"
          "        const uint64_t p0 = UINT64_C(0xd2511f53) * c0, p1 = UINT64_C(0xcd9e8d57) * c2;\n"
          "        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;\n"
          "        c1 = (uint32_t)p1;\n"
          "        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;\n"
          "        c3 = (uint32_t)p0;\n"
          "        k0 += UINT32_C(0x9e3779b9);\n"
          "        k1 += UINT32_C(0xbb67ae85);\n"
          "    }\n"
          "    word[0] = c0;\n"
          "    word[1] = c1;\n"
          "    word[2] = c2;\n"
          "    word[3] = c3;\n"
          "}\n\n",
          f);
}
