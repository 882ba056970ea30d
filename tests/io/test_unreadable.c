/* test_unreadable.c - files of other programs as weights: the message names the kind and how to
 * export it; and a tensor of a type or rank that the library does not have refuses only itself: the
 * file opens, the others load, and loading this tensor fails with the reason.
 *
 * The bytes were written by PyTorch 2.15 (torch.save of Linear(2, 3).state_dict(), the same
 * with _use_new_zipfile_serialization=False, torch.jit.script(...).save), pickle.dump, Keras 3.15
 * (save to .keras and .h5), TensorFlow 2.21 (saved_model.save, Checkpoint.write, TFLiteConverter),
 * onnx.save with and without a producer's name, gzip, and numpy.savez of nothing. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <string.h>

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "cli/child.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/sample.h"
#include "tests/io/scoped.h"

TestSuite(file_kind, .init = enter_folder, .fini = leave_folder);
TestSuite(unreadable, .init = enter_folder, .fini = leave_folder);

/* The first bytes of a file, what a message says that it is, and how to export it (NULL: nothing).
 */
typedef struct {
    const char *bytes;
    size_t n;
    const char *is, *cure;
} start;

#define BYTES(literal) literal, sizeof(literal) - 1

static const char torch[] = "safetensors.torch.save_file(model.state_dict()",
                  keras[] = "numpy.savez(\"w.npz\", **{v.path", onnx[] = "adjoint convert NET.onnx";

static const start starts[] = {
    {BYTES("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\12\0\30\0a/data.pklFB\24\0ZZZZ"),
     "a PyTorch archive", torch},
    {BYTES("PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\15\0\25\0script/data/0FB\21\0ZZ"),
     "a PyTorch archive", torch},
    {BYTES("\200\2\212\12l\374\234F\371 j\250P\31.\200\2M\351\3.\200\2}"), "an old PyTorch pickle",
     torch},
    {BYTES("\200\4\225\250\0\0\0\0\0\0\0}\224\214\1a\224\214\26numpy._core.m"), "a Python pickle",
     "numpy.savez"},
    {BYTES("PK\3\4\24\0\0\0\0\0\0\0!\0\354Q\226p@\0\0\0@\0\0\0\15\0\0\0metadata.json{\"keras_ver"),
     "a Keras 3 .keras archive", keras},
    {BYTES("\211HDF\15\12\32\12\0\0\0\0\0\10\10\0"), "HDF5", keras},
    {BYTES("\10\16:e\12\21\12\1x\12\1w\22\1y\"\6MatMul\22"), "an ONNX model", onnx},
    {BYTES("\10\16\22\7pytorch:e\12\21\12\1x\12\1w\22\1y"), "an ONNX model", onnx},
    {BYTES("\37\213\10\10cV\13k\2\377x\0\313H\315\311"), "gzip", "gunzip"},
    {BYTES("\10\1\22\357V\12\271\14\22\211\14\12^\12\20AssignVariableOp\22"),
     "a TensorFlow SavedModel", "model.variables"},
    {BYTES("\0\0\6\10\1\32\2\10\1\0\34\15_CHECKPOINTABLE_OBJE"),
     "the index of a TensorFlow checkpoint", "tf.train.load_checkpoint"},
    {BYTES("\34\0\0\0TFL3\24\0 \0\34\0\30\0"), "a TensorFlow Lite model", "export from the model"},
    {BYTES("GGUF\3\0\0\0\0\0\0\0\0\0\0\0"), "GGUF", "export as safetensors"},
    {BYTES("version https:"
           "//git-lfs.github.com/spec/v1\noid sha256:4d7a"),
     "a pointer of Git LFS", "git lfs pull"},
    {BYTES(" {\"a\": [1, 2, 3]}\n"), "text", NULL},
    {BYTES("hello, world\n"), "text", NULL},
    {BYTES("a\n"), "text", NULL},
    {BYTES("\200\2}q\0."), "a Python pickle", "numpy.savez"},
    {BYTES("\1\2\3\4\5"), "an unknown kind", NULL},
    {BYTES("\1\0\0\0\0\0\0\0z\0"), "an unknown kind", NULL},
    {BYTES("\1\0\0\0\1\0\0\0{\0"), "an unknown kind", NULL},
    {BYTES("\0\0\0\0\0\0\0\0"), "an unknown kind", NULL},
    {BYTES(""), "an empty file", NULL},
};

