/* test_standard.c - "-" where a command takes the name of a file: standard input and output give
 * the same results as files, or a message. */
#include <criterion/criterion.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/small_data.h"
#include "io/data/files.h"
#include "tests/plan.h"

static finished r;

/* Runs the line in the folder of the test, where the shell finds the tool as $tool. Its status; r
 * has what it printed. */
static int shell(const folder *f, const char *line)
{
    static char command[2048];
    const char *build = getenv("BUILD");
    char tool[4096];
    const file_name out = in_folder(f, ".out"), err = in_folder(f, ".err");
    cr_assert_not_null(realpath(build != NULL ? build : "build", tool));
    setenv("build", tool, 1);
    snprintf(command, sizeof command,
             "cd '%s' && tool=\"$build/adjoint\" && { %s; } >.out 2>.err </dev/null", f->path,
             line);
    r.status = exit_status(system(command)); // NOLINT(cert-env33-c): the test's own words
    FILE *printed = fopen(out.s, "r"), *complained = fopen(err.s, "r");
    cr_assert(printed != NULL && complained != NULL);
    take(printed, r.out);
    take(complained, r.err);
    unlink(out.s);
    unlink(err.s);
    return r.status;
}

static void expect_success(const folder *f, const char *line)
{
    cr_expect_eq(shell(f, line), 0, "%s: %d\n%s%s", line, r.status, r.out, r.err);
}

/* A tensor each of 6 and 3 elements. */
static folder put_tensors(void)
{
    static const float a[6] = {0.5F, -1, 2, 3, 4, 5};
    static const int64_t b[3] = {1, -2, 3};
    const adj_tensor tensors[] = {{"a", ADJ_ELEM_F32, {2, {2, 3}}, a},
                                  {"b", ADJ_ELEM_I64, {1, {3}}, b}};
    const adj_metadata note = {"note", "kept"};
    folder f = folder_new();
    cr_assert_eq(adj_tensors_write(in_folder(&f, "t.safetensors").s, 2, tensors, 1, &note, NULL),
                 ADJ_OK);
    return f;
}

Test(standard, inspect)
{
    scoped(folder_remove) folder f = put_tensors();
    expect_success(&f, "$tool inspect t.safetensors >file; $tool inspect - <t.safetensors >in; "
                       "test -s in && cmp file in");
    expect_success(&f, "cat t.safetensors | $tool inspect --json - | grep -q '\"file\": *\"-\"'");
    /* NumPy's file has no name for its array */
    expect_success(&f, "$tool convert t.safetensors b.npy --tensor b && $tool inspect - <b.npy");
    expect_text(r.out, "\narr_0 ");
    cr_expect_eq(shell(&f, "head -c 20 t.safetensors | $tool inspect -"), 1);
    expect_text(r.err, "standard input: ");
    cr_expect_null(strstr(r.err, "/proc/"), "%s", r.err);
    cr_expect_eq(shell(&f, "$tool inspect - <&-"), 1, "%d", r.status);
}

Test(standard, convert)
{
    static const char *const formats[] = {"safetensors", "npz", "npy", "h"};
    scoped(folder_remove) folder f = put_tensors();
    for (int i = 0; i < 4; i++) {
        char line[600];
        snprintf(line, sizeof line,
                 "$tool convert t.safetensors file.%s --tensor a && "
                 "$tool convert - - --tensor a --format %s <t.safetensors >piped && "
                 "cmp file.%s piped",
                 formats[i], formats[i], formats[i]);
        expect_success(&f, line);
        expect_text(r.err, "1 tensor written to standard output");
    }
    expect_success(&f, "$tool inspect file.safetensors");
    expect_text(r.out, "1 tensor, 6 elements, 24 bytes");
    /* through all of them and back, with what the header says of the first */
    expect_success(&f, "$tool convert - - --format safetensors <t.safetensors | "
                       "$tool convert - same.safetensors && cmp same.safetensors t.safetensors");
    expect_success(&f, "$tool convert t.safetensors - --format npz | "
                       "$tool convert - odd.name --format npz && $tool inspect odd.name");
    expect_text(r.out, "2 tensors, 9 elements, 48 bytes");
    cr_expect_eq(shell(&f, "$tool convert t.safetensors -"), 3);
    expect_text(r.err, "or --format (got -)");
    cr_expect_eq(shell(&f, "$tool convert - - --format npy <t.safetensors"), 1);
    expect_text(r.err, "holds one tensor (got 2; select one with --tensor NAME)");
    cr_expect_str_empty(r.out);
    cr_expect_eq(shell(&f, "$tool convert - - --format npz <t.safetensors >/dev/full"), 1);
    expect_text(r.err, "standard output cannot be written");
    cr_expect_eq(shell(&f, "$tool convert - x.npz --map - <t.safetensors"), 3);
    expect_text(r.err, "IN and --map cannot both be standard input");
}

