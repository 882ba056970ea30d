/* emit.c - see adjoint_emit.h. Functions and calls are written into memory first, so that nothing
 * is written unless all of it can be, and what they use is known. */
#include "adjoint_emit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* Text that grows in memory. */
typedef struct {
    FILE *f;
    char *text;
    size_t length;
} memory;

/* Values that the parts of the file share. */
typedef struct {
    unit u;
    const adj_emit_opts *o;
    const adj_model_card *card; /* all zero: none */
    char prefix[ADJ_EMIT_PREFIX + 1], capital[ADJ_EMIT_PREFIX + 1];
    adj_type input, output, labels; /* labels: of training */
    int64_t classes;                /* of the labels */
    memory functions, predict, train;
    float *expected; /* the output for the example */
} file;

/* ---- parts of the file ---- */

static long long elems(adj_type t) { return (long long)adj_shape_elems(t.shape); }

/* True if pixels are normalized by numbers of the model card. */
static int has_mean(const adj_model_card *c) { return c->deviation[0] > 0 && !c->normalized; }

static expression predict_prototype(const file *e)
{
    return expr("int %s_predict(const float input[%lld], float output[%lld])", e->prefix,
                elems(e->input), elems(e->output));
}

static expression train_prototype(const file *e)
{
    return expr("int %s_train_step(const float input[%lld], const int32_t labels[%lld],\n"
                "    float learning_rate, float *loss)",
                e->prefix, elems(e->input), elems(e->labels));
}

/* Returns the bytes of all arrays that are constants, or of those that training changes. */
static long long array_bytes(const file *e, int is_written)
{
    long long bytes = 0;
    for (int i = 0; i < e->u.n_array; i++)
        if (e->u.array[i].is_used && e->u.array[i].is_written == is_written)
            bytes += (long long)adj_type_bytes(e->u.array[i].type);
    return bytes;
}

static void put_summary(const file *e, FILE *f)
{
    const adj_emit_opts *o = e->o;
    fprintf(f, "/* %s.c - ", e->prefix);
    put_in_comment(f, e->card->model != NULL ? e->card->model : "a network");
    fprintf(f,
            ", written by adjoint %s. C99; no library but the C math library.\n *\n"
            " *   %s;\n",
            adj_version_text(), predict_prototype(e).s);
    if (o->updates != NULL)
        fprintf(f,
                " *   int %s_train_step(const float input[%lld], const int32_t labels[%lld],\n"
                " *       float learning_rate, float *loss);\n",
                e->prefix, elems(e->input), elems(e->labels));
    fprintf(
        f, " *\n * input   %s, row-major%s\n * output  %s, row-major\n", shape_of(e->input.shape).s,
        has_mean(e->card) ? expr(": (pixel - mean) / deviation, by %s_normalize", e->prefix).s : "",
        shape_of(e->output.shape).s);
    if (o->updates != NULL)
        fprintf(f, " * labels  classes from 0 to %lld; -1: the image is ignored\n",
                (long long)e->classes - 1);
    fprintf(f,
            " *\n * Functions return 0%s. The arena is static: one call at a time.\n"
            " * RAM: %zu bytes of arena%s. Flash: %lld bytes of constants. */\n",
            o->updates != NULL ? ", or -1 for a label that is no class" : "", e->u.arena_bytes,
            o->updates != NULL ? expr(", %lld of parameters and states", array_bytes(e, 1)).s : "",
            array_bytes(e, 0));
}

