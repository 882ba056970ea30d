/* map_apply.c - applies an entry of a map in both directions. For export, permutations are
 * inverted, and the shape before a reshape is that made by the previous reshape and the
 * permutations since; so the first reshape of an entry has the shape of their tensor. */
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "io/tensors/formats.h"
#include "map.h"

/* ---- shapes ---- */

/* Sets *shape to the list with -1 replaced for that number of elements; returns 0 if impossible. */
static int reshaped(adj_shape list, int64_t elems, adj_shape *to)
{
    int64_t unknown = -1;

    *to = list;
    for (int64_t i = 0; i < list.rank; i++)
        if (list.dim[i] == -1)
            to->dim[unknown = i] = 1;
    int64_t known = adj_shape_elems(*to);
    if (unknown >= 0 && known > 0 && elems % known == 0)
        to->dim[unknown] = elems / known;
    return adj_shape_elems(*to) == elems;
}

static int permuted(adj_shape list, adj_shape from, adj_shape *to)
{
    if (from.rank != list.rank)
        return 0;
    *to = (adj_shape){.rank = list.rank};
    for (int64_t i = 0; i < list.rank; i++)
        to->dim[i] = from.dim[list.dim[i]];
    return 1;
}

static adj_shape inverse(adj_shape list)
{
    adj_shape back = {.rank = list.rank};
    for (int64_t i = 0; i < list.rank; i++)
        back.dim[list.dim[i]] = i;
    return back;
}

/* ---- elements ---- */

/* to [shape] = from with its axes permuted, element by element. to is not from. */
static void permute(const char *from, adj_shape shape, adj_shape list, size_t each, char *to)
{
    int64_t stride[ADJ_MAX_RANK] = {0}, step = 1, at[ADJ_MAX_RANK] = {0};
    int64_t n = adj_shape_elems(shape);

    for (int64_t i = shape.rank - 1; i >= 0; step *= shape.dim[i--])
        stride[i] = step;
    for (int64_t k = 0; k < n; k++, to += each) {
        int64_t offset = 0;
        for (int64_t i = 0; i < list.rank; i++)
            offset += at[i] * stride[list.dim[i]];
        memcpy(to, from + offset * (int64_t)each, each);
        for (int64_t i = list.rank - 1; i >= 0 && ++at[i] == shape.dim[list.dim[i]]; i--)
            at[i] = 0;
    }
}

/* A tensor that passes through the steps, with two buffers of its size. */
typedef struct {
    adj_shape shape;
    adj_elem elem;
    char *data, *other;
} moving;

static int do_permute(moving *t, adj_shape list)
{
    adj_shape to;
    if (!permuted(list, t->shape, &to))
        return 0;
    permute(t->data, t->shape, list, adj_elem_size(t->elem), t->other);
    char *old = t->data;
    t->data = t->other;
    t->other = old;
    t->shape = to;
    return 1;
}

static void moving_free(moving *t)
{
    free(t->data);
    free(t->other);
}

/* Fails for a shape that does not match; the message has the tensors' names. */
static adj_status does_not_fit(const map_entry *e, const char *name, adj_shape shape, int step,
                               adj_error *error)
{
    return adj_error_set(error, ADJ_ESHAPE, "%.80s: %s %s does not fit tensor %.80s (got %s)",
                         e->ours, e->step[step].is_reshape ? "reshape" : "permute",
                         adj_shape_text(e->step[step].list).s, name, adj_shape_text(shape).s);
}

/* ---- there ---- */

/* Copies their tensors one after the other. */
static adj_status gather(const map_entry *e, const adj_tensors *theirs, moving *to,
                         adj_error *error)
{
    adj_tensor t[MAP_SOURCES] = {{0}};

    for (int i = 0; i < e->n_theirs; i++) {
        int k = adj_tensors_find(theirs, e->theirs[i]);
        if (k < 0)
            return adj_error_set(error, ADJ_EIO, "the file has no tensor %.80s (for %.80s)",
                                 e->theirs[i], e->ours);
        t[i] = theirs->tensor[k];
        if (adj_tensors_unreadable(theirs, k) != NULL)
            return adj_error_set(error, ADJ_ESHAPE, "tensor %.80s cannot be read (%s; for %.80s)",
                                 e->theirs[i], adj_tensors_unreadable(theirs, k), e->ours);
        if (t[i].elem != t[0].elem || memcmp(&t[i].shape, &t[0].shape, sizeof t[0].shape) != 0)
            return adj_error_set(error, ADJ_ESHAPE,
                                 "tensors %.80s and %.80s have different types (for %.80s)",
                                 e->theirs[0], e->theirs[i], e->ours);
    }
    size_t bytes = (size_t)adj_tensor_bytes(&t[0]);
    to->elem = t[0].elem;
    to->shape = t[0].shape;
    if (e->n_theirs > 1) {
        if (to->shape.rank == ADJ_MAX_RANK)
            return adj_error_set(error, ADJ_ESHAPE, "tensor %.80s has too many axes", t[0].name);
        memmove(to->shape.dim + 1, to->shape.dim, (size_t)to->shape.rank * sizeof(int64_t));
        to->shape.dim[0] = e->n_theirs;
        to->shape.rank++;
    }
    to->data = malloc(bytes * (size_t)e->n_theirs + 1);
    to->other = malloc(bytes * (size_t)e->n_theirs + 1);
    if (to->data == NULL || to->other == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "tensor %.80s: out of memory", e->ours);
    for (int i = 0; i < e->n_theirs; i++)
        memcpy(to->data + (size_t)i * bytes, t[i].data, bytes);
    return ADJ_OK;
}