/* Whole archives as Python's zipfile writes them: with PyTorch's padding, with Keras's first name,
 * and with another name. */
static const struct {
    const char *file, *is, *cure;
} archives[] = {
    {"torch.zip", "a PyTorch archive", torch},
    {"keras.zip", "a Keras 3 .keras archive", keras},
    {"text.zip", "a zip archive without .npy files", "unpack it"},
    {"empty.zip", "a zip archive without .npy files", NULL},
};

static void expect_sentence(const char *is, const char *cure, const char *path, const char *message)
{
    char got[80];
    snprintf(got, sizeof got, "not a file of tensors (got %s", is);
    expect_text(message, path);
    expect_text(message, got);
    expect_text(message, "expected safetensors, .npz, .npy or IDX)");
    cr_expect_null(strstr(message, "offset"), "%s", message);
    if (cure != NULL)
        expect_text(message, cure);
}

/* The readers of any file and of weights say the same. */
static void expect_refused(const char *is, const char *cure, const char *path)
{
    adj_tensors *t = NULL;
    adj_predictor *p = NULL;
    adj_error error = {0};
    cr_expect_eq(adj_tensors_read(path, &t), ADJ_EIO, "%s", is);
    expect_sentence(is, cure, path, t->message);
    cr_expect_eq(t->n, 0);
    adj_tensors_free(t);
    cr_expect_eq(adj_predictor_load(path, &(adj_net){.name = "lenet"}, NULL, &p, &error), ADJ_EIO);
    expect_sentence(is, cure, path, error.message);
}

Test(file_kind, first_bytes)
{
    const file_name path = in_folder(&here, "w");
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        put_file(path.s, starts[i].bytes, starts[i].n);
        expect_refused(starts[i].is, starts[i].cure, path.s);
    }
}

Test(file_kind, archives_without_arrays)
{
    const file_name path = in_folder(&here, "w.npz");
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        put_sample(&here, "w.npz", archives[i].file);
        expect_refused(archives[i].is, archives[i].cure, path.s);
    }
}

/* Every command that takes such a file fails with that sentence. */
Test(file_kind, commands)
{
    const file_name path = in_folder(&here, "w.pt"), out = in_folder(&here, "o.safetensors"),
                    image = in_folder(&here, "i.png");
    const char *const lines[][8] = {
        {"inspect", path.s},
        {"convert", path.s, out.s},
        {"train", "--data", "digits", "--limit", "64", "--weights", path.s},
        {"eval", "--data", "digits", "--weights", path.s},
        {"predict", "--weights", path.s, image.s},
        {"op", "relu", "--in", path.s, "--out", out.s},
    };
    put_sample(&here, "w.pt", "torch.zip");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        run_tool(lines[i]);
        cr_expect_eq(ran.status, 1, "%s: %s", lines[i][0], ran.err);
        expect_sentence("a PyTorch archive", torch, path.s, ran.err);
    }
    /* legal, with nothing in it */
    put_file(path.s, "\2\0\0\0\0\0\0\0{}", 10);
    for (size_t i = 0; i < 2; i++) {
        run_tool(lines[i]);
        cr_expect_eq(ran.status, 1, "%s: %s", lines[i][0], ran.out);
        expect_text(ran.err, "w.pt: has no tensors");
    }
    cr_expect_eq(files_in(&here), 1);
}

