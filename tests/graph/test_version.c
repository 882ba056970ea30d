/* test_version.c - a program and a library of different versions: the library refuses, and reads no
 * struct of the program's, whose size and fields it cannot know. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "adjoint_check.h"
#include "adjoint_nn.h"
#include "graph/op.h"
#include "tests/plan.h"

enum { PAGE = 4096 };

/* A page without access, in place of the other version's structs. */
static void *unreadable(void)
{
    void *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(page, MAP_FAILED);
    return page;
}

Test(version, text_and_number_agree)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", ADJ_VERSION_MAJOR, ADJ_VERSION_MINOR,
             ADJ_VERSION_PATCH);
    cr_expect_str_eq(ADJ_VERSION_TEXT, text);
    cr_expect_str_eq(adj_version_text(), text);
    cr_expect_eq(adj_version(), ADJ_VERSION);
}

Test(version, of_another_layout_is_refused_unread)
{
    const int others[] = {100, ADJ_VERSION + 100, ADJ_VERSION + 10000}; /* 0.1.0 is older */
    for (int i = 0; i < 3; i++) {
        scoped(release_graph) adj_graph *g = adj_graph_new_with(others[i], unreadable());
        cr_assert_not_null(g);
        cr_assert_eq(adj_graph_status(g), ADJ_EVERSION);
        cr_expect_not_null(strstr(adj_graph_message(g), ADJ_VERSION_TEXT), "%s",
                           adj_graph_message(g));
        cr_assert_null(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
        adj_exec *e = NULL;
        cr_expect_eq(adj_exec_new(g, unreadable(), &e), ADJ_EVERSION);
        adj_exec_free(e);
        const adj_comparison *c = NULL;
        cr_expect_eq(adj_compare(g, unreadable(), &c), ADJ_EVERSION);
        adj_comparison_free(c);
        cr_expect_null(adj_model_logits(g, adj_model_find("lenet", NULL), unreadable()));
        const adj_gradcheck_report *r = NULL; /* of a node that this graph never made */
        cr_expect_eq(adj_gradcheck(NULL, unreadable(), &r), ADJ_EARG);
        adj_gradcheck_free(r);
    }
}

/* Another patch, older or newer, is the same contract. */
Test(version, of_another_patch_is_taken)
{
    const adj_graph_opts opts = {0};
    scoped(release_graph) adj_graph *g = adj_graph_new_with(ADJ_VERSION + 7, &opts);
    cr_expect_eq(adj_graph_status(g), ADJ_OK);
}

/* Ops and backends from elsewhere, in a library of its own perhaps: of these as well only what says
 * so is read. */
Test(version, of_an_op_of_another_layout_is_refused_unread)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}});
    cr_expect_not_null(adj_node_new_with(ADJ_VERSION + 7, g, &adj_op_relu, 1, &x, NULL));
    cr_expect_null(adj_node_new_with(100, g, unreadable(), 1, &x, NULL));
    cr_expect_eq(adj_graph_status(g), ADJ_EVERSION);
    cr_expect_not_null(strstr(adj_graph_message(g), "got version 0.1.0"), "%s",
                       adj_graph_message(g));
}

Test(version, of_a_backend_of_another_layout_is_refused_unread)
{
    char *pages = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(pages != MAP_FAILED && mprotect(pages, PAGE, PROT_READ | PROT_WRITE) == 0);
    void *other = pages + PAGE - offsetof(adj_backend, name); /* the rest cannot be read */
    *(int *)other = ADJ_VERSION + 100;
    const adj_backend *const backends[] = {adj_backends[0], other, NULL};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}));
    adj_exec *e = NULL;
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backends = backends};
    cr_expect_eq(adj_exec_new(g, &o, &e), ADJ_EVERSION);
    cr_expect_not_null(strstr(adj_exec_message(e), "backend 1"), "%s", adj_exec_message(e));
    adj_exec_free(e);
    munmap(pages, 2 * PAGE);
}
