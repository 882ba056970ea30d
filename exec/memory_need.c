/* memory_need.c - refuses a plan that needs more memory than is available; the message has both
 * numbers. oneDNN 2.6.3 would crash when memory runs out.
 *
 * The check runs three times: for leaves and fetched values before kernels are prepared, for the
 * buffers of candidates before these are timed, and for the plan's memory before it is allocated.
 * Only memory from malloc is checked: the limits of a caller's allocator are unknown. */
#include <stdlib.h>

#include "base/memory_left.h"
#include "exec.h"
#include "memory.h"
#include "planning.h"

/* Smaller plans are not compared with the free memory of the system. */
static const size_t considerable = (size_t)16 << 20;

/* True if malloc provides the bytes, which it may still have free in its address space. */
static int can_be_had(size_t bytes)
{
    void *volatile p = malloc(bytes); /* volatile: the compiler must not leave it out */
    int had = p != NULL;
    free(p);
    return had;
}

static adj_status refuse_plan(adj_exec *e, size_t bytes, memory_left left)
{
    return set_error(e, ADJ_ENOMEM,
                     "adj_exec_new: out of memory (needs %zu bytes at least, %s leaves %zu)", bytes,
                     left.limit, left.bytes);
}

adj_status check_memory(adj_exec *e, size_t bytes)
{
    if (bytes < considerable || e->region.allocator.alloc != default_allocator().alloc)
        return ADJ_OK;
    memory_left left = address_space_left();
    if (bytes > left.bytes && !can_be_had(bytes))
        return refuse_plan(e, bytes, left);
    left = physical_memory_left("");
    /* The system's figure is an estimate: an eighth more may be there. */
    if (bytes > left.bytes && bytes - left.bytes > left.bytes / 8)
        return refuse_plan(e, bytes, left);
    return ADJ_OK;
}

adj_status check_values(adj_exec *e)
{
    const plan *p = &e->plan;
    char *is_counted = planning_alloc(e, (size_t)p->graph->n_node, 1);
    size_t bytes = 0;
    if (is_counted == NULL)
        return e->status;
    for (int i = 0; i < p->n_leaf + p->n_fetch; i++) {
        const int is_leaf = i < p->n_leaf;
        const adj_node *n =
            viewed_node(is_leaf ? p->leaf[i].node : p->image[p->fetch[i - p->n_leaf].node->id]);
        if (!is_counted[n->id] && n->op != &adj_op_const)
            bytes += adj_type_bytes(n->type);
        is_counted[n->id] = 1;
    }
    return check_memory(e, bytes);
}
