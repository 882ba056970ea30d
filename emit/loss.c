/* loss.c - functions of softmax and of its cross-entropy with class numbers. Each row is shifted by
 * its maximum, so that nothing overflows. */
#include "emit.h"

/* Opens the loop over rows of k elements. Declares `row`, the index of a row's first element, its
 * `maximum`, and `sum`, the sum of exp(x - maximum). Returns the braces. */
static int put_row_sums(function *f, const char *x, int64_t rows, int64_t k)
{
    text *t = &f->t;
    const int open = put_loop_unless_one(t, "i", rows);
    put(t, "const int row = %s;", index_of(2, (axis[]){{"i", rows}, {"0", k}}).s);
    put(t, "float maximum = %s[row];", x);
    put_sum(f, "sum");
    put_loop(t, "j", k);
    put(t, "maximum = %s[row + j] > maximum ? %s[row + j] : maximum;", x, x);
    put_end(t, 1);
    put_loop(t, "j", k);
    put_term(f, "sum", expr("expf(%s[row + j] - maximum)", x).s);
    put_end(t, 1);
    return open;
}

void write_softmax(function *f)
{
    text *t = &f->t;
    const adj_shape s = f->root->type.shape;
    const int64_t k = s.dim[s.rank - 1];
    const char *x = operand_name(f, 0);
    const int is_log = f->root->op == &adj_op_log_softmax;
    const int open = put_row_sums(f, x, adj_shape_elems(s) / k, k);
    if (is_log)
        put(t, "const float log_sum = logf(%s);", sum_of(f, "sum").s);
    put_loop(t, "j", k);
    put(t,
        is_log ? "%s[row + j] = %s[row + j] - maximum - log_sum;"
               : "%s[row + j] = expf(%s[row + j] - maximum) / %s;",
        f->result, x, sum_of(f, "sum").s);
    put_end(t, open + 1);
}

/* Returns the target of class j: (1 - s) where it is the label, and s / k. */
static expression target_of(const adj_node *n, const char *label, int64_t k)
{
    const double s = ((const adj_value_attrs *)n->attrs)->value;
    return expr("(j == %s ? %s : %s)", label, literal(1 - s + s / (double)k).s,
                literal(s / (double)k).s);
}

/* y = sum of target * (log(sum) - (x - maximum)); 0 for a label of -1. */
void write_cross_entropy(function *f)
{
    text *t = &f->t;
    const adj_shape z = f->root->in[0]->type.shape;
    const int64_t rows = z.dim[0], k = z.dim[1];
    const char *x = operand_name(f, 0), *label = operand_name(f, 1);
    const expression at = rows > 1 ? expr("i") : expr("0");
    const expression target = target_of(f->root, expr("%s[%s]", label, at.s).s, k);
    const int open = put_row_sums(f, x, rows, k);
    put(t, "const float log_sum = logf(%s);", sum_of(f, "sum").s);
    put_sum(f, "loss");
    put_loop(t, "j", k);
    put(t, "const float target = %s;", target.s);
    const expression term =
        expr("target == 0.0f ? 0.0f : target * (log_sum - (%s[row + j] - maximum))", x);
    put_term(f, "loss", f->has_double ? expr("(%.400s)", term.s).s : term.s);
    put_end(t, 1);
    put_result(f, expr("%s[%s] < 0 ? 0.0f : %s", label, at.s, sum_of(f, "loss").s).s, at.s, NULL);
    put_end(t, open);
}

/* y = softmax(x) - target; 0 for a label of -1. */
void write_cross_entropy_grad(function *f)
{
    text *t = &f->t;
    const adj_shape z = f->root->in[0]->type.shape;
    const int64_t rows = z.dim[0], k = z.dim[1];
    const char *x = operand_name(f, 0), *label = operand_name(f, 1);
    const expression of_row = expr("%s[%s]", label, rows > 1 ? "i" : "0");
    const int open = put_row_sums(f, x, rows, k);
    put_loop(t, "j", k);
    put(t, "const float p = expf(%s[row + j] - maximum) / %s;", x, sum_of(f, "sum").s);
    put(t, "%s[row + j] = %s < 0 ? 0.0f : p - %s;", f->result, of_row.s,
        target_of(f->root, of_row.s, k).s);
    put_end(t, open + 1);
}

/* At least 1. */
void write_label_count(function *f)
{
    const char *label = operand_name(f, 0);
    put(&f->t, "int count = 0;");
    put_loop(&f->t, "i", adj_shape_elems(f->root->in[0]->type.shape));
    put(&f->t, "count += %s[i] >= 0;", label);
    put_end(&f->t, 1);
    put(&f->t, "%s[0] = count > 0 ? (float)count : 1.0f;", f->result);
}
