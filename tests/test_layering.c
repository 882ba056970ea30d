/* test_layering.c - dependencies of the folders, read from the sources' #include lines.
 *
 * A header is named by its file alone if it is in the same folder or public, else by its path from
 * the project's folder. The floors stand on each other: each may include what the table allows, so
 * a core header cannot slip into an op, nor a backend into the core. Sub-folders without a row
 * follow the row of the folder that they are in. Run from the project's folder; skipped elsewhere.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const char *of;      /* a folder, or several */
    const char *headers; /* public ones */
    const char *folders; /* folders whose headers may be included by their path */
} rule;

static const rule rules[] = {
    {"include", "adjoint.h adjoint_ops.h adjoint_nn.h adjoint_data.h adjoint_io.h", ""},
    {"base", "adjoint.h adjoint_ext.h", ""},
    {"graph", "adjoint.h adjoint_ext.h", "base"},
    {"graph/passes", "adjoint.h", "graph"},
    {"exec", "adjoint.h adjoint_ext.h", "base graph graph/passes base/machine"},
    {"exec/tune", "adjoint.h", "base graph exec base/machine"},
    {"base/machine", "", "base"},
    {"check", "adjoint.h adjoint_check.h",
     "base check graph ops/grad.h ops/attr_lists.h exec/candidate.h exec/exec.h exec/internal.h "
     "exec/memory.h exec/report.h exec/run.h base/machine"},
    {"check/gradcheck", "adjoint.h adjoint_check.h",
     "base check check/compare graph ops/grad.h exec/exec.h exec/internal.h exec/report.h"},
    {"ops", "adjoint.h", "ops/rules graph/op.h"},
    {"ops/rules", "adjoint.h", "ops graph/op.h"},
    {"ops/nn", "adjoint.h adjoint_nn.h", "base ops graph/op.h"},
    {"backends", "adjoint.h", "base/machine ops/grad.h graph/op.h"},
    {"backends/mpi", "adjoint_mpi.h", "base graph/op.h"},
    {"backends/onednn", "adjoint.h", "backends graph/op.h"},
    {"backends/direct", "adjoint.h",
     "base base/machine backends backends/direct/fused_pointwise backends/direct/depthwise "
     "backends/direct/conv_bf16 backends/direct/filter_bf16 backends/direct/filter_gemm "
     "backends/direct/gemm backends/direct/group_norm backends/direct/max_pool "
     "backends/direct/winograd graph/op.h"},
    {"backends/direct/fused_pointwise", "adjoint.h", "backends/direct ops/grad.h graph/op.h"},
    {"backends/direct/depthwise backends/direct/conv_bf16 backends/direct/filter_bf16 "
     "backends/direct/filter_gemm backends/direct/group_norm backends/direct/max_pool "
     "backends/direct/winograd",
     "adjoint.h", "backends/direct graph/op.h"},
    {"backends/direct/gemm", "adjoint.h",
     "backends/direct backends/direct/fused_pointwise graph/op.h"},
    {"io", "adjoint.h adjoint_nn.h adjoint_io.h", "base"}, /* no part of the graph */
    {"io/data", "adjoint.h adjoint_data.h", "base io/io.h io/json.h"},
    {"train", "adjoint.h adjoint_data.h adjoint_fit.h adjoint_nn.h adjoint_io.h",
     "base exec/internal.h io/io.h io/tensors/formats.h "
     "io/weights/weights.h ops/nn/model_list.h ops/nn/names.h graph/op.h exec/report.h "
     "io/data/origin.h"},
    {"io/tensors", "adjoint.h adjoint_io.h", "base io io/data/array.h io/data/packed.h graph/op.h"},
    {"io/weights", "adjoint.h adjoint_nn.h adjoint_io.h",
     "base io io/tensors ops/nn/names.h graph/op.h"},
    {"emit", "adjoint.h adjoint_emit.h adjoint_ext.h", "base exec/exec.h graph ops/grad.h"},
    {"onnx", "adjoint.h adjoint_data.h adjoint_io.h adjoint_nn.h adjoint_onnx.h",
     "base graph/op.h ops/grad.h ops/nn/names.h"},
    {"cli",
     "adjoint.h adjoint_check.h adjoint_ext.h adjoint_fit.h adjoint_mpi.h adjoint_nn.h "
     "adjoint_io.h adjoint_onnx.h",
     "base base/machine check/inspect.h emit/tool.h onnx/details.h io/io.h "
     "io/tensors/formats.h "
     "ops/nn/model_list.h ops/nn/names.h graph/op.h exec/report.h train/internal.h"},
    {"cli/op", "adjoint.h adjoint_check.h adjoint_nn.h adjoint_io.h",
     "base check/inspect.h cli io/tensors/formats.h graph/op.h ops/attr_lists.h"},
    {"cli/bench", "adjoint.h adjoint_check.h adjoint_fit.h adjoint_nn.h adjoint_io.h",
     "base check/inspect.h cli cli/op exec/candidate.h base/machine graph/op.h "
     "exec/internal.h exec/report.h ops/attr_lists.h"},
    {"cli/emit", "adjoint.h adjoint_data.h adjoint_emit.h adjoint_fit.h adjoint_nn.h adjoint_io.h",
     "cli cli/train/data.h emit/tool.h train/internal.h"},
    {"cli/compare", "adjoint.h adjoint_check.h adjoint_nn.h adjoint_io.h",
     "base cli cli/op check/inspect.h graph/op.h exec/internal.h"},
    {"cli/page", "", "base"},
    {"cli/gradcheck", "adjoint.h adjoint_check.h adjoint_nn.h adjoint_io.h",
     "base check/inspect.h cli cli/op graph/op.h exec/internal.h"},
    {"cli/convert", "adjoint.h adjoint_nn.h adjoint_io.h adjoint_onnx.h",
     "cli io/tensors/formats.h io/weights/weights.h"},
    {"cli/predict", "adjoint.h adjoint_fit.h",
     "base cli cli/page io/data/names.h io/data/origin.h io/data/string_list.h"},
    {"cli/graph", "adjoint.h adjoint_nn.h", "base cli exec/report.h graph/op.h"},
    {"cli/inspect", "adjoint.h adjoint_io.h", "cli io/tensors/formats.h graph/op.h"},
    {"cli/train", "adjoint.h adjoint_data.h adjoint_fit.h adjoint_nn.h adjoint_io.h",
     "base cli cli/page base/machine io/data/names.h io/json.h io/io.h "
     "io/tensors/formats.h ops/nn/model_list.h ops/nn/names.h ops/nn/range_test.h exec/report.h "
     "io/data/origin.h train/internal.h"},
    {"tools", "adjoint.h adjoint_check.h",
     "base check/inspect.h cli graph/op.h exec/report.h ops/grad.h"},
    {"examples",
     "adjoint.h adjoint_check.h adjoint_data.h adjoint_ext.h adjoint_fit.h adjoint_nn.h "
     "adjoint_io.h",
     ""},
    {"examples/cortex_m", "net.c", ""}, /* net.c is emitted */
};

