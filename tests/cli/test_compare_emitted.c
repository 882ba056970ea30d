/* test_compare_emitted.c - compare and gradcheck of the backend "emitted": right functions pass; a
 * wrong one, one that does not compile and one that crashes are named. A script in the place of cc
 * changes the C before it is compiled. */
#include <sys/stat.h>

#include "cli/child.h"

static finished r;
static temporary planted; /* the folder of the script */

static void remove_planted(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/cc", planted.s);
    unlink(path);
    rmdir(planted.s);
}

TestSuite(compare_emitted, .fini = remove_planted);

/* Makes all that the tool compiles pass through sed. NULL: there is no compiler. */
static void plant(const char *change)
{
    char path[128];
    planted = temporary_folder();
    snprintf(path, sizeof path, "%s/cc", planted.s);
    FILE *script = change != NULL ? fopen(path, "w") : NULL;
    if (script != NULL) {
        fprintf(script, "#!/bin/sh\nPATH='%s'\nsed '%s' | exec cc \"$@\"\n", getenv("PATH"),
                change);
        fclose(script);
        cr_assert_eq(chmod(path, 0700), 0);
    }
    setenv("PATH", planted.s, 1);
}

#define CONFIGS "--configs naive:f64,emitted --shrink 0"
#define RELU "--op relu --neighbors 0"

Test(compare_emitted, right_functions)
{
    tool(&r, 0, "compare --model lenet --size 12 --batch 1 --also-batch 0 " CONFIGS);
    expect_text(r.out, "(0 on naive)");
    expect_text(r.out, "matmul+bias_add+relu"); /* a fused function */
    expect_text(r.out, " 0 failed (");
    cr_expect_null(strstr(r.out, "refuses"), "%s", r.out);
    tool(&r, 0, "gradcheck --model lenet5 --node conv1 --backend emitted");
    expect_text(r.out, "backend=emitted");
}

/* Beside the other backends, each computes its own configuration. */
Test(compare_emitted, several_backends)
{
    tool(&r, 0,
         "compare --op conv2d --neighbors 0 --shrink 0 --configs naive:f64,onednn,emitted --all");
    char *emitted = strstr(r.out, "\nemitted:");
    cr_assert_not_null(emitted);
    expect_text(emitted, " c:1\n");
    *emitted = '\0';
    cr_expect_null(strstr(r.out, " c:1\n"), "%s", r.out);
}

Test(compare_emitted, wrong_function)
{
    plant("s/<= 0.0f ? 0.0f/<= 0.0f ? 0.5f/");
    tool(&r, 1, "compare --model lenet --size 12 --also-batch 0 " CONFIGS);
    expect_text(r.out, "emitted: FAIL %5 relu (emitted c:1), to blame: kernel");
    cr_expect_null(strstr(r.out, "conv2d (emitted c:1), to blame"), "%s", r.out);
    tool(&r, 1, "gradcheck " RELU " --backend emitted");
    expect_text(r.out, "fault is in backend emitted's kernel for relu");
}

/* Zeros of both signs, kinks, NaN and infinities; a rate of dropout that 32 bits cannot tell
 * from 1.
 */
Test(compare_emitted, special_values)
{
    static const char *const ops[] = {"relu6",    "hard_swish", "gelu",      "gelu_grad", "resize",
                                      "sgd_step", "momentum",   "adam_step", "dropout"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        tool(&r, 0, "compare --op %s --neighbors 0 --runs 1 " CONFIGS, ops[i]);
    }
}

/* Wrong only where the result is computed in an operand's memory. */
Test(compare_emitted, wrong_in_place)
{
    plant("/^static void in_place/,/^}/s/<= 0.0f ? 0.0f/<= 0.0f ? 0.5f/");
    tool(&r, 1, "compare " RELU " " CONFIGS);
    expect_text(r.out, "relu");
}

/* Elements that a function does not write are NaN. */
Test(compare_emitted, an_element_is_left_out)
{
    plant("s/i < 1024; i++/i < 1023; i++/");
    tool(&r, 1, "compare --op relu --in 1,8,8,16 --neighbors 0 " CONFIGS);
    expect_text(r.out, "got nan");
}

Test(compare_emitted, does_not_compile)
{
    plant("s/<= 0.0f ? 0.0f/<= 0.0f ? oops/");
    tool(&r, 1, "compare " RELU " " CONFIGS);
    expect_text(r.out, "emitted: ERROR %1 relu");
    expect_text(r.out, "error: ");
    expect_text(r.out, "oops");
    cr_expect_null(strstr(r.out, "ERROR %3 relu_grad"), "%s", r.out);
}

Test(compare_emitted, crashes)
{
    expect_crashes();
    plant("s/<= 0.0f ? 0.0f/<= 0.0f ? (float)(abort(), 0)/");
    tool(&r, 1, "compare " RELU " " CONFIGS);
    expect_text(r.out, "emitted: ERROR %1 relu");
    expect_text(r.out, "the emitted function: SIGABRT");
}

Test(compare_emitted, is_refused)
{
    tool(&r, 0, "compare --op softmax_cross_entropy --neighbors 0 " CONFIGS);
    expect_text(r.out, "; emitted refuses ");
    tool(&r, 3, "compare " RELU " " CONFIGS " --guard");
    expect_text(r.err, "excludes --guard and isa=");
    tool(&r, 3, "compare " RELU " --configs emitted,naive");
    expect_text(r.err, "expected one of onednn, direct, naive");
    plant(NULL);
    tool(&r, 1, "compare " RELU " " CONFIGS);
    cr_expect_str_eq(r.err, "adjoint compare: emitted: backend emitted cannot be opened (the C "
                            "compiler cc cannot be started)\n");
    tool(&r, 1, "gradcheck " RELU " --backend emitted");
    expect_text(r.err, "the C compiler cc cannot be started");
}
