/* state.c - functions that set, save and load what training changes. */
#include <inttypes.h>
#include <math.h>

#include "base/hash.h"
#include "base/printable.h"
#include "program.h"

enum { HEADER = 16 }; /* bytes of a saved state before its arrays */

/* True if training changes the array. */
static int is_state(const array *a) { return a->is_used && a->is_written; }

static const adj_leaf_attrs *leaf_of(const array *a) { return a->leaf->attrs; }

/* True if a state starts with numbers of that distribution. */
static int has_init(const file *e, adj_init_kind kind)
{
    int found = 0;
    for (int i = 0; i < e->u.n_array; i++)
        found |= is_state(&e->u.array[i]) && leaf_of(&e->u.array[i])->init == kind;
    return found;
}

int state_is_random(const file *e)
{
    return has_init(e, ADJ_INIT_UNIFORM) || has_init(e, ADJ_INIT_NORMAL);
}

long long state_bytes(const file *e)
{
    long long bytes = HEADER;
    for (int i = 0; i < e->u.n_array; i++)
        if (is_state(&e->u.array[i]))
            bytes += (long long)adj_type_bytes(e->u.array[i].type);
    return bytes;
}

void put_state_prototypes(const file *e, FILE *f, const char *indent)
{
    fprintf(f,
            "%svoid %s_init(uint64_t seed);\n%svoid %s_save(uint8_t buffer[%lld]);\n"
            "%sint %s_load(const uint8_t buffer[%lld]);\n",
            indent, e->prefix, indent, e->prefix, state_bytes(e), indent, e->prefix,
            state_bytes(e));
}

/* ---- initial values ---- */

/* Writes the functions that draw, which are those of graph/rng.c in f32. */
static void put_draws(const file *e, FILE *f)
{
    if (!state_is_random(e))
        return;
    fputs("/* The random numbers of elements i and i + 1: below 1, times 2^53. */\n"
          "static void draw_pair(int i, uint64_t seed, uint64_t stream, uint64_t u[2])\n{\n"
          "    uint32_t word[4];\n"
          "    philox((uint32_t)(i / 2), (uint32_t)stream, (uint32_t)(stream >> 32), "
          "(uint32_t)seed,\n        (uint32_t)(seed >> 32), word);\n"
          "    u[0] = ((uint64_t)word[1] << 32 | word[0]) >> 11;\n"
          "    u[1] = ((uint64_t)word[3] << 32 | word[2]) >> 11;\n}\n\n",
          f);
    if (has_init(e, ADJ_INIT_UNIFORM))
        fputs("/* Uniform from low to most. */\n"
              "static void draw_uniform(float *x, int n, uint64_t seed, uint64_t stream, float "
              "low,\n    float range, float most)\n{\n"
              "    for (int i = 0; i < n; i += 2) {\n"
              "        uint64_t u[2];\n"
              "        draw_pair(i, seed, stream, u);\n"
              "        for (int k = 0; k < 2 && i + k < n; k++) {\n"
              "            const float v = low + range * ((float)u[k] * 1.1102230246251565e-16f);\n"
              "            x[i + k] = v < most ? v : most;\n"
              "        }\n    }\n}\n\n",
              f);
    if (has_init(e, ADJ_INIT_NORMAL))
        fputs("/* Normal, by Box and Muller: sqrt(-2 log(1 - u0)) * cos(2 pi u1). */\n"
              "static void draw_normal(float *x, int n, uint64_t seed, uint64_t stream, float "
              "mean,\n    float deviation)\n{\n"
              "    for (int i = 0; i < n; i += 2) {\n"
              "        uint64_t u[2];\n"
              "        draw_pair(i, seed, stream, u);\n"
              "        const float log_rest = u[0] >> 52 == 0\n"
              "            ? log1pf((float)u[0] * -1.1102230246251565e-16f)\n"
              "            : logf((float)((UINT64_C(1) << 53) - u[0]) * 1.1102230246251565e-16f);\n"
              "        const float radius = sqrtf(-2.0f * log_rest);\n"
              "        const float angle = (float)u[1] * 6.9757369960172635e-16f;\n"
              "        x[i] = mean + deviation * (radius * cosf(angle));\n"
              "        if (i + 1 < n)\n"
              "            x[i + 1] = mean + deviation * (radius * sinf(angle));\n"
              "    }\n}\n\n",
              f);
}

/* Returns the largest f32 below b, or a if the range is empty. */
static float most_of(double a, double b)
{
    const float most = (float)(a < b ? b : a);
    return a < b && (double)most >= b ? nextafterf(most, -INFINITY) : most;
}

