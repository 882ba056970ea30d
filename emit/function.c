/* function.c - writes parts of functions' bodies: operands, indices, and the chain of elementwise
 * nodes behind a result. */
#include <ctype.h>
#include <string.h>

#include "emit.h"

/* ---- operands ---- */

static const char *use(function *f, const adj_node *operand)
{
    const int k = adj_group_in(f->group, operand);
    f->is_used[k] = 1;
    return f->name[k];
}

const char *operand_name(function *f, int i) { return use(f, f->root->in[i]); }

expression weight_at(function *f, const char *index)
{
    return expr("%s%s[%s]", f->is_rounded ? "(float)" : "", operand_name(f, 1), index);
}

expression with_scale(const function *f, const char *sum, const char *channel)
{
    const expression value = sum_of(f, sum);
    return f->is_rounded ? expr("%s * scale[%s]", value.s, channel) : value;
}

void put_sum(function *f, const char *name)
{
    put(&f->t, f->has_double ? "double %s = 0;" : "float %s = 0.0f;", name);
}

void put_term(function *f, const char *name, const char *term)
{
    put(&f->t, f->has_double ? "%s += (double)%s;" : "%s += %s;", name, term);
}

expression sum_of(const function *f, const char *sum)
{
    return expr("%s%s", f->has_double ? "(float)" : "", sum);
}

expression product_of(const function *f, const char *a, const char *b)
{
    return expr(f->has_double ? "(double)%s * (double)%s" : "%s * %s", a, b);
}

const char *const axis_loop[ADJ_MAX_RANK] = {"i", "j", "k", "l", "m", "n"};

/* Returns the index of an operand that is repeated along some of the result's axes. */
static expression broadcast_index(const adj_node *operand, const adj_node *result)
{
    const adj_shape x = operand->type.shape;
    axis a[ADJ_MAX_RANK];
    for (int64_t d = 0; d < x.rank; d++)
        a[d] = (axis){axis_loop[result->type.shape.rank - x.rank + d], x.dim[d]};
    return index_of((int)x.rank, a);
}

/* Returns element i of an operand as an expression; a fill's is a number. */
static expression element_of(function *f, const adj_node *operand, const adj_node *result,
                             const char *element, const char *channel)
{
    double value;
    if (adj_is_fill(operand, &value))
        return value < 0 ? expr("(%s)", literal(value).s) : literal(value);
    const access_kind kind = access_of(operand, result);
    if (kind == OTHERWISE)
        return expr("%s[%s]", use(f, operand), broadcast_index(operand, result).s);
    return expr("%s[%s]", use(f, operand),
                kind == ONE          ? "0"
                : kind == BY_CHANNEL ? channel
                                     : element);
}

/* ---- expressions of elementwise ops ---- */

/* Returns number i among the op's real attributes. */
static double number_of(const adj_node *n, int i)
{
    double value = 0;
    const adj_attr *a = n->op->schema->attr;
    for (int k = 0; k < ADJ_ATTRS && a[k].name != NULL; k++)
        if (a[k].kind == ADJ_ATTR_REAL && i-- == 0)
            memcpy(&value, (const char *)n->attrs + a[k].offset, sizeof value);
    return value;
}

/* gelu alone has two forms. */
static const char *expression_of(const adj_node *n)
{
    const writer *w = writer_of(n->op);
    const int is_tanh =
        n->op == &adj_op_gelu && ((const adj_gelu_attrs *)n->attrs)->form == ADJ_GELU_TANH;
    return is_tanh ? w->instead : w->expression;
}

/* True if the expression reads operand i more than once. */
static int reads_again(const char *expression, int i)
{
    int times = 0;
    for (const char *c = expression; (c = strchr(c, '%')) != NULL; c++)
        times += c[1] == 'a' + i;
    return times > 1;
}

/* Returns the expression with its placeholders replaced. chain: the operand whose value is
 * `so_far`; negative: none. */
static expression evaluate(function *f, const adj_node *n, int chain, const char *so_far,
                           const char *element, const char *channel)
{
    expression e = {""};
    const char *start = expression_of(n);
    for (const char *c = start; *c != '\0'; c++) {
        expression part = expr("%c", *c);
        const int is_alone = c > start && c[-1] == '(' && *c == '%' && c[2] == ')';
        if (*c == '%' && isdigit((unsigned char)*++c))
            part = literal(number_of(n, *c - '0'));
        else if (c > start && c[-1] == '%' && isupper((unsigned char)*c))
            part = literal(1 - number_of(n, *c - 'A'));
        else if (c > start && c[-1] == '%' && *c - 'a' == chain)
            part = expr(is_alone || strchr(so_far, ' ') == NULL ? "%s" : "(%s)", so_far);
        else if (c > start && c[-1] == '%')
            part = element_of(f, n->in[*c - 'a'], n, element, channel);
        const size_t used = strlen(e.s);
        snprintf(e.s + used, sizeof e.s - used, "%s", part.s);
    }
    return e;
}

void put_result(function *f, const char *value, const char *element, const char *channel)
{
    f->has_r = 0;
    put_next_result(f, value, element, channel);
}

