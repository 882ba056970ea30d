/* test_quarantine_file.c - a quarantine file is obeyed, and a hostile one is refused with the line
 * named. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adjoint_ext.h"
#include "tests/temporary.h"

typedef struct {
    adj_graph *g;
    adj_exec *e;
    adj_status status;
    char path[64];
} rig;

/* A convolution planned with this text as the quarantine file. */
static rig plan(const char *text, size_t bytes)
{
    rig r = {.g = adj_graph_new()};
    memcpy(r.path, temporary_file().s, sizeof r.path);
    FILE *f = fopen(r.path, "w");
    cr_assert(f != NULL && fwrite(text, 1, bytes, f) == bytes && fclose(f) == 0, "%s", r.path);
    adj_node *x = adj_input(r.g, "x", ADJ_F32, (adj_shape){4, {2, 8, 8, 16}});
    adj_node *w = adj_input(r.g, "w", ADJ_F32, (adj_shape){4, {3, 3, 16, 16}});
    adj_node *y = adj_conv2d(x, w, NULL);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "onednn", .debug.quarantine = r.path};
    r.status = adj_exec_new(r.g, &o, &r.e);
    return r;
}

static void rig_free(rig *r)
{
    unlink(r->path);
    adj_exec_free(r->e);
    adj_graph_free(r->g);
}

static adj_step_info conv_step(const rig *r)
{
    for (int i = 0; i < adj_exec_step_count(r->e); i++)
        if (strcmp(adj_exec_step_at(r->e, i).op, "conv2d") == 0)
            return adj_exec_step_at(r->e, i);
    return (adj_step_info){.op = "", .backend = "", .why = ""};
}

/* What is taken without timing: whatever plans all tests are run with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }

Test(quarantine_file, is_obeyed, .init = plan_as_usual)
{
    static const struct {
        const char *text;
        int left_out;
    } rows[] = {
        {"* * forward f32 * * tested\n", 1},
        {"# a comment\n\n  * * * * * ic=16,kh=3,nhwc=1 tested # more\n* * * * * nhwc=0 tested\n",
         1},
        {"* sse41 forward f32 * * tested\n", 1},
        {"* * backward_data f32 * * tested\n", 0},
        {"* * forward bf16 * * tested\n", 0},
        {"1.0.0 * forward f32 * * tested\n", 0},
        {"* * forward f32 * ic=17 tested\n", 0},
        {"* * forward f32 * gic=16,goc=16,groups=1 tested\n", 1},
        {"* * forward f32 * ic=9..16,kh=3..3 tested\n", 1},
        {"* * forward f32 * ic=16..,oc=0.. tested\n", 1},
        {"* * forward f32 * ic=9..15 tested\n", 0},
        {"* * forward f32 * ic=17.. tested\n", 0},
        {"* * forward f32 * ic=16,oc=17..20 tested\n", 0},
        {"* * forward f32 nosuch * tested\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r = plan(rows[i].text, strlen(rows[i].text));
        cr_assert_eq(r.status, ADJ_OK, "%zu: %s", i, adj_exec_message(r.e));
        adj_step_info s = conv_step(&r);
        cr_assert_str_eq(s.backend, rows[i].left_out ? "direct" : "onednn", "%zu", i);
        if (rows[i].left_out)
            cr_assert_not_null(strstr(s.why, "tested"), "%s", s.why);
        rig_free(&r);
    }
}

/* Rows for pools, by their own words. */
Test(quarantine_file, holds_for_pools)
{
    static const struct {
        const char *text;
        int left_out, gradient_left_out;
    } rows[] = {
        {"* * avg_pool f32 * kh=2 tested\n", 1, 0},
        {"* * avg_pool_backward f32 * sh=1,ic=16 tested\n", 0, 1},
        {"* * * f32 * * tested\n", 1, 1},
        {"* * forward f32 * * tested\n", 0, 0},
    };
    const adj_pool a = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r = plan(rows[i].text, strlen(rows[i].text));
        adj_node *x = adj_find(r.g, "x"), *y = adj_avg_pool(x, &a);
        adj_node *dx = adj_avg_pool_grad(adj_node_type(x).shape, y, &a);
        adj_exec_opts o = {.n_fetch = 1,
                           .fetch = &dx,
                           .backend = "onednn",
                           .debug.quarantine = r.path,
                           .debug.no_fusion = 1};
        adj_exec_free(r.e);
        cr_assert_eq(adj_exec_new(r.g, &o, &r.e), ADJ_OK, "%s", adj_exec_message(r.e));
        for (int k = 0; k < adj_exec_step_count(r.e); k++) {
            adj_step_info s = adj_exec_step_at(r.e, k);
            int is_pool = strcmp(s.op, "avg_pool") == 0;
            if (!is_pool && strcmp(s.op, "avg_pool_grad") != 0)
                continue;
            int out = is_pool ? rows[i].left_out : rows[i].gradient_left_out;
            cr_expect_str_eq(s.backend, out ? "naive" : "onednn", "%zu: %s", i, s.op);
        }
        rig_free(&r);
    }
}

