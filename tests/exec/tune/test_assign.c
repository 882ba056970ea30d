/* test_assign.c - the cheapest assignment: chains worked out by hand, and random plans against
 * trying everything. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/tune/assign.h"

enum { VALUES = 7, PARTS = 6, CHOICES = 4, WAYS = 3, LAYOUTS = 3 };

static void *allocate(void *user, size_t n)
{
    (void)user;
    return malloc(n);
}
static void release(void *user, void *p)
{
    (void)user;
    free(p);
}
static const adj_allocator heap = {allocate, release, NULL};

/* ---- by hand ---- */

static double same_for_all(void *user, int value, int from, int to)
{
    (void)value;
    cr_assert_neq(from, to);
    return *(double *)user;
}

static double by_value(void *user, int value, int from, int to)
{
    cr_assert_neq(from, to);
    return ((const double *)user)[value];
}

/* 0 -> part -> 1 -> part -> 2. Each takes 3 in plain; 1 with layout 1 between them. */
static void chain(double reorder, int n_end, const int *end, const int expected[2], double seconds)
{
    static const double way[] = {3, 1};
    static const int value[] = {0, 1, 2}, first[] = {0, 0, 0, 1}, second[] = {0, 0, 1, 0};
    const assign_choice choice[] = {{2, way}, {2, way}};
    const assign_part part[] = {{1, 1, value, 0, first}, {1, 1, value + 1, 1, second}};
    const assign_problem p = {3, 2, 2, n_end, part, choice, end, same_for_all, &reorder};
    int chosen[2];
    double took;
    cr_assert_eq(assign_cheapest(&p, &heap, chosen, &took), ADJ_OK);
    cr_assert(chosen[0] == expected[0] && chosen[1] == expected[1], "reorder %g: %d %d", reorder,
              chosen[0], chosen[1]);
    cr_assert_float_eq(took, seconds, 1e-12);
}

Test(assign, a_chain)
{
    const int last[] = {2}, both[] = {2, 1}, blocked[] = {1, 1}, plain[] = {0, 0};
    chain(2.5, 1, last, blocked, 2); /* neither would be worth it alone */
    chain(2.5, 2, both, blocked, 4.5);
    chain(6, 2, both, plain, 6);
}

/* One reorder serves all who want that layout. */
Test(assign, readers_share_a_reorder)
{
    static const double way[] = {3, 1};
    static const int value[][2] = {{0, 1}, {0, 2}}, layout[] = {0, 0, 1, 0}, end[] = {1, 2};
    const assign_choice choice[] = {{2, way}, {2, way}};
    double reorder = 3.5;
    for (int parts = 1; parts <= 2; parts++) {
        const assign_part part[] = {{1, 1, value[0], 0, layout}, {1, 1, value[1], 1, layout}};
        const assign_problem p = {3, parts, 2, parts, part, choice, end, same_for_all, &reorder};
        int chosen[2];
        double took;
        cr_assert_eq(assign_cheapest(&p, &heap, chosen, &took), ADJ_OK);
        cr_assert_eq(chosen[0], parts - 1);
        cr_assert_float_eq(took, parts == 1 ? 3 : 5.5, 1e-12);
    }
}

/* Two parts with one choice: what is best for the first alone is not best for both. */
Test(assign, parts_with_the_same_choice)
{
    static const double way[] = {3, 1};
    static const int value[][2] = {{0, 1}, {1, 2}}, layout[] = {0, 0, 0, 1}, end[] = {2, 1};
    const assign_choice choice[] = {{2, way}};
    const assign_part part[] = {{1, 1, value[0], 0, layout}, {1, 1, value[1], 0, layout}};
    double reorder = 1.9, took;
    int chosen;
    const assign_problem p = {3, 2, 1, 1, part, choice, end, same_for_all, &reorder};
    cr_assert_eq(assign_cheapest(&p, &heap, &chosen, &took), ADJ_OK);
    cr_assert(chosen == 1 && fabs(took - 5.8) < 1e-12, "%d %g", chosen, took);
    reorder = 2.1;
    cr_assert_eq(assign_cheapest(&p, &heap, &chosen, &took), ADJ_OK);
    cr_assert(chosen == 0 && fabs(took - 6) < 1e-12, "%d %g", chosen, took);
}

