/* file.c - the text of the file, part by part: summary, declarations, arrays, functions, the public
 * functions, the test. */
#include "program.h"

#include <string.h>

#include "base/printable.h"

static long long elems(adj_type t) { return (long long)adj_shape_elems(t.shape); }

/* True if pixels are normalized by numbers of the model card. */
static int has_mean(const adj_model_card *c) { return c->deviation[0] > 0 && !c->normalized; }

/* Returns the parameter for a caller's arena. */
static const char *arena_parameter(const file *e)
{
    return (e->o->flags & ADJ_EMIT_CALLER_ARENA) ? ", float *arena" : "";
}

static expression predict_prototype(const file *e)
{
    return expr("int %s_predict(const float input[%lld], float output[%lld]%s)", e->prefix,
                elems(e->input), elems(e->output), arena_parameter(e));
}

/* before: what continues a line. */
static expression train_prototype(const file *e, const char *before)
{
    const int is_part = e->o->accumulate != NULL;
    return expr("int %s_%s(const float input[%lld], const int32_t labels[%lld],\n"
                "%s    %sfloat *loss%s)",
                e->prefix, is_part ? "accumulate" : "train_step", elems(e->input), elems(e->labels),
                before, is_part ? "" : "float learning_rate, ", arena_parameter(e));
}

static expression update_prototype(const file *e)
{
    return expr("int %s_update(float learning_rate%s)", e->prefix, arena_parameter(e));
}

/* Writes the prototypes of the public functions that compute, each after the indent. */
static void put_prototypes(const file *e, FILE *f, const char *indent)
{
    fprintf(f, "%s%s;\n", indent, predict_prototype(e).s);
    if (e->o->updates == NULL)
        return;
    fprintf(f, "%s%s;\n", indent, train_prototype(e, indent).s);
    if (e->o->accumulate != NULL)
        fprintf(f, "%s%s;\n", indent, update_prototype(e).s);
    put_state_prototypes(e, f, indent);
}

/* Bytes of constants, of what training changes, and of its initial values (none for arrays of
 * zeros); and the number of weights of 8 bits. */
typedef struct {
    long long constants, written, initial, rounded;
} sizes;

static sizes sizes_of(const file *e)
{
    sizes s = {0};
    for (int i = 0; i < e->u.n_array; i++) {
        const array *a = &e->u.array[i];
        const long long bytes = a->is_used ? (long long)adj_type_bytes(a->type) : 0;
        const char *data = a->data;
        *(a->is_written ? &s.written : &s.constants) += bytes;
        if (bytes > 0 && a->is_written &&
            (data[0] != 0 || memcmp(data, data + 1, (size_t)bytes - 1) != 0))
            s.initial += bytes;
        if (a->is_used_rounded) {
            s.rounded += elems(a->type);
            s.constants += elems(a->type) + a->n_scale * (long long)sizeof(float);
        }
    }
    return s;
}

static void put_summary(const file *e, FILE *f)
{
    const adj_emit_opts *o = e->o;
    const sizes bytes = sizes_of(e);
    fputs("/* ", f);
    put_in_comment(f, e->card->model != NULL ? e->card->model : "a network");
    fprintf(f, ", written by adjoint %s. C99; no library but the C math library.\n *\n",
            adj_version_text());
    put_prototypes(e, f, " *   ");
    fprintf(
        f, " *\n * input   %s, row-major%s\n * output  %s, row-major\n", shape_of(e->input.shape).s,
        has_mean(e->card) ? expr(": (pixel - mean) / deviation, by %s_normalize", e->prefix).s : "",
        shape_of(e->output.shape).s);
    if (o->updates != NULL)
        fprintf(f, " * labels  classes from 0 to %lld; -1: the image is ignored\n",
                (long long)e->classes - 1);
    if (o->accumulate != NULL)
        fprintf(f,
                " *\n * %s_accumulate adds the gradients of its images to sums. %s_update makes a "
                "step\n * with their means over the calls since the last one.\n",
                e->prefix, e->prefix);
    if (o->updates != NULL)
        fprintf(f,
                " *\n * %s_init sets what training changes to its initial values. %s_load reads a "
                "buffer\n * written by %s_save; it returns -1 and changes nothing if the buffer is "
                "of another net\n * or damaged.\n",
                e->prefix, e->prefix, e->prefix);
    fprintf(f,
            " *\n * Functions return 0%s.\n * %s\n"
            " * RAM: %zu bytes of arena%s. Flash: %lld bytes of constants%s%s. */\n",
            o->updates != NULL ? ", or -1 for a label out of range" : "",
            !(o->flags & ADJ_EMIT_CALLER_ARENA)
                ? "The arena is static: one call at a time."
                : expr("The arena is the caller's: %s_ARENA_BYTES, aligned as a\n"
                       " * float; no call needs what another has left there.",
                       e->capital)
                      .s,
            e->u.arena_bytes,
            o->updates != NULL ? expr(", %lld of parameters and states", bytes.written).s : "",
            bytes.constants,
            o->flags & ADJ_EMIT_INT8_WEIGHTS
                ? expr(",\n * %lld of them weights of 8 bits", bytes.rounded).s
                : "",
            o->updates != NULL ? expr(",\n * %lld of initial values", bytes.initial).s : "");
}