/* Messages that say what is there, or what to do. */
Test(standard, messages_about_files)
{
    scoped(folder_remove) folder f = put_tensors();
    cr_expect_eq(shell(&f, "printf x >cut.onnx; $tool inspect cut.onnx"), 1);
    cr_expect(strncmp(r.err, "adjoint inspect: cut.onnx: is not an ONNX file", 46) == 0, "%s",
              r.err);
    cr_expect_eq(shell(&f, "printf hello >m.txt; $tool train --model m.txt --data digits"), 3);
    expect_text(r.err, "--model: expected a model's name or an ONNX file; m.txt: not "
                       "a file of tensors (got text, ");
    cr_expect_eq(shell(&f, "$tool train --model t.safetensors --data digits"), 3);
    expect_text(r.err, "t.safetensors holds weights (set --weights FILE)");
    cr_expect_eq(shell(&f, "$tool convert t.safetensors m.npz --map pytorch --model lenet"), 1);
    expect_text(r.err, "has no tensor conv1.weight (for conv1/w); other names need a "
                       "map file: edit that of adjoint convert --map pytorch "
                       "--model lenet\n");
}

/* A map file as well; an unknown model is reported. */
Test(standard, convert_maps)
{
    scoped(folder_remove) folder f = put_tensors();
    expect_success(&f, "echo 'ours = a, permute 1 0' | $tool convert t.safetensors m.npz --map - "
                       "&& $tool inspect m.npz");
    expect_text(r.out, "\nours ");
    expect_text(r.out, "[3, 2]");
    cr_expect_eq(shell(&f, "echo 'ours = ' | $tool convert t.safetensors m.npz --map -"), 1);
    cr_expect(strstr(r.err, "standard input: line 1") != NULL, "%s", r.err);
    cr_expect_eq(shell(&f, "$tool convert --map pytorch --model zzzzqq"), 3);
    expect_text(r.err, "unknown model zzzzqq");
}

Test(standard, weights)
{
    scoped(folder_remove) folder f = small_data();
    const file_name gray = in_folder(&f, "gray.png");
    put_file(gray.s, gray_png, sizeof gray_png);
    expect_success(&f,
                   "$tool train --data . --model lenet5 --epochs 1 --out w.safetensors >/dev/null");
    expect_success(&f, "$tool eval --data . --weights w.safetensors >file && "
                       "$tool eval --data . --weights - <w.safetensors >in && cmp file in");
    expect_success(&f, "$tool predict --weights w.safetensors gray.png >file && "
                       "$tool predict --weights - gray.png <w.safetensors >in && cmp file in");
    expect_success(
        &f, "$tool convert w.safetensors theirs.safetensors --map pytorch --to-theirs && "
            "$tool convert --map pytorch --model lenet5 >map && "
            "$tool predict --weights theirs.safetensors --model lenet5 --map map gray.png >file && "
            "$tool predict --weights theirs.safetensors --model lenet5 --map - gray.png <map >in "
            "&& cmp file in");
    expect_success(&f, "$tool train --data . --model lenet5 --epochs 1 --weights w.safetensors "
                       "--out file.safetensors && $tool train --data . --model lenet5 --epochs 1 "
                       "--weights - --out in.safetensors <w.safetensors && "
                       "cmp file.safetensors in.safetensors");
    expect_text(r.out, "states loaded from standard input, ");
    cr_expect_eq(shell(&f, "head -c 500 w.safetensors | $tool predict --weights - gray.png"), 1);
    expect_text(r.err, "standard input: ");
    cr_expect_eq(shell(&f, "$tool predict --weights - - <w.safetensors"), 3);
    expect_text(r.err, "standard input can be given once (got - 2 times)");
    cr_expect_eq(shell(&f, "$tool predict --weights w.safetensors - - <gray.png"), 3);
    cr_expect_eq(shell(&f, "$tool eval --data . --weights - --map - <w.safetensors"), 3);
    expect_text(r.err, "--weights and --map cannot both be standard input");
    cr_expect_eq(shell(&f, "$tool train --data . --weights - --map - <w.safetensors"), 3);
}