static void put_declarations(const file *e, FILE *f)
{
    const adj_emit_opts *o = e->o;
    fprintf(f,
            "#include <math.h>\n#include <stdint.h>\n\n"
            "enum {\n    %s_INPUT_SIZE = %lld,\n    %s_OUTPUT_SIZE = %lld,\n"
            "    %s_ARENA_BYTES = %zu\n};\n\n",
            e->capital, elems(e->input), e->capital, elems(e->output), e->capital,
            e->u.arena_bytes);
    fprintf(f, "#ifdef __cplusplus\n#define restrict __restrict\nextern \"C\" {\n#endif\n%s;\n",
            predict_prototype(e).s);
    if (o->updates != NULL)
        fprintf(f, "%s;\n", train_prototype(e).s);
    if (has_mean(e->card))
        fprintf(f, "void %s_normalize(const uint8_t pixels[%lld], float input[%lld]);\n", e->prefix,
                elems(e->input), elems(e->input));
    if (e->card->class_names != NULL)
        fprintf(f, "extern const char *const %s_classes[%lld];\n", e->prefix,
                (long long)e->card->options.classes);
    fprintf(f,
            "#ifdef %s_TEST\nint %s_test(void); /* 0: the example gives the stored result */\n"
            "#endif\n#ifdef __cplusplus\n}\n#endif\n\n",
            e->capital, e->prefix);
}

static void put_arrays(const file *e, FILE *f)
{
    for (int i = 0; i < e->u.n_array; i++) {
        const array *a = &e->u.array[i];
        if (!a->is_used)
            continue;
        fputs("/* ", f);
        put_in_comment(f, a->label);
        fprintf(f, "%s %s */\nstatic %s%s %s[%lld] = ", a->leaf == NULL ? ", folded" : "",
                shape_of(a->type.shape).s, a->is_written ? "" : "const ",
                a->type.dtype == ADJ_I32 ? "int32_t" : "float", a->name, elems(a->type));
        put_elements(f, a->type.dtype, a->data, elems(a->type));
        fputs(";\n\n", f);
    }
    if (e->u.arena_bytes > 0)
        fprintf(f, "static float arena[%s_ARENA_BYTES / sizeof(float)];\n\n", e->capital);
    if (e->u.uses_philox)
        put_philox(f);
}

static void put_predict(const file *e, FILE *f)
{
    fprintf(f, "%s\n{\n%s    return 0;\n}\n\n", predict_prototype(e).s, e->predict.text);
}

static void put_train_step(const file *e, FILE *f)
{
    const int one = elems(e->labels) == 1;
    if (e->o->updates == NULL)
        return;
    fprintf(f, "%s\n{\n", train_prototype(e).s);
    if (!one)
        fprintf(f, "    for (int i = 0; i < %lld; i++)\n    ", elems(e->labels));
    fprintf(f, "    if (labels[%s] < -1 || labels[%s] >= %lld)\n%s        return -1;\n",
            one ? "0" : "i", one ? "0" : "i", (long long)e->classes, one ? "" : "    ");
    fprintf(f, "%s    return 0;\n}\n\n", e->train.text);
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
    put_summary(e, f);
    put_declarations(e, f);
    put_arrays(e, f);
    fputs(e->functions.text, f);
    put_predict(e, f);
    put_train_step(e, f);
    put_normalize(e, f);
    put_classes(e, f);
    put_test(e, f);
    return ferror(f) ? adj_error_set(e->u.error, ADJ_EIO, "adj_emit: the file cannot be written")
                     : ADJ_OK;
}

/* ---- values of the parts ---- */

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
        adj_error_set(e->u.error, status, "adj_emit: %s", adj_exec_message(r));
    else if (e->expected == NULL)
        status = adj_error_set(e->u.error, ADJ_ENOMEM, "adj_emit: out of memory");
    adj_exec_free(r);
    return status;
}

static adj_status write_net(file *e, adj_exec *values, adj_node *output)
{
    const source s = {.fetch = output, .varying = e->o->updates, .values = values};
    program p;
    adj_status status = program_open(&p, &e->u, &s, "output", e->predict.f);
    if (status == ADJ_OK) {
        adj_node *input = program_input(&p, ADJ_F32, 0);
        e->input = adj_node_type(input);
        status = compute_example(e, values, output, input);
    }
    program_close(&p);
    return status;
}

/* Returns the number of classes that the labels of a loss stand for. */
static int64_t classes_of(const adj_graph *g, const adj_node *labels)
{
    for (int id = 0; id < adj_graph_node_count(g); id++) {
        const adj_node *n = adj_graph_node_at(g, id);
        if (n->op == &adj_op_sparse_softmax_cross_entropy && viewed_node(n->in[1]) == labels)
            return n->in[0]->type.shape.dim[1];
    }
    return INT32_MAX;
}

