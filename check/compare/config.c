/* config.c - parses a configuration such as "onednn:bf16:threads=1", and rebuilds nodes in its
 * float type and data format.
 *
 * An op in the other format reads transposed operands, and its result is transposed back. Every
 * rebuilt node keeps its shape, so that elements are compared one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backend_option.h"
#include "base/nearest.h"
#include "exec/report.h"
#include "compare.h"

/* Instruction sets by the first oneDNN version that has them: any, 3.0, 3.4. */
static const char *const isas[] = {"sse41",
                                   "avx",
                                   "avx2",
                                   "avx2_vnni",
                                   "avx512_core",
                                   "avx512_core_vnni",
                                   "avx512_core_bf16",
                                   "avx512_core_amx",
                                   "all",
                                   "avx2_vnni_2",
                                   "avx512_core_fp16",
                                   "avx512_core_amx_fp16",
                                   "avx10_1_512",
                                   "avx10_1_512_amx",
                                   "avx10_1_512_amx_fp16"};
enum { N_ISA = sizeof isas / sizeof *isas, IN_ANY = 9, IN_3_0 = 12 };

const adj_compare_config naive_f64 = {
    .name = "naive:f64", .backend = "naive", .has_dtype = 1, .dtype = ADJ_F64};

static const char *const words[] = {"f32",     "f64",   "f16",   "bf16",     "nhwc",
                                    "nchw",    "isa=",  "impl=", "threads=", "fast",
                                    "unfused", "mixed", "tune",  "recompute"};
enum { N_WORD = sizeof words / sizeof *words };

/* Parses an instruction set that this oneDNN has. */
static adj_status read_isa(const char *text, adj_compare_config *c, adj_error *error)
{
    char version[64] = "", known[320] = "", *point;
    (void)adj_backend_describe("onednn", version, sizeof version);
    long here = 100 * strtol(version, &point, 10);
    here += *point == '.' ? strtol(point + 1, NULL, 10) : 0;
    const int n = here < 300 ? IN_ANY : here < 304 ? IN_3_0 : N_ISA;
    snprintf(c->isa, sizeof c->isa, "%s", text);
    for (int i = 0, used = 0; i < n; i++) {
        if (strcmp(text, isas[i]) == 0)
            return ADJ_OK;
        used += snprintf(known + used, sizeof known - (size_t)used, "%s%s",
                         i > 0 ? ", " : "it knows ", isas[i]);
    }
    for (int i = n; i < N_ISA; i++)
        if (strcmp(text, isas[i]) == 0)
            return adj_error_set(error, ADJ_EARG,
                                 "configuration \"%s\": oneDNN %.*s knows no isa \"%s\" (%s)",
                                 c->name, (int)strcspn(version, " "), version, text, known);
    return adj_error_set(error, ADJ_EARG, "configuration \"%s\": unknown isa \"%s\"%s", c->name,
                         text, did_you_mean(text, isas, n, sizeof *isas, known).s);
}

/* "onednn", or "onednn,max_pool=naive" */
static adj_status read_backend(const char *text, const adj_backend *const *backends,
                               adj_compare_config *c, adj_error *error)
{
    char prefix[sizeof c->name + 20];
    snprintf(prefix, sizeof prefix, "configuration \"%s\": ", c->name);
    snprintf(c->backend, sizeof c->backend, "%s", text);
    return check_backend_option(text, backends, prefix, error);
}

static adj_status read_threads(const char *text, adj_compare_config *c, adj_error *error)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > 1024)
        return adj_error_set(error, ADJ_EARG,
                             "configuration \"%s\": threads is wrong (got \"%s\", expected 1 to "
                             "1024)",
                             c->name, text);
    c->threads = (int)n;
    return ADJ_OK;
}

/* Parses one word; before: the word before it. */
static adj_status read_word(const char *word, const char *before, adj_compare_config *c,
                            adj_error *error)
{
    const struct {
        const char *name;
        int *on;
    } switches[] = {{"fast", &c->fast},
                    {"unfused", &c->unfused},
                    {"tune", &c->tune},
                    {"recompute", &c->recompute}};
    const int is_f16 = strcmp(word, "f16") == 0, is_bf16 = strcmp(word, "bf16") == 0;
    adj_dtype dtype;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(word, switches[i].name) == 0)
            return *switches[i].on = 1, ADJ_OK;
    if (strcmp(word, "mixed") == 0 || (strcmp(before, "mixed") == 0 && (is_f16 || is_bf16))) {
        c->precision = is_f16 ? ADJ_PRECISION_F16 : ADJ_PRECISION_BF16;
        return ADJ_OK;
    }
    if (adj_dtype_from_name(word, &dtype) == ADJ_OK && adj_is_float(dtype)) {
        c->dtype = dtype;
        c->has_dtype = 1;
        return ADJ_OK;
    }
    if (strcmp(word, "nhwc") == 0 || strcmp(word, "nchw") == 0) {
        c->format = word[1] == 'h' ? ADJ_NHWC : ADJ_NCHW;
        c->has_format = 1;
        return ADJ_OK;
    }
    if (strncmp(word, "threads=", 8) == 0)
        return read_threads(word + 8, c, error);
    if (strncmp(word, "impl=", 5) == 0 && word[5] != '\0' && strlen(word + 5) < sizeof c->impl) {
        snprintf(c->impl, sizeof c->impl, "%s", word + 5);
        return ADJ_OK;
    }
    if (strncmp(word, "isa=", 4) == 0)
        return read_isa(word + 4, c, error);
    return adj_error_set(error, ADJ_EARG, "configuration \"%s\": unknown word \"%s\"%s", c->name,
                         word,
                         did_you_mean(word, words, N_WORD, sizeof *words,
                                      "expected a type, nhwc, nchw, isa=, impl=, threads=, fast, "
                                      "unfused, mixed, tune or recompute")
                             .s);
}