static void put_declarations(const file *e, FILE *f)
{
    const adj_emit_opts *o = e->o;
    fprintf(f,
            "#include <math.h>\n#include <stdint.h>\n\n"
            "enum {\n    %s_INPUT_SIZE = %lld,\n    %s_OUTPUT_SIZE = %lld,\n",
            e->capital, elems(e->input), e->capital, elems(e->output));
    if (o->updates != NULL)
        fprintf(f, "    %s_STATE_BYTES = %lld,\n", e->capital, state_bytes(e));
    fprintf(f, "    %s_ARENA_BYTES = %zu\n};\n\n", e->capital, e->u.arena_bytes);
    fputs("#ifdef __cplusplus\n#define restrict __restrict\nextern \"C\" {\n#endif\n", f);
    put_prototypes(e, f, "");
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

/* Writes the integers and the scales of a filter. */
static void put_rounded(const array *a, FILE *f)
{
    fputs("/* ", f);
    put_in_comment(f, a->label);
    fprintf(f,
            "%s %s as integers, and the scales of its channels */\nstatic const int8_t %s[%lld] = ",
            a->leaf == NULL ? ", folded" : "", shape_of(a->type.shape).s, a->rounded_name,
            elems(a->type));
    put_bytes(f, a->rounded, elems(a->type));
    fprintf(f, ";\n\nstatic const float %s[%lld] = ", a->scale_name, (long long)a->n_scale);
    put_elements(f, ADJ_F32, a->scale, a->n_scale);
    fputs(";\n\n", f);
}

static void put_arrays(const file *e, FILE *f)
{
    for (int i = 0; i < e->u.n_array; i++) {
        const array *a = &e->u.array[i];
        if (a->is_used_rounded)
            put_rounded(a, f);
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
    if (e->u.arena_bytes > 0 && !(e->o->flags & ADJ_EMIT_CALLER_ARENA))
        fprintf(f, "static float arena[%s_ARENA_BYTES / sizeof(float)];\n\n", e->capital);
    if (e->u.uses_philox || (e->o->updates != NULL && state_is_random(e)))
        put_philox(f);
    if (e->u.uses_tanh)
        put_tanh(f);
}

/* Returns a statement for an arena that a function does not use. */
static const char *arena_unused(const file *e, const part *p)
{
    return (e->o->flags & ADJ_EMIT_CALLER_ARENA) && !p->uses_arena ? "    (void)arena;\n" : "";
}

static void put_train_step(const file *e, FILE *f)
{
    const int one = elems(e->labels) == 1;
    if (e->o->updates == NULL)
        return;
    fprintf(f, "%s\n{\n", train_prototype(e, "").s);
    if (!one)
        fprintf(f, "    for (int i = 0; i < %lld; i++)\n    ", elems(e->labels));
    fprintf(f, "    if (labels[%s] < -1 || labels[%s] >= %lld)\n%s        return -1;\n",
            one ? "0" : "i", one ? "0" : "i", (long long)e->classes, one ? "" : "    ");
    fprintf(f, "%s%s    return 0;\n}\n\n", arena_unused(e, &e->train), e->train.calls.text);
    if (e->o->accumulate != NULL)
        fprintf(f, "%s\n{\n%s%s    return 0;\n}\n\n", update_prototype(e).s,
                arena_unused(e, &e->update), e->update.calls.text);
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

static void put_test(const file *e, FILE *f)
{
    fprintf(f,
            "#ifdef %s_TEST\n/* The reference's result for the example. */\n"
            "static const float expected[%lld] = ",
            e->capital, elems(e->output));
    put_elements(f, ADJ_F32, e->expected, elems(e->output));
    fprintf(
        f,
        ";\n\n/* Returns 0, or the number of the first result that is not as expected, from 1. "
        "*/\nint %s_test(void)\n{\n"
        "    static float input[%lld], output[%lld];\n%s    float largest = 1.0f;\n"
        "    for (int i = 0; i < %lld; i++)\n"
        "        input[i] = (float)((i * 7 + 3) %% 17) / 8.0f - 1.0f;\n"
        "    %s_predict(input, output%s);\n"
        "    for (int i = 0; i < %lld; i++)\n"
        "        largest = fabsf(expected[i]) > largest ? fabsf(expected[i]) : largest;\n"
        "    for (int i = 0; i < %lld; i++)\n"
        "        if (!(fabsf(output[i] - expected[i]) <= 1e-4f * largest))\n"
        "            return i + 1;\n    return 0;\n}\n#endif\n",
        e->prefix, elems(e->input), elems(e->output),
        (e->o->flags & ADJ_EMIT_CALLER_ARENA)
            ? expr("    static float arena[%s_ARENA_BYTES / sizeof(float) + 1];\n", e->capital).s
            : "",
        elems(e->input), e->prefix, (e->o->flags & ADJ_EMIT_CALLER_ARENA) ? ", arena" : "",
        elems(e->output), elems(e->output));
}

adj_status put_file(const file *e, FILE *f)
{
    put_summary(e, f);
    put_declarations(e, f);
    put_arrays(e, f);
    fputs(e->functions.text, f);
    fprintf(f, "%s\n{\n%s%s    return 0;\n}\n\n", predict_prototype(e).s,
            arena_unused(e, &e->predict), e->predict.calls.text);
    put_train_step(e, f);
    if (e->o->updates != NULL)
        put_state(e, f);
    put_normalize(e, f);
    put_classes(e, f);
    put_test(e, f);
    return fflush(f) != 0 || ferror(f)
               ? adj_error_set(e->u.error, ADJ_EIO, "adj_emit: the file cannot be written")
               : ADJ_OK;
}