/* ---- against trying everything ---- */

static unsigned seed;
static int below(int n)
{
    seed = seed * 1664525U + 1013904223U;
    return (int)((seed >> 16) % (unsigned)n);
}

typedef struct {
    double cost[VALUES][LAYOUTS][LAYOUTS];
    double seconds[CHOICES][WAYS];
    int value[PARTS][3], layout[PARTS][WAYS * 3];
    assign_part part[PARTS];
    assign_choice choice[CHOICES];
    int end[2];
    assign_problem p;
} plan;

static double cost_of(void *user, int value, int from, int to)
{
    return ((plan *)user)->cost[value][from][to];
}

/* Part i reads two of the values before i + 1 and makes value i + 1. */
static void draw(plan *x)
{
    for (int v = 0; v < VALUES; v++)
        for (int a = 0; a < LAYOUTS; a++)
            for (int b = 0; b < LAYOUTS; b++)
                x->cost[v][a][b] = 1 + below(9);
    for (int c = 0; c < CHOICES; c++) {
        for (int w = 0; w < WAYS; w++)
            x->seconds[c][w] = 1 + below(12);
        x->choice[c] = (assign_choice){1 + below(WAYS), x->seconds[c]};
    }
    for (int i = 0; i < PARTS; i++) {
        x->value[i][0] = below(i + 1);
        x->value[i][1] = below(i + 1);
        x->value[i][2] = i + 1;
        const int n_in = x->value[i][0] != x->value[i][1] ? 2 : 1;
        x->value[i][n_in] = i + 1;
        for (int k = 0; k < WAYS * 3; k++)
            x->layout[i][k] = below(LAYOUTS);
        x->part[i] = (assign_part){n_in, 1, x->value[i], below(CHOICES + 1) - 1, x->layout[i]};
    }
    x->end[0] = PARTS;
    x->end[1] = below(PARTS);
    x->p = (assign_problem){VALUES, PARTS, CHOICES, 2, x->part, x->choice, x->end, cost_of, x};
}

static double make(const plan *x, int there[VALUES][LAYOUTS], int value, int layout)
{
    if (there[value][layout])
        return 0;
    int from = 0;
    while (!there[value][from])
        from++;
    there[value][layout] = 1;
    return x->cost[value][from][layout];
}

static double took(const plan *x, const int chosen[CHOICES])
{
    int there[VALUES][LAYOUTS] = {{0}}, plain[VALUES] = {0};
    double sum = 0;
    plain[x->end[0]] = plain[x->end[1]] = 1;
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < x->part[i].n_in && x->part[i].choice < 0; k++)
            plain[x->part[i].value[k]] = 1;
    for (int v = 0; v < VALUES; v++)
        there[v][0] = 1;
    for (int i = 0; i < PARTS; i++) {
        const assign_part *part = &x->part[i];
        const int n = part->n_in + 1, c = part->choice;
        for (int k = 0; k < part->n_in; k++)
            sum += make(x, there, part->value[k], c < 0 ? 0 : part->layout[chosen[c] * n + k]);
        there[i + 1][0] = 0;
        there[i + 1][c < 0 ? 0 : part->layout[chosen[c] * n + n - 1]] = 1;
        sum += plain[i + 1] ? make(x, there, i + 1, 0) : 0;
        sum += c < 0 ? 0 : x->seconds[c][chosen[c]];
    }
    return sum + make(x, there, x->end[0], 0) + make(x, there, x->end[1], 0);
}