Test(quarantine_file, hostile_files_are_refused)
{
    static char wide[2000];
    memset(wide, 'a', sizeof wide - 2);
    wide[sizeof wide - 2] = '\n';
    const struct {
        const char *text;
        size_t bytes;
        const char *expected;
    } rows[] = {
        {"* * forward f32 * *\n", 0, "line 1: the reason is missing"},
        {"# one\n* * forward\n", 0, "line 2: too few words"},
        {"2.6 * forward f32 * * x\n", 0, "the version is wrong"},
        {"2.6.-3 * forward f32 * * x\n", 0, "the version is wrong"},
        {"* avx3 forward f32 * * x\n", 0, "unknown isa"},
        {"* * sideways f32 * * x\n", 0,
         "unknown task (expected forward, backward_data, backward_weights, avg_pool"},
        {"* * forward f65 * * x\n", 0, "unknown dtype"},
        {"* * forward f32 * ic x\n", 0, "expected key=number"},
        {"* * forward f32 * ic=,kh=1 x\n", 0, "wrong number"},
        {"* * forward f32 * ic=99999999999999999999 x\n", 0, "wrong number"},
        {"* * forward f32 * zz=1 x\n", 0, "unknown key"},
        {"* * forward f32 * ic=3.4 x\n", 0, "wrong number"},
        {"* * forward f32 * ic=3..2 x\n", 0, "wrong number"},
        {"* * forward f32 * ic=3...4 x\n", 0, "wrong number"},
        {"* * forward f32 * ic=..4 x\n", 0, "wrong number"},
        {"* * forward f32 * ic=1..99999999999999999999 x\n", 0, "wrong number"},
        {"* * forward f32 * * tes", 0, "line 1: too long, not text, or cut off"},
        {"* * forward f32 * * x\n\0\0\0", 25, "line 2: too long, not text"},
        {wide, 0, "line 1: too long"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r = plan(rows[i].text, rows[i].bytes > 0 ? rows[i].bytes : strlen(rows[i].text));
        cr_assert_eq(r.status, ADJ_EIO, "%zu", i);
        cr_assert_not_null(strstr(adj_exec_message(r.e), rows[i].expected), "%zu: %s", i,
                           adj_exec_message(r.e));
        rig_free(&r);
    }
}

/* By the environment, by name, and not at all. */
Test(quarantine_file, where_it_comes_from)
{
    plan_as_usual(); /* tuning may prefer direct's */
    rig r = plan("* * forward f32 * * tested\n", 27);
    adj_node *y = adj_graph_node_at(r.g, adj_graph_node_count(r.g) - 1);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "onednn"};
    setenv("ADJOINT_QUARANTINE", r.path, 1);
    adj_exec_free(r.e);
    cr_assert_eq(adj_exec_new(r.g, &o, &r.e), ADJ_OK);
    cr_assert_str_eq(conv_step(&r).backend, "direct");
    adj_exec_free(r.e);
    o.debug.quarantine = "off";
    cr_assert_eq(adj_exec_new(r.g, &o, &r.e), ADJ_OK);
    cr_assert_str_eq(conv_step(&r).backend, "onednn");
    adj_exec_free(r.e);
    o.debug.quarantine = NULL;
    setenv("ADJOINT_QUARANTINE", "/nonexistent/file", 1);
    cr_assert_eq(adj_exec_new(r.g, &o, &r.e), ADJ_EIO);
    cr_assert_not_null(strstr(adj_exec_message(r.e), "No such file"));
    rig_free(&r);
}

/* What is no regular file is refused before it is read: a pipe would hang, a device never end. */
Test(quarantine_file, only_regular_files, .timeout = 20)
{
    rig r = plan("", 0);
    char pipe[80];
    snprintf(pipe, sizeof pipe, "%s.pipe", r.path);
    cr_assert_eq(mkfifo(pipe, 0600), 0);
    const char *const paths[] = {pipe, "/", "/dev/zero", "/dev/tty0"};
    adj_node *y = adj_graph_node_at(r.g, adj_graph_node_count(r.g) - 1);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        adj_exec_opts o = {
            .n_fetch = 1, .fetch = &y, .backend = "onednn", .debug.quarantine = paths[i]};
        adj_exec_free(r.e);
        cr_expect_eq(adj_exec_new(r.g, &o, &r.e), ADJ_EIO, "%s", paths[i]);
        cr_expect(i == 3 || strstr(adj_exec_message(r.e), "is not a regular file") != NULL, "%s",
                  adj_exec_message(r.e));
    }
    unlink(pipe);
    rig_free(&r);
}