/* F4 has half a byte an element; the data are bytes 0, 1, 2, ... */
static const char header[] =
    "{\"c\":{\"dtype\":\"C64\",\"shape\":[2,3],\"data_offsets\":[0,48]},"
    "\"h\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[48,49]},"
    "\"r\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,3],\"data_offsets\":[49,52]},"
    "\"s\\u001b\":{\"dtype\":\"\\u001b[31m\",\"shape\":[],\"data_offsets\":[52,52]},"
    "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[52,54]}}";

static void put_safetensors(const char *path)
{
    const file_bytes file = safetensors_of(header, 54);
    put_file(path, file.bytes, file.n);
}

Test(unreadable, safetensors)
{
    static const struct {
        const char *name, *why;
    } want[] = {{"c", "C64 [2, 3]: unknown type"},
                {"h", "F4 [2]: unknown type"},
                {"r", "U8 [1, 1, 1, 1, 1, 1, 1, 1, 3]: too many axes"},
                {"s\33", "?[31m []: unknown type"}};
    const file_name path = in_folder(&here, "w.safetensors");
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

/* numpy.savez_compressed of NumPy 2: c complex64 [1], f float32 [2, 2] in Fortran's order, w
 * float32 [0.5, -2]. */
Test(unreadable, npz_and_loading)
{
    const file_name path = in_folder(&here, "w.npz"), map = in_folder(&here, "m");
    adj_error error = {0};
    put_sample(&here, "w.npz", "c_and_fortran.npz");
    cr_expect_eq(load("w", NULL, path.s, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(load("f", NULL, path.s, &error), ADJ_ESHAPE);
    expect_text(error.message, "tensor f cannot be read (is in Fortran order");
    put_file(map.s, "a = w\nx = c\n", 12);
    cr_expect_eq(load("a", map.s, path.s, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(load("x", map.s, path.s, &error), ADJ_ESHAPE);
    expect_text(error.message, "tensor c cannot be read (its dtype is not a plain");
}

Test(unreadable, commands)
{
    const file_name path = in_folder(&here, "w.safetensors"), out = in_folder(&here, "o.npz");
    adj_tensors *t = NULL;
    put_safetensors(path.s);
    tool(0, "inspect %s", path.s);
    expect_text(ran.out, " C64 [2, 3]: unknown type, cannot be read\n");
    expect_text(ran.out, "5 tensors, 2 elements, 2 bytes\n");
    tool(ANY_STATUS, "inspect --json %s", path.s);
    json_t *all = json_loads(ran.out, 0, NULL), *list = json_object_get(all, "tensors");
    cr_assert_eq(json_array_size(list), 5, "%s", ran.out);
    int unreadable = 0;
    for (size_t i = 0; i < 5; i++)
        unreadable += json_object_get(json_array_get(list, i), "unreadable") != NULL;
    cr_expect_eq(unreadable, 4);
    json_decref(all);

    tool(0, "convert %s %s", path.s, out.s);
    expect_text(ran.err, "note: c is left out (C64 [2, 3]: unknown type)");
    cr_assert_eq(adj_tensors_read(out.s, &t), ADJ_OK);
    cr_expect_eq(t->n, 1);
    cr_expect_eq(adj_tensors_find(t, "w"), 0);
    adj_tensors_free(t);

    const file_name map = in_folder(&here, "map"); /* tensors that it does not name are copied */
    put_file(map.s, "a = v\n", 6);
    tool(1, "convert %s %s --map %s --to-theirs", path.s, out.s, map.s);
    put_file(map.s, "w = v\n", 6);
    tool(0, "convert %s %s --map %s --to-theirs", path.s, out.s, map.s);
    cr_assert_eq(adj_tensors_read(out.s, &t), ADJ_OK);
    cr_expect_eq(t->n, 1);
    cr_expect_eq(adj_tensors_find(t, "v"), 0);
    adj_tensors_free(t);
}
