/* contents.c - see contents.h. The map is a treap: a search tree by address that is also a heap by
 * pseudo-random priorities, so that its depth is about log n for any order of insertion. */
#include "contents.h"

/* Returns the last range that starts at `at` or before, or NULL. */
static range *range_before(const contents *c, uintptr_t at)
{
    range *found = NULL;
    for (int i = c->root; i != NONE;) {
        range *r = &c->range[i];
        if (r->start <= at)
            found = r;
        i = r->start <= at ? r->right : r->left;
    }
    return found;
}

const content *read_range(const contents *c, uintptr_t start, uintptr_t end)
{
    const range *r = range_before(c, start);
    return r != NULL && r->start == start && r->end >= end ? &r->held : NULL;
}

const content *find_any(const contents *c, uintptr_t start, uintptr_t end)
{
    const range *r = range_before(c, end - 1);
    return r != NULL && r->end > start ? &r->held : NULL;
}

/* Splits the tree into ranges that start before `at` and the others. */
static void split(contents *c, int tree, uintptr_t at, int *before, int *others)
{
    while (tree != NONE) {
        range *r = &c->range[tree];
        if (r->start < at) {
            *before = tree;
            before = &r->right;
            tree = r->right;
        } else {
            *others = tree;
            others = &r->left;
            tree = r->left;
        }
    }
    *before = *others = NONE;
}

/* Joins two trees, every range of a before those of b. */
static int join(contents *c, int a, int b)
{
    int root, *to = &root;
    while (a != NONE && b != NONE) {
        const int is_a = c->range[a].priority > c->range[b].priority;
        range *r = &c->range[ *to = is_a ? a : b];
        to = is_a ? &r->right : &r->left;
        *(is_a ? &a : &b) = *to;
    }
    *to = a != NONE ? a : b;
    return root;
}

static uint32_t priority_of(int i)
{
    uint32_t x = (uint32_t)i * 0x9e3779b9U;
    x = (x ^ x >> 15) * 0x85ebca6bU;
    return x ^ x >> 13;
}

content write_range(contents *c, uintptr_t start, uintptr_t end, const content *held)
{
    range *same = range_before(c, start);
    if (same != NULL && same->start == start && same->end == end) {
        const content old = same->held;
        same->held = *held;
        return old;
    }
    if (same != NULL && same->start < start && same->end <= start)
        same = NULL; /* it ends before */
    int before, inside, behind, lost;
    split(c, c->root, same != NULL ? same->start : start, &before, &inside);
    split(c, inside, end, &lost, &behind);
    const int i = c->n++;
    c->range[i] = (range){start, end, *held, NONE, NONE, priority_of(i)};
    c->root = join(c, join(c, before, i), behind);
    return (content){.step = NONE};
}
