/* test_unreadable.c - a tensor of a type or rank that the library does not have refuses only
 * itself: the file opens, the others load, and loading this tensor fails with the reason. */
#include <jansson.h>

#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "cli/child.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/scoped.h"

/* F4 has half a byte an element; the data are bytes 0, 1, 2, ... */
static const char header[] =
    "{\"c\":{\"dtype\":\"C64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
    "\"h\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[48,49]},"
    "\"r\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,3],\"data_offsets\":[49,52]},"
    "\"s\\u001b\":{\"dtype\":\"\\u001b[31m\",\"shape\":[],\"data_offsets\":[52,52]},"
    "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[52,54]}}";
enum { HEADER = sizeof header - 1, DATA = 54 };

/* numpy.savez_compressed of NumPy 2: c complex64 [1], f float32 [2, 2] in Fortran's order, w
 * float32 [0.5, -2]. */
static const char npz[] =
    "PK\3\4-\0\0\0\10\0\0\0!\0\262\233k(\377\377\377\377\377\377\377\377\5\0\24\0c.npy\1"
    "\0\20\0\210\0\0\0\0\0\0\0G\0\0\0\0\0\0\0\233\354\27\352\33\20\311\310P\306P\255\236"
    "\222Z\234\\\244n\245\240n\223l\241\256\243\240\236\226_TR\224\230\27\237_\224\222\12"
    "\22wK\314)N\5\212\27g$\26\244\2\371\32\206:\232:\12\265\12\24\0.\6(\0\0PK\3\4-\0\0\0"
    "\10\0\0\0!\0D\0\10\343\377\377\377\377\377\377\377\377\5\0\24\0f.npy\1\0\20\0\220\0"
    "\0\0\0\0\0\0H\0\0\0\0\0\0\0\233\354\27\352\33\20\311\310P\306P\255\236\222Z\234\\"
    "\244n\245\240n\223f\242\256\243\240\236\226_TR\224\230\27\237_\224\222\12\22\17)*M\5"
    "\12\27g$\26\244\2\271\32F:\12F\232:\12\265\12\344\3.\6\64\0\0PK\3\4-\0\0\0\10\0\0\0!"
    "\0b]\243\24\377\377\377\377\377\377\377\377\5\0\24\0w.npy\1\0\20\0\210\0\0\0\0\0\0\0"
    "K\0\0\0\0\0\0\0\233\354\27\352\33\20\311\310P\306P\255\236\222Z\234\\\244n\245\240n"
    "\223f\242\256\243\240\236\226_TR\224\230\27\237_\224\222\12\22wK\314)N\5\212\27g$\26"
    "\244\2\371\32F:\232:\12\265\12\24\0.\6\6\6{ >\0\0PK\1\2-\3-\0\0\0\10\0\0\0!\0\262"
    "\233k(G\0\0\0\210\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\200\1\0\0\0\0c.npyPK\1\2-\3-\0\0\0"
    "\10\0\0\0!\0D\0\10\343H\0\0\0\220\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\200\1~\0\0\0f.npyPK"
    "\1\2-\3-\0\0\0\10\0\0\0!\0b]\243\24K\0\0\0\210\0\0\0\5\0\0\0\0\0\0\0\0\0\0\0\200\1"
    "\375\0\0\0w.npyPK\5\6\0\0\0\0\3\0\3\0\231\0\0\0\177\1\0\0\0\0";

static void put_safetensors(const char *path)
{
    char bytes[8 + HEADER + DATA] = {(char)(HEADER & 255), (char)(HEADER >> 8)};
    memcpy(bytes + 8, header, HEADER);
    for (int i = 0; i < DATA; i++)
        bytes[8 + HEADER + i] = (char)i;
    put_file(path, bytes, sizeof bytes);
}