void put_next_result(function *f, const char *value, const char *element, const char *channel)
{
    expression r = expr("%s", value);
    for (int i = 0; i < f->group->n_node; i++) {
        const adj_node *n = f->group->node[i];
        const int chain = i > 0 ? adj_operand_position(n, f->group->node[i - 1]) : -1;
        if (i == 0 && writer_of(n->op)->expression == NULL)
            continue;
        if (chain >= 0 && (reads_again(expression_of(n), chain) || strlen(r.s) > 60) &&
            strchr(r.s, '[') != NULL) {
            put(&f->t, "%sr = %s;", f->has_r ? "" : "float ", r.s);
            f->has_r = 1;
            r = expr("r");
        }
        r = evaluate(f, n, chain, r.s, element, channel);
    }
    put(&f->t, "%s[%s] = %s;", f->result, element, r.s);
}

/* ---- indices ---- */

expression plus(const char *a, const char *b)
{
    if (strcmp(a, "0") == 0 || strcmp(b, "0") == 0)
        return expr("%s", strcmp(a, "0") == 0 ? b : a);
    return expr("%s + %s", a, b);
}

expression index_of(int n, const axis a[])
{
    expression e = expr("0");
    for (int i = 0; i < n; i++) {
        const int is_sum = strchr(e.s, '+') != NULL || strchr(e.s, '-') != NULL;
        if (strcmp(e.s, "0") != 0 && a[i].size != 1)
            e = expr(is_sum ? "(%s) * %lld" : "%s * %lld", e.s, (long long)a[i].size);
        if (a[i].size != 1 && a[i].at[0] == '-')
            e = strcmp(e.s, "0") == 0 ? expr("%s", a[i].at) : expr("%s %s", e.s, a[i].at);
        else if (a[i].size != 1)
            e = plus(e.s, a[i].at);
    }
    return e;
}

/* Returns the block's elements: all of few, else a number that divides n, if possible by vectors of
 * 8 or 4. */
static int64_t block_of(int64_t n, int64_t most)
{
    enum { LEAST = 8, OTHERWISE = 16 };
    if (n <= most)
        return n;
    for (int64_t vector = 8; vector >= 4; vector /= 2)
        for (int64_t size = most; size >= LEAST; size -= vector)
            if (n % size == 0)
                return size;
    return OTHERWISE;
}

blocks put_blocks(text *t, const char *variable, int64_t n, int64_t most)
{
    const int64_t size = block_of(n, most);
    blocks b = {size < n, size, expr("%s", size < n ? variable : "0"),
                expr("%lld", (long long)size)};
    if (size == n)
        return b;
    put(t, "for (int %s = 0; %s < %lld; %s += %lld) {", variable, variable, (long long)n, variable,
        (long long)size);
    if (n % size != 0) {
        put(t, "const int count = %s < %lld ? %lld : %lld - %s;", variable, (long long)(n - size),
            (long long)size, (long long)n, variable);
        b.count = expr("count");
    }
    return b;
}

/* ---- elementwise ---- */

/* Writes a loop over each axis of the result. */
static void put_axes(function *f, adj_shape s)
{
    axis a[ADJ_MAX_RANK];
    int braces = 0;
    for (int64_t d = 0; d < s.rank; d++) {
        a[d] = (axis){axis_loop[d], s.dim[d]};
        braces += put_loop_unless_one(&f->t, axis_loop[d], s.dim[d]);
    }
    put(&f->t, "const int at = %s;", index_of((int)s.rank, a).s);
    put_result(f, "", "at", s.dim[s.rank - 1] > 1 ? a[s.rank - 1].at : "0");
    put_end(&f->t, braces);
}

void write_elementwise(function *f)
{
    const adj_node *y = f->group->out[0];
    const adj_shape s = y->type.shape;
    const int64_t n = adj_shape_elems(s), channels = s.rank > 0 ? s.dim[s.rank - 1] : 1;
    int by_channel = 0, by_axis = 0;
    for (int i = 0; i < f->group->n_node; i++)
        for (int k = 0; k < f->group->node[i]->n_in; k++) {
            const access_kind kind = access_of(f->group->node[i]->in[k], y);
            by_channel |= kind == BY_CHANNEL;
            by_axis |= kind == OTHERWISE;
        }
    if (by_axis) {
        put_axes(f, s);
        return;
    }
    if (!by_channel) {
        const int open = put_loop_unless_one(&f->t, "i", n);
        put_result(f, "", open ? "i" : "0", NULL);
        put_end(&f->t, open);
        return;
    }
    const int open = put_loop_unless_one(&f->t, "i", n / channels);
    put_loop(&f->t, "c", channels);
    put_result(f, "", index_of(2, (axis[]){{"i", n / channels}, {"c", channels}}).s, "c");
    put_end(&f->t, open + 1);
}

void put_tanh(FILE *f)
{
    fputs(
        "/* tanh as v * p(v^2) / q(v^2), which compilers make vectors of; error below 4e-7. */\n"
        "static float tanh_of(float x)\n{\n"
        "    const float v = x < -7.9f ? -7.9f : x > 7.9f ? 7.9f : x, s = v * v;\n"
        "    const float p = ((1.54280347e-08f * s + 2.20232889e-05f) * s + 0.00357899468f) * s +\n"
        "        0.134506228f;\n"
        "    const float q = ((8.59880511e-07f * s + 0.000342365489f) * s + 0.0261922481f) * s +\n"
        "        0.467839508f;\n"
        "    return v * (p * s + 1.0f) / (q * s + 1.0f);\n"
        "}\n\n",
        f);
}

void put_filled(function *f, double value)
{
    put_loop(&f->t, "i", adj_shape_elems(f->root->type.shape));
    put(&f->t, "%s[i] = %s;", f->result, literal(value).s);
    put_end(&f->t, 1);
}

void write_fill(function *f)
{
    double value = 0;
    (void)adj_is_fill(f->root, &value);
    put_filled(f, value);
}
