/* resize.c - Resize and Upsample of any axes, by nearest, linear or cubic interpolation.
 *
 * Modes that adj_resize has are left to it. Other modes are a matrix product along each axis that
 * changes: row o of the matrix holds the weights of the elements that output o is made of. */
#include <math.h>
#include <string.h>

#include "import.h"

/* Sizes and scale of an axis. */
typedef struct {
    int64_t in, out;
    double scale;      /* out / in as given */
    double start, end; /* bounds of the part of the axis that is read (tf_crop_and_resize) */
} axis_plan;

typedef struct {
    word mode, coordinates, nearest;
    double cubic;       /* the cubic's slope at a distance of 1 */
    double outside;     /* value outside of the image (tf_crop_and_resize) */
    int is_antialiased; /* weights reach further where an axis shrinks */
    int is_excluding;   /* elements outside of the image have no weight */
} resize_plan;

static double coordinate_of(const resize_plan *p, const axis_plan *a, int64_t o)
{
    const char *how = p->coordinates.s;
    const double x = (double)o, in = (double)a->in, out = (double)a->out;
    if (strcmp(how, "asymmetric") == 0)
        return x / a->scale;
    if (strcmp(how, "align_corners") == 0)
        return a->out == 1 ? 0 : x * (in - 1) / (a->scale * in - 1);
    if (strcmp(how, "pytorch_half_pixel") == 0 && a->out == 1)
        return 0;
    if (strcmp(how, "tf_half_pixel_for_nn") == 0)
        return (x + 0.5) / a->scale;
    if (strcmp(how, "tf_crop_and_resize") == 0)
        return a->out == 1 ? 0.5 * (a->start + a->end) * (in - 1)
                           : a->start * (in - 1) + x * (a->end - a->start) * (in - 1) / (out - 1);
    if (strcmp(how, "half_pixel_symmetric") == 0) {
        const double adjust = out / (a->scale * in), center = in / 2;
        return center * (1 - adjust) + (x + 0.5) / a->scale - 0.5;
    }
    return (x + 0.5) / a->scale - 0.5;
}

static int64_t nearest_of(const resize_plan *p, double x)
{
    const char *how = p->nearest.s;
    const double below = floor(x);
    const int is_half = x - below == 0.5;
    if (strcmp(how, "floor") == 0)
        return (int64_t)below;
    if (strcmp(how, "ceil") == 0)
        return (int64_t)ceil(x);
    if (is_half)
        return (int64_t)below + (strcmp(how, "round_prefer_ceil") == 0);
    return (int64_t)floor(x + 0.5);
}

