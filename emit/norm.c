/* norm.c - functions of batch norm and its gradients: m pixels of c channels. */
#include "emit.h"

static int is_nchw(const adj_node *n)
{
    return adj_format_of(n) == ADJ_NCHW && n->in[0]->type.shape.rank > 2;
}

/* Pixels and channels of operand 0. */
static int64_t channels_of(const adj_node *n)
{
    const adj_shape x = n->in[0]->type.shape;
    return x.dim[is_nchw(n) ? 1 : x.rank - 1];
}

static int64_t pixels_of(const adj_node *n)
{
    return adj_shape_elems(n->in[0]->type.shape) / channels_of(n);
}

static double epsilon_of(const adj_node *n)
{
    return ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
}

/* Opens the loops over pixels and channels; returns the index of an element. */
static expression put_elements_loop(text *t, const adj_node *n)
{
    const int64_t images = n->in[0]->type.shape.dim[0], c = channels_of(n);
    if (is_nchw(n)) {
        put_loop(t, "n", images);
        put_loop(t, "c", c);
        put_loop(t, "i", pixels_of(n) / images);
        return index_of(3, (axis[]){{"n", images}, {"c", c}, {"i", pixels_of(n) / images}});
    }
    put_loop(t, "i", pixels_of(n));
    put_loop(t, "c", c);
    return index_of(2, (axis[]){{"i", pixels_of(n)}, {"c", c}});
}

/* Returns the position of an element on the last axis, which operands of the chain may have alone.
 */
static expression last_of(const adj_node *n)
{
    const adj_shape x = n->in[0]->type.shape;
    return is_nchw(n) ? expr("i %% %lld", (long long)x.dim[x.rank - 1]) : expr("c");
}

static void put_elements_end(text *t, const adj_node *n) { put_end(t, is_nchw(n) ? 3 : 2); }

size_t batch_norm_scratch(const adj_node *n) { return (size_t)channels_of(n) * sizeof(float); }
size_t batch_norm_grad_scratch(const adj_node *n) { return 2 * batch_norm_scratch(n); }

/* scale = gamma / sqrt(variance + epsilon) of each channel. */
static void put_scale(function *f, const char *stats, const char *gamma)
{
    const int64_t c = channels_of(f->root);
    f->has_scratch = 1;
    put_loop(&f->t, "c", c);
    put(&f->t, "scratch[c] = %s[c] / sqrtf(%s[%lld + c] + %s);", gamma, stats, (long long)c,
        literal(epsilon_of(f->root)).s);
}

/* y = (x - mean) * scale + beta */
void write_batch_norm(function *f)
{
    text *t = &f->t;
    const char *x = operand_name(f, 0), *stats = operand_name(f, 1);
    const char *gamma = operand_name(f, 2), *beta = operand_name(f, 3);
    put_scale(f, stats, gamma);
    put_end(t, 1);
    const expression at = put_elements_loop(t, f->root);
    put_result(f, expr("(%s[%s] - %s[c]) * scratch[c] + %s[c]", x, at.s, stats, beta).s, at.s,
               last_of(f->root).s);
    put_elements_end(t, f->root);
}

/* Mean and variance of each channel; the variance in a second pass, so that nothing cancels. */
void write_batch_norm_stats(function *f)
{
    text *t = &f->t;
    const char *x = operand_name(f, 0), *y = f->result;
    const long long c = channels_of(f->root);
    const expression m = literal((double)pixels_of(f->root));
    put_zeros(f, 2 * c);
    expression at = put_elements_loop(t, f->root);
    put(t, "%s[c] += %s[%s];", y, x, at.s);
    put_elements_end(t, f->root);
    put_loop(t, "c", c);
    put(t, "%s[c] /= %s;", y, m.s);
    put_end(t, 1);
    at = put_elements_loop(t, f->root);
    put(t, "const float distance = %s[%s] - %s[c];", x, at.s, y);
    put(t, "%s[%lld + c] += distance * distance;", y, c);
    put_elements_end(t, f->root);
    put_loop(t, "c", c);
    put(t, "%s[%lld + c] /= %s;", y, c, m.s);
    put_end(t, 1);
}

/* dgamma = sum of dy * (x - mean) / sqrt(variance + epsilon), dbeta = sum of dy. */
void write_batch_norm_grad_sums(function *f)
{
    text *t = &f->t;
    const char *x = operand_name(f, 0), *stats = operand_name(f, 1), *dy = operand_name(f, 2);
    const char *y = f->result;
    const long long c = channels_of(f->root);
    put_zeros(f, 2 * c);
    const expression at = put_elements_loop(t, f->root);
    put(t, "%s[c] += %s[%s] * (%s[%s] - %s[c]);", y, dy, at.s, x, at.s, stats);
    put(t, "%s[%lld + c] += %s[%s];", y, c, dy, at.s);
    put_elements_end(t, f->root);
    put_loop(t, "c", c);
    put(t, "%s[c] /= sqrtf(%s[%lld + c] + %s);", y, stats, c, literal(epsilon_of(f->root)).s);
    put_end(t, 1);
}

/* dx = scale * (dy - dbeta / m - (x - mean) * q), q = dgamma / m / sqrt(variance + epsilon) */
void write_batch_norm_grad(function *f)
{
    text *t = &f->t;
    const char *x = operand_name(f, 0), *stats = operand_name(f, 1), *gamma = operand_name(f, 2);
    const char *dy = operand_name(f, 3), *sums = operand_name(f, 4);
    const long long c = channels_of(f->root);
    const expression m = literal((double)pixels_of(f->root));
    put_scale(f, stats, gamma);
    put(t, "scratch[%lld + c] = %s[c] / (%s * sqrtf(%s[%lld + c] + %s));", c, sums, m.s, stats, c,
        literal(epsilon_of(f->root)).s);
    put_end(t, 1);
    const expression at = put_elements_loop(t, f->root);
    put(t, "const float distance = %s[%s] - %s[c];", x, at.s, stats);
    put_result(f,
               expr("scratch[c] * (%s[%s] - %s[%lld + c] / %s - distance * scratch[%lld + c])", dy,
                    at.s, sums, c, m.s, c)
                   .s,
               at.s, last_of(f->root).s);
    put_elements_end(t, f->root);
}