adj_status map_import(const map_entry *e, const adj_tensors *theirs, adj_tensors *ours,
                      adj_error *error)
{
    moving t = {0};
    adj_status status = gather(e, theirs, &t, error);

    for (int k = 0; k < e->n_step && status == ADJ_OK; k++) {
        adj_shape list = e->step[k].list, to, from = t.shape;
        if (!e->step[k].is_reshape)
            status = do_permute(&t, list) ? ADJ_OK : ADJ_ESHAPE;
        else if (reshaped(list, adj_shape_elems(t.shape), &to))
            t.shape = to;
        else
            status = ADJ_ESHAPE;
        if (status != ADJ_OK)
            does_not_fit(e, e->theirs[0], from, k, error);
    }
    if (status == ADJ_OK)
        status = tensors_add_copy(ours, e->ours, t.elem, t.shape, t.data, error);
    moving_free(&t);
    return status;
}

/* ---- back ---- */

/* Sets the shape before reshape k; returns 0 if it is not known. */
static int shape_before(const map_entry *e, int k, int64_t elems, adj_shape *shape)
{
    int last = k - 1;
    if (k == 0)
        return reshaped(e->step[0].list, elems, shape);
    while (last >= 0 && !e->step[last].is_reshape)
        last--;
    if (last < 0 || !reshaped(e->step[last].list, elems, shape))
        return 0;
    for (int i = last + 1; i < k; i++) {
        adj_shape to;
        if (!permuted(e->step[i].list, *shape, &to))
            return 0;
        *shape = to;
    }
    return 1;
}

static adj_status undo_step(const map_entry *e, int k, moving *t, adj_error *error)
{
    adj_shape to, ends;

    if (!e->step[k].is_reshape)
        return do_permute(t, inverse(e->step[k].list))
                   ? ADJ_OK
                   : does_not_fit(e, e->ours, t->shape, k, error);
    int64_t elems = adj_shape_elems(t->shape);
    if (!reshaped(e->step[k].list, elems, &ends) || memcmp(&ends, &t->shape, sizeof ends) != 0)
        return does_not_fit(e, e->ours, t->shape, k, error);
    if (!shape_before(e, k, elems, &to))
        return adj_error_set(
            error, ADJ_ESHAPE,
            "%.80s: its map cannot be reversed (begin it with a reshape to the shape of %.80s)",
            e->ours, e->theirs[0]);
    t->shape = to;
    return ADJ_OK;
}

/* Adds their tensors from one buffer. */
static adj_status scatter(const map_entry *e, const moving *t, adj_tensors *theirs,
                          adj_error *error)
{
    adj_status status = ADJ_OK;
    adj_shape one = t->shape;

    if (e->n_theirs > 1) {
        if (one.rank < 1 || one.dim[0] != e->n_theirs)
            return adj_error_set(error, ADJ_ESHAPE, "%.80s: is not made of %d tensors", e->ours,
                                 e->n_theirs);
        memmove(one.dim, one.dim + 1, (size_t)(one.rank - 1) * sizeof(int64_t));
        one.dim[--one.rank] = 0;
    }
    size_t bytes = (size_t)adj_shape_elems(one) * adj_elem_size(t->elem);
    for (int i = 0; i < e->n_theirs && status == ADJ_OK; i++)
        status = tensors_add_copy(theirs, e->theirs[i], t->elem, one, t->data + (size_t)i * bytes,
                                  error);
    return status;
}

adj_status map_export(const map_entry *e, const adj_tensors *ours, adj_tensors *theirs,
                      adj_error *error)
{
    const map_entry plain = {.n_theirs = 1};
    map_entry from = plain;
    moving t = {0};

    memcpy(from.ours, e->ours, sizeof from.ours);
    memcpy(from.theirs[0], e->ours, sizeof from.theirs[0]);
    adj_status status = gather(&from, ours, &t, error);
    for (int k = e->n_step - 1; k >= 0 && status == ADJ_OK; k--)
        status = undo_step(e, k, &t, error);
    if (status == ADJ_OK)
        status = scatter(e, &t, theirs, error);
    moving_free(&t);
    return status;
}