/* Weight of an element at a distance from the coordinate. */
static double weight_at(const resize_plan *p, double distance)
{
    const double x = fabs(distance), a = p->cubic;
    if (strcmp(p->mode.s, "linear") == 0)
        return x < 1 ? 1 - x : 0;
    return x <= 1  ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

/* Fills the weights of the elements around x, whose sum is 1. */
static void fill_row(const resize_plan *p, const axis_plan *a, double x, double row[])
{
    const double shrunk = p->is_antialiased && a->scale < 1 ? a->scale : 1;
    const double reach = (strcmp(p->mode.s, "linear") == 0 ? 1 : 2) / shrunk;
    double sum = 0;
    const int64_t last = (int64_t)floor(x + reach);
    for (int64_t i = (int64_t)floor(x - reach); i <= last; i++) {
        if (p->is_excluding && i != clamp(i, 0, a->in - 1))
            continue;
        const double weight = weight_at(p, ((double)i - x) * shrunk);
        row[clamp(i, 0, a->in - 1)] += weight;
        sum += weight;
    }
    for (int64_t k = 0; sum != 0 && k < a->in; k++)
        row[k] /= sum;
}

/* Fills the matrix [out, in] of weights, and with[out] with the value of outputs outside of the
 * image. Returns how many of these there are. */
static int64_t fill_weights(const resize_plan *p, const axis_plan *a, numbers *m, numbers *with)
{
    const int is_crop = strcmp(p->coordinates.s, "tf_crop_and_resize") == 0;
    int64_t outside = 0;
    for (int64_t o = 0; o < a->out; o++) {
        double *row = m->f + o * a->in, x = coordinate_of(p, a, o);
        if (is_crop && !(x >= 0 && x <= (double)(a->in - 1))) {
            with->f[o] = p->outside;
            outside++;
        } else if (strcmp(p->mode.s, "nearest") == 0) {
            row[clamp(nearest_of(p, x), 0, a->in - 1)] = 1;
        } else {
            fill_row(p, a, x, row);
        }
    }
    return outside;
}

/* x with each row along an axis multiplied by the matrix. */
static adj_node *multiply_axis(call *n, adj_node *x, int axis, const numbers *m)
{
    const int last = (int)shape_of(x).rank - 1;
    int perm[ADJ_MAX_RANK];
    swap_with_last(last + 1, axis, perm);
    x = permute(x, perm);
    adj_shape s = shape_of(x);
    const adj_shape rows = {2, {product(&s, 0, last), s.dim[last]}};
    adj_node *w = const_node(n->f, m, adj_node_type(x).dtype);
    adj_node *y = adj_matmul(adj_reshape(x, rows), w, ADJ_TRANSPOSE_B);
    s.dim[last] = m->shape.dim[0];
    return permute(adj_reshape(y, s), perm);
}

/* x by adj_resize; NULL if adj_resize does not have this mode. */
static adj_node *as_image(adj_node *x, const resize_plan *p, const axis_plan axis[])
{
    const adj_shape s = shape_of(x);
    const char *how = p->coordinates.s;
    const int is_nearest = strcmp(p->mode.s, "nearest") == 0;
    adj_sampling a = {.mode = is_nearest ? ADJ_NEAREST : ADJ_BILINEAR, .format = ADJ_NCHW};
    const int is_plain = !p->is_antialiased && !p->is_excluding;
    if (s.rank != 4 || axis[0].out != axis[0].in || axis[1].out != axis[1].in || !is_plain ||
        strcmp(p->mode.s, "cubic") == 0)
        return NULL;
    for (int i = 2; i < 4; i++)
        if (axis[i].scale != (double)axis[i].out / (double)axis[i].in)
            return NULL;
    if (strcmp(how, "half_pixel") == 0 ||
        (strcmp(how, "pytorch_half_pixel") == 0 && axis[2].out > 1 && axis[3].out > 1))
        a.coordinates = ADJ_HALF_PIXEL;
    else if (strcmp(how, "align_corners") == 0)
        a.coordinates = ADJ_ALIGN_CORNERS;
    else if (strcmp(how, "asymmetric") == 0)
        a.coordinates = ADJ_ASYMMETRIC;
    else
        return NULL;
    const int is_floor = strcmp(p->nearest.s, "floor") == 0;
    const int is_ceil = strcmp(p->nearest.s, "round_prefer_ceil") == 0;
    if (is_nearest && !(a.coordinates == ADJ_ASYMMETRIC ? is_floor : is_ceil))
        return NULL;
    return adj_resize(x, axis[2].out, axis[3].out, &a);
}

/* Sets the axes that sizes, scales and regions have entries for, by default all, and their number.
 * Returns 0 having refused. */
static int read_resized_axes(call *n, int axis[2 * ADJ_MAX_RANK], int *count)
{
    const int64_t *named;
    const int n_named = attr_ints(n, "axes", &named), rank = (int)in_shape(n, 0).rank;
    *count = n_named >= 0 ? n_named : rank;
    for (int i = 0; i < *count; i++)
        if ((axis[i] = n_named >= 0 ? axis_of(n, named[i], rank) : i) < 0)
            return 0;
    return 1;
}

/* Reads sizes or scales of the axes. */
static int read_sizes(call *n, axis_plan plan[], const numbers *scales, const numbers *sizes)
{
    const numbers *given = sizes != NULL ? sizes : scales;
    int axis[2 * ADJ_MAX_RANK], count;
    if (!read_resized_axes(n, axis, &count))
        return 0;
    if (given == NULL || given->n != count)
        return refuse(n, "sizes or scales does not have an entry for each axis");
    double least = INFINITY, most = 0;
    for (int i = 0; i < count; i++) {
        axis_plan *a = &plan[axis[i]];
        const double v = number_at(given, i);
        if (!(v > 0) || v > 1e9 || a->in < 1)
            return refuse(n, "size or scale of axis %d is out of range", axis[i]);
        a->scale = sizes != NULL ? v / (double)a->in : v;
        a->out = sizes != NULL ? (int64_t)v : (int64_t)floor((double)a->in * v);
        least = a->scale < least ? a->scale : least;
        most = a->scale > most ? a->scale : most;
    }
    const word policy = attr_word(n, "keep_aspect_ratio_policy", "stretch");
    for (int i = 0; sizes != NULL && strcmp(policy.s, "stretch") != 0 && i < count; i++) {
        axis_plan *a = &plan[axis[i]];
        a->scale = strcmp(policy.s, "not_larger") == 0 ? least : most;
        a->out = (int64_t)floor((double)a->in * a->scale + 0.5);
    }
    return 1;
}

static int read_region(call *n, axis_plan plan[])
{
    const numbers *region = has_in(n, 1) ? in_known(n, 1) : NULL;
    int axis[2 * ADJ_MAX_RANK], count;
    if (!read_resized_axes(n, axis, &count))
        return 0;
    if (region == NULL || region->n != 2 * (int64_t)count)
        return refuse(n, "tf_crop_and_resize needs a region");
    for (int i = 0; i < count; i++) {
        plan[axis[i]].start = number_at(region, i);
        plan[axis[i]].end = number_at(region, count + i);
    }
    return 1;
}

static adj_node *resize_axis(call *n, adj_node *x, int i, const resize_plan *p, const axis_plan *a)
{
    adj_shape along = {.rank = shape_of(x).rank, .dim = {1, 1, 1, 1, 1, 1}};
    along.dim[i] = a->out;
    numbers *m = new_numbers(n->f, ELEM_DOUBLE, (adj_shape){2, {a->out, a->in}});
    numbers *with = new_numbers(n->f, ELEM_DOUBLE, along);
    if (m == NULL || with == NULL)
        return NULL;
    const int64_t outside = fill_weights(p, a, m, with);
    x = multiply_axis(n, x, i, m);
    return outside > 0 && x != NULL ? adj_add(x, const_node(n->f, with, adj_node_type(x).dtype))
                                    : x;
}

static int resize(call *n, const resize_plan *p, const numbers *scales, const numbers *sizes)
{
    axis_plan axis[ADJ_MAX_RANK] = {0};
    adj_node *x = in_node(n, 0);
    if (x == NULL)
        return 0;
    const adj_shape s = shape_of(x);
    for (int i = 0; i < s.rank; i++)
        axis[i] = (axis_plan){s.dim[i], s.dim[i], 1, 0, 1};
    const int is_crop = strcmp(p->coordinates.s, "tf_crop_and_resize") == 0;
    if (!read_sizes(n, axis, scales, sizes) || (is_crop && !read_region(n, axis)))
        return 0;
    adj_node *y = as_image(x, p, axis);
    for (int i = 0; y == NULL && i < s.rank && x != NULL; i++)
        if (axis[i].in != axis[i].out || axis[i].start != 0 || axis[i].end != 1)
            x = resize_axis(n, x, i, p, &axis[i]);
    return give(n, y != NULL ? y : x);
}

int import_resize(call *n)
{
    const int is_old = n->opset < 11; /* operands: x, scales */
    const resize_plan p = {
        .mode = attr_word(n, "mode", "nearest"),
        .coordinates =
            attr_word(n, "coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel"),
        .nearest = attr_word(n, "nearest_mode", is_old ? "floor" : "round_prefer_floor"),
        .cubic = attr_float(n, "cubic_coeff_a", -0.75),
        .outside = attr_float(n, "extrapolation_value", 0),
        .is_antialiased = attr_int(n, "antialias", 0) != 0,
        .is_excluding = attr_int(n, "exclude_outside", 0) != 0};
    const int is_nearest = strcmp(p.mode.s, "nearest") == 0;
    if (!is_nearest && strcmp(p.mode.s, "linear") != 0 && strcmp(p.mode.s, "cubic") != 0)
        return refuse(n, "mode %s", p.mode.s);
    if (is_nearest && p.is_antialiased)
        return refuse(n, "antialias of mode nearest");
    const int at = is_old ? 1 : 2;
    const numbers *scales =
        has_in(n, at) && adj_shape_elems(in_shape(n, at)) > 0 ? in_known(n, at) : NULL;
    const numbers *sizes = !is_old && has_in(n, 3) ? in_known(n, 3) : NULL;
    return n->reason[0] == '\0' && resize(n, &p, scales, sizes);
}

int import_upsample(call *n)
{
    const Onnx__AttributeProto *a = attribute(n, "scales");
    const resize_plan p = {.mode = attr_word(n, "mode", "nearest"),
                           .coordinates = {"asymmetric"},
                           .nearest = {"floor"}};
    numbers given = {0};
    const numbers *scales = has_in(n, 1) ? in_known(n, 1) : NULL;
    double list[ADJ_MAX_RANK];
    if (scales == NULL && a != NULL && a->n_floats <= ADJ_MAX_RANK) {
        for (size_t i = 0; i < a->n_floats; i++)
            list[i] = (double)a->floats[i];
        given = (numbers){.elem = ELEM_DOUBLE, .n = (int64_t)a->n_floats, .f = list};
        scales = &given;
    }
    if (strcmp(p.mode.s, "nearest") != 0 && strcmp(p.mode.s, "linear") != 0)
        return refuse(n, "mode %s", p.mode.s);
    return resize(n, &p, scales, NULL);
}
