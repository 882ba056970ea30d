/* plan.h - plans that must succeed, and what a test frees at the end of a block. */
#ifndef TESTS_PLAN_H
#define TESTS_PLAN_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint.h"
#include "adjoint_check.h"

/* Before a declaration: release(&variable) is called where its scope ends, in the reverse order. */
#define scoped(release) __attribute__((cleanup(release)))

/* Frees a pointer's memory. */
static inline void release(void *pointer) { free(*(void **)pointer); }
static inline void release_graph(adj_graph **g) { adj_graph_free(*g); }
static inline void release_exec(adj_exec **e) { adj_exec_free(*e); }
static inline void release_gradcheck(const adj_gradcheck_report **r) { adj_gradcheck_free(*r); }
static inline void release_comparison(const adj_comparison **c) { adj_comparison_free(*c); }

/* Expects a message, or what a program printed, to have these words. */
static inline void expect_text(const char *text, const char *words)
{
    cr_expect_not_null(strstr(text, words), "no \"%s\" in: %s", words, text);
}

/* How often the word is in the text. */
static inline int times_in(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

/* Returns the plan as adj_exec_print writes it; the caller frees. */
static inline char *plan_text(const adj_exec *e)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_exec_print(f, e);
    fclose(f);
    return text;
}

/* How often a test tries seeds, or kills a process: so often in the suite, and with REPEAT=N in the
 * environment N times as often. */
static inline int repeats(int in_suite)
{
    const char *times = getenv("REPEAT");
    int n = times != NULL ? atoi(times) : 1;
    return in_suite * (n > 0 ? n : 1);
}

/* Returns a number from 0 to n - 1, another one in each call. */
static inline int draw_below(int n, uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return (int)((*seed >> 33) % (uint64_t)n);
}

/* A suite's .init: what the plan is by itself is looked at, whatever all tests are run with. */
static inline void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }

static inline adj_exec *plan_of(adj_graph *g, const adj_exec_opts *o)
{
    adj_exec *e = NULL;
    adj_status status = adj_exec_new(g, o, &e);
    cr_assert_eq(status, ADJ_OK, "%s%s", adj_graph_message(g), adj_exec_message(e));
    return e;
}

/* A plan is refused with this status and these words in its message. */
static inline void expect_no_plan(adj_graph *g, const adj_exec_opts *o, adj_status status,
                                  const char *words)
{
    scoped(release_exec) adj_exec *e = NULL;
    cr_expect_eq(adj_exec_new(g, o, &e), status, "%s", adj_exec_message(e));
    expect_text(adj_exec_message(e), words);
}

#endif