/* Writes the initial values of an array: a draw, a number, or a copy of given values. */
static void put_initial(const array *a, FILE *f)
{
    const adj_leaf_attrs *l = leaf_of(a);
    const int64_t n = adj_shape_elems(a->type.shape);
    const uint64_t stream = hash_text(HASH_START, adj_node_name(a->leaf));
    const int is_float = a->type.dtype == ADJ_F32;
    if (l->init == ADJ_INIT_UNIFORM || l->init == ADJ_INIT_NORMAL) {
        fprintf(f, "    draw_%s(%s, %lld, seed, UINT64_C(%" PRIu64 "), %s, %s",
                l->init == ADJ_INIT_NORMAL ? "normal" : "uniform", a->name, (long long)n, stream,
                literal(l->a).s, literal(l->init == ADJ_INIT_NORMAL ? l->b : l->b - l->a).s);
        if (l->init == ADJ_INIT_UNIFORM)
            fprintf(f, ",\n        %s", literal((double)most_of(l->a, l->b)).s);
        fputs(");\n", f);
        return;
    }
    if (l->init == ADJ_INIT_CONSTANT) {
        fprintf(f, "    for (int i = 0; i < %lld; i++)\n        %s[i] = %s;\n", (long long)n,
                a->name, is_float ? literal(l->a).s : expr("%d", (int)l->a).s);
        return;
    }
    fprintf(f, "    {\n        static const %s given[%lld] = ", is_float ? "float" : "int32_t",
            (long long)n);
    put_elements(f, a->type.dtype, l->data, n);
    fprintf(f, ";\n        for (int i = 0; i < %lld; i++)\n            %s[i] = given[i];\n    }\n",
            (long long)n, a->name);
}

static void put_init(const file *e, FILE *f)
{
    put_draws(e, f);
    fprintf(f, "void %s_init(uint64_t seed)\n{\n", e->prefix);
    if (!state_is_random(e))
        fputs("    (void)seed;\n", f);
    for (int i = 0; i < e->u.n_array; i++)
        if (is_state(&e->u.array[i]))
            put_initial(&e->u.array[i], f);
    fputs("}\n\n", f);
}

/* ---- buffers ---- */

/* Returns the hash of the names and types of all states, and of the buffer's format. */
static uint64_t identity_of(const file *e)
{
    uint64_t hash = hash_text(HASH_START, "adjoint state 1");
    for (int i = 0; i < e->u.n_array; i++) {
        const array *a = &e->u.array[i];
        if (!is_state(a))
            continue;
        hash = hash_text(
            hash, expr("\n%s %s ", adj_dtype_name(a->type.dtype), shape_of(a->type.shape).s).s);
        hash = hash_text(hash, adj_node_name(a->leaf));
    }
    return hash;
}

/* Writes the list of states and the function that writes a buffer's head: identity and checksum. */
static void put_list(const file *e, FILE *f)
{
    fputs("/* Arrays that training changes, in the order of saved states. */\n"
          "static const struct {\n    void *data;\n    int bytes;\n} saved_array[] = {\n",
          f);
    for (int i = 0; i < e->u.n_array; i++)
        if (is_state(&e->u.array[i])) {
            fprintf(f, "    {%s, %zu}, /* ", e->u.array[i].name,
                    adj_type_bytes(e->u.array[i].type));
            put_in_comment(f, e->u.array[i].label);
            fputs(" */\n", f);
        }
    fprintf(
        f,
        "};\n\n"
        "/* The head of a saved state: a number for the names and shapes of its arrays, and the\n"
        " * checksum of its values (FNV-1a). */\n"
        "static void write_head(const uint8_t *buffer, uint8_t *head)\n{\n"
        "    uint64_t part[2] = {UINT64_C(%" PRIu64 "), UINT64_C(%" PRIu64 ")};\n"
        "    for (int i = %d; i < %s_STATE_BYTES; i++)\n"
        "        part[1] = (part[1] ^ buffer[i]) * UINT64_C(1099511628211);\n"
        "    for (int i = 0; i < %d; i++)\n"
        "        head[i] = ((const uint8_t *)part)[i];\n}\n\n",
        identity_of(e), HASH_START, HEADER, e->capital, HEADER);
}

static void put_buffers(const file *e, FILE *f)
{
    const expression loops =
        expr("    for (int i = 0; i < (int)(sizeof saved_array / sizeof saved_array[0]); i++)\n"
             "        for (int k = 0; k < saved_array[i].bytes; k++)\n");
    put_list(e, f);
    fprintf(f,
            "void %s_save(uint8_t buffer[%lld])\n{\n    uint8_t *to = buffer + %d;\n%s"
            "            *to++ = ((const uint8_t *)saved_array[i].data)[k];\n"
            "    write_head(buffer, buffer);\n}\n\n",
            e->prefix, state_bytes(e), HEADER, loops.s);
    fprintf(f,
            "int %s_load(const uint8_t buffer[%lld])\n{\n"
            "    const uint8_t *from = buffer + %d;\n    uint8_t head[%d];\n"
            "    write_head(buffer, head);\n"
            "    for (int i = 0; i < %d; i++)\n"
            "        if (buffer[i] != head[i])\n            return -1;\n%s"
            "            ((uint8_t *)saved_array[i].data)[k] = *from++;\n    return 0;\n}\n\n",
            e->prefix, state_bytes(e), HEADER, HEADER, HEADER, loops.s);
}

void put_state(const file *e, FILE *f)
{
    put_init(e, f);
    put_buffers(e, f);
}
