/* emit.c - see adjoint_emit.h. The file is written into memory first, so that nothing is written
 * unless all of it can be. */
#include "adjoint_emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* Values that the parts of the file share. */
typedef struct {
    program p;
    const adj_model_card *card; /* all zero: none */
    char prefix[ADJ_EMIT_PREFIX + 1], capital[ADJ_EMIT_PREFIX + 1];
    adj_type input, output;
    char *functions, *calls; /* text */
    float *expected;         /* the output for the example */
} file;

/* ---- parts of the file ---- */

static long long elems(adj_type t) { return (long long)adj_shape_elems(t.shape); }

static expression prototype(const file *e)
{
    return expr("int %s_predict(const float input[%lld], float output[%lld])", e->prefix,
                elems(e->input), elems(e->output));
}

/* True if pixels are normalized by numbers of the model card. */
static int has_mean(const adj_model_card *c) { return c->deviation[0] > 0 && !c->normalized; }

static long long arena_bytes(const file *e)
{
    return e->p.uses_arena ? (long long)e->p.e->info.arena_bytes : 0;
}

/* Returns the bytes of all constants. */
static long long constant_bytes(const file *e)
{
    long long bytes = 0;
    for (int i = 0; i < e->p.n_array; i++)
        if (e->p.array[i].is_used)
            bytes += (long long)adj_type_bytes(e->p.array[i].type);
    return bytes;
}

static void put_top(const file *e, FILE *f)
{
    const adj_model_card *c = e->card;
    fprintf(f, "/* %s.c - ", e->prefix);
    put_in_comment(f, c->model != NULL ? c->model : "a network");
    fprintf(f,
            ", written by adjoint %s. C99; no library but the C math library.\n *\n"
            " *   %s;\n *\n"
            " * input   %s, row-major%s\n"
            " * output  %s, row-major\n *\n"
            " * Returns 0. The arena is static: one call at a time.\n"
            " * RAM: %lld bytes of arena. Flash: %lld bytes of constants. */\n"
            "#include <math.h>\n#include <stdint.h>\n\n",
            adj_version_text(), prototype(e).s, shape_of(e->input.shape).s,
            has_mean(c) ? expr(": (pixel - mean) / deviation, by %s_normalize", e->prefix).s : "",
            shape_of(e->output.shape).s, arena_bytes(e), constant_bytes(e));
    fprintf(f,
            "enum {\n    %s_INPUT_SIZE = %lld,\n    %s_OUTPUT_SIZE = %lld,\n"
            "    %s_ARENA_BYTES = %lld\n};\n\n",
            e->capital, elems(e->input), e->capital, elems(e->output), e->capital, arena_bytes(e));
    fprintf(f, "#ifdef __cplusplus\n#define restrict __restrict\nextern \"C\" {\n#endif\n%s;\n",
            prototype(e).s);
    if (has_mean(c))
        fprintf(f, "void %s_normalize(const uint8_t pixels[%lld], float input[%lld]);\n", e->prefix,
                elems(e->input), elems(e->input));
    if (c->class_names != NULL)
        fprintf(f, "extern const char *const %s_classes[%lld];\n", e->prefix,
                (long long)c->options.classes);
    fprintf(f,
            "#ifdef %s_TEST\nint %s_test(void); /* 0: the example gives the stored result */\n"
            "#endif\n#ifdef __cplusplus\n}\n#endif\n\n",
            e->capital, e->prefix);
}

static void put_arrays(const file *e, FILE *f)
{
    const program *p = &e->p;
    for (int i = 0; i < p->n_array; i++) {
        const array *a = &p->array[i];
        if (!a->is_used)
            continue;
        fputs("/* ", f);
        put_in_comment(f, a->label != NULL ? a->label : "");
        fprintf(f, " %s */\nstatic const %s %s[%lld] = ", shape_of(a->type.shape).s,
                a->type.dtype == ADJ_I32 ? "int32_t" : "float", a->name, elems(a->type));
        put_elements(f, a->type.dtype, a->data, elems(a->type));
        fputs(";\n\n", f);
    }
    if (arena_bytes(e) > 0)
        fprintf(f, "static float arena[%s_ARENA_BYTES / sizeof(float)];\n\n", e->capital);
}