adj_status adj_compare_config_parse(const char *text, const adj_backend *const *backends,
                                    adj_compare_config *out, adj_error *error)
{
    char copy[sizeof out->name];
    if (text == NULL || out == NULL)
        return adj_error_set(error, ADJ_EARG, "configuration: %s is NULL",
                             text == NULL ? "text" : "out");
    memset(out, 0, sizeof *out);
    if (strlen(text) >= sizeof copy || text[0] == '\0')
        return adj_error_set(
            error, ADJ_EARG,
            "configuration \"%.70s\": its length is wrong (expected 1 to %d letters)", text,
            (int)sizeof copy - 1);
    snprintf(out->name, sizeof out->name, "%s", text);
    snprintf(copy, sizeof copy, "%s", text);
    adj_status status = ADJ_OK;
    const char *before = "";
    int k = 0;
    for (char *word = copy; word != NULL && status == ADJ_OK; k++) {
        char *colon = strchr(word, ':');
        if (colon != NULL)
            *colon = '\0';
        status = k == 0 ? read_backend(word, backends != NULL ? backends : adj_backends, out, error)
                        : read_word(word, before, out, error);
        before = k == 0 ? "" : word;
        word = colon != NULL ? colon + 1 : NULL;
    }
    return status;
}

adj_dtype config_dtype(const adj_compare_config *c, adj_dtype dtype)
{
    return c->has_dtype && adj_is_float(dtype) ? c->dtype : dtype;
}

/* ---- element types ---- */

static adj_node *rebuild_const(const adj_compare_config *c, adj_graph *to, const adj_node *n)
{
    const adj_const_attrs *a = n->attrs;
    adj_dtype from = (adj_dtype)a->dtype, dtype = config_dtype(c, from);
    int64_t elems = adj_shape_elems(a->shape);
    void *data = adj_graph_alloc(to, (size_t)elems * adj_dtype_size(dtype));
    if (data == NULL)
        return NULL;
    adj_convert(from, a->data, dtype, data, elems);
    return adj_const(to, dtype, a->shape, data);
}

/* ---- data formats ---- */

enum { MAX_OPERANDS = 8 }; /* operands of an op on images, or with statistics */
static const int to_nchw[] = {0, 3, 1, 2}, to_nhwc[] = {0, 2, 3, 1};

/* Rebuilds an op in the other format between transposes; NULL if it has no format. */
static adj_node *reformat(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                          adj_node *const in[], void *attrs)
{
    const unsigned images = n->op->images;
    adj_node *operand[MAX_OPERANDS];
    if (n->n_in > MAX_OPERANDS || !adj_set_format(n, attrs, c->format))
        return NULL;
    const int *there = c->format == ADJ_NCHW ? to_nchw : to_nhwc;
    const int *back = c->format == ADJ_NCHW ? to_nhwc : to_nchw;
    for (int k = 0; k < n->n_in; k++)
        operand[k] = images >> k & 1 ? adj_transpose(in[k], 4, there) : in[k];
    adj_node *y = adj_node_new(to, n->op, n->n_in, operand, attrs);
    return images & ADJ_IMAGE_RESULT ? adj_transpose(y, 4, back) : y;
}

static adj_node *rebuild(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                         adj_node *const in[])
{
    _Alignas(16) char attrs[MAX_ATTR];
    if (n->op->schema == NULL)
        return adj_node_new(to, n->op, n->n_in, in, NULL);
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    if (c->has_dtype && n->op->flags & ADJ_OP_TYPED)
        *(int64_t *)(void *)attrs = config_dtype(c, (adj_dtype) * (int64_t *)(void *)attrs);
    if (c->has_format) {
        adj_node *y = reformat(c, to, n, in, attrs);
        if (y != NULL || adj_graph_status(to) != ADJ_OK)
            return y;
    }
    return adj_node_new(to, n->op, n->n_in, in, attrs);
}

/* Every float gets the configuration's type, except operands that a half op keeps in f32 (batch
 * norm statistics and parameters) and such results: casts surround them. */
adj_node *config_rule(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                      adj_node *const in[])
{
    adj_node *wide[MAX_OPERANDS] = {NULL};
    int is_half = c->has_dtype && adj_is_half(c->dtype);
    if (n->op == &adj_op_const)
        return rebuild_const(c, to, n);
    if (is_half && (n->op->flags & ADJ_OP_HALF_IMAGES) && n->n_in <= MAX_OPERANDS) {
        for (int k = 0; k < n->n_in; k++)
            wide[k] = has_half_operand(n->op, k) || !adj_is_float(n->in[k]->type.dtype)
                          ? in[k]
                          : adj_cast(in[k], ADJ_F32);
        in = wide;
    }
    adj_node *y = rebuild(c, to, n, in);
    if (y != NULL && y->type.dtype != config_dtype(c, n->type.dtype))
        y = adj_cast(y, config_dtype(c, n->type.dtype));
    return y;
}