Test(unreadable, safetensors)
{
    static const struct {
        const char *name, *why;
    } want[] = {{"c", "C64 [2, 3]: unknown type"},
                {"h", "F4 [2]: unknown type"},
                {"r", "U8 [1, 1, 1, 1, 1, 1, 1, 1, 3]: too many axes"},
                {"s\33", "?[31m []: unknown type"}};
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "w.safetensors");
    scoped(release_tensors) adj_tensors *t = NULL;
    put_safetensors(path.s);
    cr_assert_eq(adj_tensors_read(path.s, &t), ADJ_OK, "%s", t->message);
    cr_assert_eq(t->n, 5);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const int k = adj_tensors_find(t, want[i].name);
        cr_assert_geq(k, 0);
        const adj_tensor x = t->tensor[k];
        cr_expect_str_eq(adj_tensors_unreadable(t, k), want[i].why);
        cr_expect(x.elem == ADJ_ELEM_UNREADABLE && x.data == NULL && adj_tensor_bytes(&x) == -1);
    }
    const int k = adj_tensors_find(t, "w");
    const adj_tensor w = t->tensor[k];
    cr_expect_null(adj_tensors_unreadable(t, k));
    cr_expect(adj_tensor_value(&w, 0) == 52 && adj_tensor_value(&w, 1) == 53);
    cr_expect_null(adj_tensors_unreadable(t, -1));
    cr_expect_null(adj_tensors_unreadable(t, 5));
}

/* Loads the .npz into an executor with a parameter of that name, f32 [2]. */
static adj_status load(const char *parameter, const char *map, const char *path, adj_error *error)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, parameter, ADJ_F32, (adj_shape){1, {2}}, adj_init_constant(0));
    adj_node *y = adj_add(p, p);
    float value[2] = {0};
    scoped(release_exec) adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
    adj_status status = adj_weights_load(e, path, &(adj_weights_opts){.map = map}, error);
    cr_assert_eq(adj_get(e, p, value, sizeof value), ADJ_OK);
    cr_expect_eq(value[1], status == ADJ_OK ? -2 : 0);
    return status;
}

Test(unreadable, npz_and_loading)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "w.npz"), map = in_folder(&f, "m");
    adj_error error = {0};
    put_file(path.s, npz, sizeof npz - 1);
    cr_expect_eq(load("w", NULL, path.s, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(load("f", NULL, path.s, &error), ADJ_ESHAPE);
    cr_expect_not_null(strstr(error.message, "tensor f cannot be read (is in Fortran order"), "%s",
                       error.message);
    put_file(map.s, "a = w\nx = c\n", 12);
    cr_expect_eq(load("a", map.s, path.s, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(load("x", map.s, path.s, &error), ADJ_ESHAPE);
    cr_expect_not_null(strstr(error.message, "tensor c cannot be read (its dtype is not a plain"),
                       "%s", error.message);
}

Test(unreadable, commands)
{
    static finished r;
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "w.safetensors"), out = in_folder(&f, "o.npz");
    adj_tensors *t = NULL;
    put_safetensors(path.s);
    tool(&r, 0, "inspect %s", path.s);
    expect_text(r.out, " C64 [2, 3]: unknown type, cannot be read\n");
    expect_text(r.out, "5 tensors, 2 elements, 2 bytes\n");
    tool(&r, ANY_STATUS, "inspect --json %s", path.s);
    json_t *all = json_loads(r.out, 0, NULL), *list = json_object_get(all, "tensors");
    cr_assert_eq(json_array_size(list), 5, "%s", r.out);
    int unreadable = 0;
    for (size_t i = 0; i < 5; i++)
        unreadable += json_object_get(json_array_get(list, i), "unreadable") != NULL;
    cr_expect_eq(unreadable, 4);
    json_decref(all);

    tool(&r, 0, "convert %s %s", path.s, out.s);
    expect_text(r.err, "note: c is left out (C64 [2, 3]: unknown type)");
    cr_assert_eq(adj_tensors_read(out.s, &t), ADJ_OK);
    cr_expect_eq(t->n, 1);
    cr_expect_eq(adj_tensors_find(t, "w"), 0);
    adj_tensors_free(t);

    const file_name map = in_folder(&f, "map"); /* tensors that it does not name are copied */
    put_file(map.s, "a = v\n", 6);
    tool(&r, 1, "convert %s %s --map %s --to-theirs", path.s, out.s, map.s);
    put_file(map.s, "w = v\n", 6);
    tool(&r, 0, "convert %s %s --map %s --to-theirs", path.s, out.s, map.s);
    cr_assert_eq(adj_tensors_read(out.s, &t), ADJ_OK);
    cr_expect_eq(t->n, 1);
    cr_expect_eq(adj_tensors_find(t, "v"), 0);
    adj_tensors_free(t);
}