static adj_status write_training(file *e, adj_exec *values)
{
    const source s = {.fetch = e->o->loss, .updates = e->o->updates, .values = values};
    program p;
    if (e->o->updates == NULL)
        return ADJ_OK;
    const adj_status status = program_open(&p, &e->u, &s, "loss", e->train.f);
    if (status == ADJ_OK) {
        const adj_node *labels = program_input(&p, ADJ_I32, 0);
        e->labels = adj_node_type(labels);
        e->classes = classes_of(adj_node_graph(labels), labels);
    }
    program_close(&p);
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
    if ((o->updates != NULL) != (o->loss != NULL))
        return adj_error_set(error, ADJ_EARG, "adj_emit: %s without %s",
                             o->loss == NULL ? "updates" : "a loss",
                             o->loss == NULL ? "a loss" : "updates");
    if (o->prefix != NULL && !is_identifier(o->prefix, ADJ_EMIT_PREFIX))
        return adj_error_set(
            error, ADJ_EARG,
            "adj_emit: prefix is not an identifier (got \"%.60s\", expected a letter, "
            "then letters, digits and _, at most %d)",
            o->prefix, ADJ_EMIT_PREFIX);
    const adj_type y = adj_node_type(output),
                   loss = o->loss != NULL ? adj_node_type(o->loss) : (adj_type){0};
    if (y.dtype != ADJ_F32 || loss.dtype != ADJ_F32)
        return adj_error_set(error, ADJ_EDTYPE,
                             "adj_emit: output or loss has the wrong type (got %s, expected f32)",
                             adj_dtype_name(y.dtype != ADJ_F32 ? y.dtype : loss.dtype));
    return loss.shape.rank == 0
               ? ADJ_OK
               : adj_error_set(error, ADJ_ESHAPE, "adj_emit: the loss is no scalar (got %s)",
                               adj_shape_text(loss.shape).s);
}

static int memory_open(memory *m)
{
    m->f = open_memstream(&m->text, &m->length);
    return m->f != NULL;
}

/* Completes the text; returns 0 when out of memory. */
static int memory_end(memory *m)
{
    const int ok = m->f != NULL && fclose(m->f) == 0;
    m->f = NULL;
    return ok;
}

static adj_status make_parts(file *e, adj_exec *values, adj_node *output)
{
    const int opened =
        memory_open(&e->functions) & memory_open(&e->predict) & memory_open(&e->train);
    e->u.functions = e->functions.f;
    adj_status status = opened ? write_net(e, values, output) : ADJ_ENOMEM;
    if (status == ADJ_OK)
        status = write_training(e, values);
    const int ended = memory_end(&e->functions) & memory_end(&e->predict) & memory_end(&e->train);
    return opened && ended ? status
                           : adj_error_set(e->u.error, ADJ_ENOMEM, "adj_emit: out of memory");
}

adj_status adj_emit(adj_exec *e, adj_node *output, const adj_emit_opts *options, FILE *f,
                    adj_error *error)
{
    static const adj_emit_opts none = {0};
    static const adj_model_card unknown;
    file all = {.o = options != NULL ? options : &none};
    all.card = all.o->card != NULL ? all.o->card : &unknown;
    adj_status status = check_arguments(e, output, all.o, f, error);
    if (status != ADJ_OK)
        return status;
    snprintf(all.prefix, sizeof all.prefix, "%s", all.o->prefix != NULL ? all.o->prefix : "net");
    for (size_t i = 0; i < sizeof all.capital; i++)
        all.capital[i] = (char)toupper((unsigned char)all.prefix[i]);
    all.output = adj_node_type(output);
    status = unit_open(&all.u, all.prefix, error);
    if (status == ADJ_OK)
        status = make_parts(&all, e, output);
    if (status == ADJ_OK)
        status = put_file(&all, f);
    unit_close(&all.u);
    free(all.functions.text);
    free(all.predict.text);
    free(all.train.text);
    free(all.expected);
    return status;
}