static void put_numbers(FILE *f, const char *name, int n, const double v[])
{
    fprintf(f, "    static const float %s[%d] = {", name, n);
    for (int i = 0; i < n; i++)
        fprintf(f, "%s%s", i > 0 ? ", " : "", literal(v[i]).s);
    fputs("};\n", f);
}

static void put_normalize(const file *e, FILE *f)
{
    const adj_model_card *c = e->card;
    if (!has_mean(c))
        return;
    fprintf(f, "void %s_normalize(const uint8_t pixels[%lld], float input[%lld])\n{\n", e->prefix,
            elems(e->input), elems(e->input));
    const int n = (int)c->options.size.c;
    const expression channel = n > 1 ? expr("i %% %d", n) : expr("0");
    put_numbers(f, "mean", n, c->mean);
    put_numbers(f, "deviation", n, c->deviation);
    fprintf(f,
            "    for (int i = 0; i < %lld; i++)\n"
            "        input[i] = ((float)pixels[i] - mean[%s]) / deviation[%s];\n}\n\n",
            elems(e->input), channel.s, channel.s);
}

static void put_classes(const file *e, FILE *f)
{
    const adj_model_card *c = e->card;
    if (c->class_names == NULL)
        return;
    fprintf(f, "const char *const %s_classes[%lld] = {", e->prefix, (long long)c->options.classes);
    for (int64_t i = 0; i < c->options.classes; i++) {
        fputs(i > 0 ? ", " : "", f);
        put_string(f, c->class_names[i]);
    }
    fputs("};\n\n", f);
}

/* Element i of the example. */
static float example_at(int64_t i) { return (float)((i * 7 + 3) % 17) / 8 - 1; }

static void put_test(const file *e, FILE *f)
{
    fprintf(f,
            "#ifdef %s_TEST\n/* The reference's result for the example. */\n"
            "static const float expected[%lld] = ",
            e->capital, elems(e->output));
    put_elements(f, ADJ_F32, e->expected, elems(e->output));
    fprintf(f,
            ";\n\n/* Returns 0, or the number of the first result that is not as expected, from 1. "
            "*/\nint %s_test(void)\n{\n"
            "    static float input[%lld], output[%lld];\n    float largest = 1.0f;\n"
            "    for (int i = 0; i < %lld; i++)\n"
            "        input[i] = (float)((i * 7 + 3) %% 17) / 8.0f - 1.0f;\n"
            "    %s_predict(input, output);\n"
            "    for (int i = 0; i < %lld; i++)\n"
            "        largest = fabsf(expected[i]) > largest ? fabsf(expected[i]) : largest;\n"
            "    for (int i = 0; i < %lld; i++)\n"
            "        if (!(fabsf(output[i] - expected[i]) <= 1e-4f * largest))\n"
            "            return i + 1;\n    return 0;\n}\n#endif\n",
            e->prefix, elems(e->input), elems(e->output), elems(e->input), e->prefix,
            elems(e->output), elems(e->output));
}

static adj_status put_file(const file *e, FILE *f)
{
    put_top(e, f);
    put_arrays(e, f);
    fputs(e->functions, f);
    fprintf(f, "%s\n{\n%s    return 0;\n}\n\n", prototype(e).s, e->calls);
    put_normalize(e, f);
    put_classes(e, f);
    put_test(e, f);
    return ferror(f) ? adj_error_set(e->p.error, ADJ_EIO, "adj_emit: the file cannot be written")
                     : ADJ_OK;
}

/* ---- values of the parts ---- */

/* Writes the functions and their calls into memory: what they use is known afterwards. */
static adj_status make_functions(file *e)
{
    size_t n_function, n_call;
    FILE *functions = open_memstream(&e->functions, &n_function);
    FILE *calls = open_memstream(&e->calls, &n_call);
    const plan *plan = &e->p.e->plan;
    adj_status status = functions != NULL && calls != NULL ? ADJ_OK : ADJ_ENOMEM;
    for (int i = 0; i < plan->n_step && status == ADJ_OK; i++)
        if (is_called(&e->p, &plan->step[i]))
            status = put_function(&e->p, functions, calls, i);
    const int failed =
        (functions != NULL && fclose(functions) != 0) | (calls != NULL && fclose(calls) != 0);
    if (status == ADJ_ENOMEM || failed)
        return adj_error_set(e->p.error, ADJ_ENOMEM, "adj_emit: out of memory");
    return status;
}