static double min_seconds(const plan *x)
{
    double best = HUGE_VAL;
    int chosen[CHOICES];
    for (int all = 0; all < WAYS * WAYS * WAYS * WAYS; all++) {
        int rest = all, is_one = 1;
        for (int c = 0; c < CHOICES; c++, rest /= WAYS) {
            chosen[c] = rest % WAYS;
            is_one = is_one && chosen[c] < x->choice[c].n;
        }
        best = is_one ? fmin(best, took(x, chosen)) : best;
    }
    return best;
}

Test(assign, random_plans)
{
    for (seed = 1; seed < 3000;) {
        const unsigned drawn = seed;
        static plan x;
        int chosen[CHOICES];
        double seconds;
        draw(&x);
        cr_assert_eq(assign_cheapest(&x.p, &heap, chosen, &seconds), ADJ_OK);
        cr_assert_float_eq(took(&x, chosen), seconds, 1e-9, "plan %u: the sum is another", drawn);
        cr_assert_float_eq(min_seconds(&x), seconds, 1e-9, "plan %u: %g, there is %g", drawn,
                           seconds, min_seconds(&x));
        seed = drawn + 1;
    }
}

/* One plan of a slow and a fast kernel whose layout is dear, before ten small ones that want plain
 * and may put it off: more beginnings than are followed. */
Test(assign, what_is_put_off_is_not_saved)
{
    enum { SMALL = 10 };
    static const double slow_fast[] = {3, 1}, same[] = {0.02, 0.01};
    static const int layout[] = {0, 0, 0, 1};
    static double reorder[SMALL + 2];
    int value[SMALL + 1][2], end[SMALL + 1], chosen[SMALL + 1];
    assign_part part[SMALL + 1];
    assign_choice choice[SMALL + 1];
    for (int i = 0; i <= SMALL; i++) {
        value[i][0] = 0;
        value[i][1] = end[i] = i + 1;
        part[i] = (assign_part){1, 1, value[i], i, layout};
        choice[i] = (assign_choice){2, i == 0 ? slow_fast : same};
        reorder[i + 1] = i == 0 ? 2.5 : 1;
    }
    const assign_problem p = {SMALL + 2, SMALL + 1, SMALL + 1, SMALL + 1, part,
                              choice,    end,       by_value,  reorder};
    double took;
    cr_assert_eq(assign_cheapest(&p, &heap, chosen, &took), ADJ_OK);
    for (int i = 0; i <= SMALL; i++)
        cr_expect_eq(chosen[i], 0, "%d", i);
    cr_expect_float_eq(took, 3 + SMALL * 0.02, 1e-9);
}

/* Where no reorder is possible the layout is not taken, and if all need one that is told. */
Test(assign, a_reorder_that_does_not_exist)
{
    static const double way[] = {3, 1};
    static const int value[] = {0, 1}, end[] = {1}, layout[] = {0, 0, 0, 1}, both[] = {0, 1, 0, 1};
    const assign_choice choice[] = {{2, way}};
    double impossible = HUGE_VAL, took;
    int chosen;
    const assign_part part = {1, 1, value, 0, layout}, never = {1, 1, value, 0, both};
    assign_problem p = {2, 1, 1, 1, &part, choice, end, same_for_all, &impossible};
    cr_assert_eq(assign_cheapest(&p, &heap, &chosen, &took), ADJ_OK);
    cr_expect(chosen == 0 && took == 3, "%d %g", chosen, took);
    p.part = &never;
    cr_assert_eq(assign_cheapest(&p, &heap, &chosen, &took), ADJ_OK);
    cr_expect_eq(took, HUGE_VAL);
}

static void *refuse(void *user, size_t n)
{
    (void)user;
    (void)n;
    return NULL;
}

Test(assign, out_of_memory)
{
    const adj_allocator none = {refuse, release, NULL};
    const assign_problem p = {.n_value = 1};
    double seconds;
    cr_assert_eq(assign_cheapest(&p, &none, NULL, &seconds), ADJ_ENOMEM);
}
