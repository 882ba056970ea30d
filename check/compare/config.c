/* config.c - "onednn:bf16:threads=1": what a configuration's text means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backend_option.h"
#include "base/nearest.h"
#include "exec/report.h"
#include "compare.h"

/* In the order of the versions of oneDNN that know them first: any, 3.0, 3.4. */
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

static const char *const words[] = {"f32",   "f64",      "f16",  "bf16",    "nhwc",  "nchw", "isa=",
                                    "impl=", "threads=", "fast", "unfused", "mixed", "tune"};
enum { N_WORD = sizeof words / sizeof *words };

/* An isa that the oneDNN here knows. */
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

/* before: the part before it. */
static adj_status read_part(const char *part, const char *before, adj_compare_config *c,
                            adj_error *error)
{
    const struct {
        const char *name;
        int *on;
    } switches[] = {{"fast", &c->fast}, {"unfused", &c->unfused}, {"tune", &c->tune}};
    const int is_f16 = strcmp(part, "f16") == 0, is_bf16 = strcmp(part, "bf16") == 0;
    adj_dtype dtype;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (strcmp(part, switches[i].name) == 0)
            return *switches[i].on = 1, ADJ_OK;
    if (strcmp(part, "mixed") == 0 || (strcmp(before, "mixed") == 0 && (is_f16 || is_bf16))) {
        c->precision = is_f16 ? ADJ_PRECISION_F16 : ADJ_PRECISION_BF16;
        return ADJ_OK;
    }
    if (adj_dtype_from_name(part, &dtype) == ADJ_OK && adj_is_float(dtype)) {
        c->dtype = dtype;
        c->has_dtype = 1;
        return ADJ_OK;
    }
    if (strcmp(part, "nhwc") == 0 || strcmp(part, "nchw") == 0) {
        c->format = part[1] == 'h' ? ADJ_NHWC : ADJ_NCHW;
        c->has_format = 1;
        return ADJ_OK;
    }
    if (strncmp(part, "threads=", 8) == 0)
        return read_threads(part + 8, c, error);
    if (strncmp(part, "impl=", 5) == 0 && part[5] != '\0' && strlen(part + 5) < sizeof c->impl) {
        snprintf(c->impl, sizeof c->impl, "%s", part + 5);
        return ADJ_OK;
    }
    if (strncmp(part, "isa=", 4) == 0)
        return read_isa(part + 4, c, error);
    return adj_error_set(error, ADJ_EARG, "configuration \"%s\": unknown part \"%s\"%s", c->name,
                         part,
                         did_you_mean(part, words, N_WORD, sizeof *words,
                                      "expected a type, nhwc, nchw, isa=, impl=, threads=, fast, "
                                      "unfused, mixed or tune")
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
    for (char *part = copy; part != NULL && status == ADJ_OK; k++) {
        char *colon = strchr(part, ':');
        if (colon != NULL)
            *colon = '\0';
        status = k == 0 ? read_backend(part, backends != NULL ? backends : adj_backends, out, error)
                        : read_part(part, before, out, error);
        before = k == 0 ? "" : part;
        part = colon != NULL ? colon + 1 : NULL;
    }
    return status;
}