/* Computes the example's result on the reference backend. */
static adj_status compute_example(file *e, adj_exec *values, adj_node *output, adj_node *input)
{
    adj_exec *r = NULL;
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &output, .backend = "naive"};
    adj_status status = adj_exec_new(adj_exec_graph(values), &o, &r);
    void *to = NULL;
    if (status == ADJ_OK)
        status = adj_copy_params(r, values);
    if (status == ADJ_OK)
        status = adj_set_in_place(r, input, &to);
    for (int64_t i = 0; i < elems(e->input) && status == ADJ_OK; i++)
        ((float *)to)[i] = example_at(i);
    if (status == ADJ_OK)
        status = adj_run(r);
    if (status == ADJ_OK && (e->expected = malloc(adj_type_bytes(e->output))) != NULL)
        status = adj_get(r, output, e->expected, adj_type_bytes(e->output));
    if (status != ADJ_OK)
        adj_error_set(e->p.error, status, "adj_emit: %s", adj_exec_message(r));
    else if (e->expected == NULL)
        status = adj_error_set(e->p.error, ADJ_ENOMEM, "adj_emit: out of memory");
    adj_exec_free(r);
    return status;
}

static adj_status check_arguments(adj_exec *e, const adj_node *output, const adj_emit_opts *o,
                                  FILE *f, adj_error *error)
{
    if (e == NULL || output == NULL || f == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_emit: the %s is NULL",
                             e == NULL        ? "executor"
                             : output == NULL ? "output"
                                              : "file");
    if (o->prefix != NULL && !is_identifier(o->prefix, ADJ_EMIT_PREFIX))
        return adj_error_set(
            error, ADJ_EARG,
            "adj_emit: prefix is not an identifier (got \"%.60s\", expected a letter, "
            "then letters, digits and _, at most %d)",
            o->prefix, ADJ_EMIT_PREFIX);
    if (adj_node_type(output).dtype != ADJ_F32)
        return adj_error_set(error, ADJ_EDTYPE,
                             "adj_emit: output has the wrong type (got %s, expected f32)",
                             adj_dtype_name(adj_node_type(output).dtype));
    return ADJ_OK;
}

static adj_node *find_input(const program *p)
{
    const plan *plan = &p->e->plan;
    for (int i = 0; i < plan->n_leaf; i++)
        if (plan->leaf[i].node->op == &adj_op_input)
            return plan->leaf[i].user;
    return NULL;
}

adj_status adj_emit(adj_exec *e, adj_node *output, const adj_emit_opts *options, FILE *f,
                    adj_error *error)
{
    static const adj_emit_opts none = {0};
    static const adj_model_card unknown;
    const adj_emit_opts *o = options != NULL ? options : &none;
    file all = {.card = o->card != NULL ? o->card : &unknown};
    adj_status status = check_arguments(e, output, o, f, error);
    if (status != ADJ_OK)
        return status;
    snprintf(all.prefix, sizeof all.prefix, "%s", o->prefix != NULL ? o->prefix : "net");
    for (size_t i = 0; i < sizeof all.capital; i++)
        all.capital[i] = (char)toupper((unsigned char)all.prefix[i]);
    all.output = adj_node_type(output);
    status = program_open(&all.p, e, output, all.prefix, error);
    if (status == ADJ_OK) {
        adj_node *input = find_input(&all.p);
        all.input = adj_node_type(input);
        status = compute_example(&all, e, output, input);
    }
    if (status == ADJ_OK)
        status = make_functions(&all);
    if (status == ADJ_OK)
        status = put_file(&all, f);
    program_close(&all.p);
    free(all.functions);
    free(all.calls);
    free(all.expected);
    return status;
}