/* Names that only one folder of the project may use. */
static const struct {
    const char *word, *folders; /* with all below them */
} confined[] = {
    {"<oneapi/dnnl", "backends/onednn"},
    {"<dnnl", "backends/onednn"},
    {"<zlib.h>", "io"},
    {"<png.h>", "io/data cli/page"},
    {"<turbojpeg.h>", "io/data"},
    {"<webp/decode.h>", "io/data"},
    {"<zip.h>", "io/data"},
    {"<jansson.h>", "io cli"},
    {"<criterion", ""},
    {"<mpi.h>", "backends/mpi"},
    {"<onnx.pb-c.h>", "onnx"},
};

typedef struct {
    int files, wrong;
    char message[4096];
} report;

static void complain(report *r, const char *path, int line, const char *included)
{
    size_t n = strlen(r->message);
    snprintf(r->message + n, sizeof r->message - n, "\n  %s:%d includes %s", path, line, included);
    r->wrong++;
}

static int is_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return 1;
    return 0;
}

static int is_file(const char *folder, const char *name)
{
    char path[512];
    struct stat s;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* Whether the folder is in list, or one that it is in. */
static int is_within(const char *list, const char *folder)
{
    char above[256];
    snprintf(above, sizeof above, "%s", folder);
    for (char *slash = above; slash != NULL; slash = strrchr(above, '/')) {
        if (slash != above)
            *slash = '\0';
        if (is_word(list, above))
            return 1;
    }
    return 0;
}

/* Whether list has the header's path, or its folder. */
static int is_allowed(const char *list, const char *header)
{
    char folder[256];
    snprintf(folder, sizeof folder, "%s", header);
    *strrchr(folder, '/') = '\0';
    return (is_word(list, header) || is_word(list, folder)) && is_file(".", header);
}

static void check_line(report *r, const rule *rule, const char *folder, const char *path, int line,
                       const char *text)
{
    char name[256];
    if (sscanf(text, "#include \"%255[^\"]\"", name) == 1) {
        int allowed = strchr(name, '/') != NULL
                          ? is_allowed(rule->folders, name)
                          : is_file(folder, name) || is_word(rule->headers, name);
        if (!allowed)
            complain(r, path, line, name);
        return;
    }
    if (strncmp(text, "#include <", 10) != 0)
        return;
    for (size_t i = 0; i < sizeof confined / sizeof *confined; i++)
        if (strncmp(text + 9, confined[i].word, strlen(confined[i].word)) == 0 &&
            !is_within(confined[i].folders, folder))
            complain(r, path, line, confined[i].word);
}

static void check_file(report *r, const rule *rule, const char *folder, const char *path)
{
    char text[1024];
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    r->files++;
    for (int line = 1; fgets(text, sizeof text, f) != NULL; line++)
        check_line(r, rule, folder, path, line, text);
    fclose(f);
}

static int is_source(const char *name)
{
    size_t n = strlen(name);
    return n > 2 && (strcmp(name + n - 2, ".c") == 0 || strcmp(name + n - 2, ".h") == 0);
}

/* The folder and all below it, each by its own row or that of the folder above. */
static void check_folder(report *r, const rule *above, const char *folder)
{
    const rule *rule = above;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (is_word(rules[i].of, folder))
            rule = &rules[i];
    DIR *d = opendir(folder);
    cr_assert(d != NULL && rule != NULL, "%s", folder);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[512];
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &s) != 0)
            continue;
        if (S_ISDIR(s.st_mode))
            check_folder(r, rule, path);
        else if (is_source(e->d_name))
            check_file(r, rule, folder, path);
    }
    closedir(d);
}

Test(layering, includes)
{
    if (!is_file("include", "adjoint.h"))
        cr_skip_test("layering: no sources here; run it from the project's folder");
    report r = {0};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strchr(rules[i].of, '/') == NULL)
            check_folder(&r, NULL, rules[i].of);
    cr_assert_gt(r.files, 300);
    cr_assert_eq(r.wrong, 0, "%d of design section 2's rules are broken:%s", r.wrong, r.message);
}
