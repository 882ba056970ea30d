/* test_safetensors.c - files written and read back, files in literal bytes, and hostile ones. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "adjoint_io.h"
#include "graph/op.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/safetensors_bytes.h"
#include "tests/io/scoped.h"

TestSuite(safetensors, .init = enter_folder, .fini = leave_folder);
TestSuite(weights, .init = enter_folder, .fini = leave_folder);

static adj_tensors *read_bytes(const file_bytes *file, size_t n, adj_status expected)
{
    adj_tensors *t = NULL;
    file_name path = in_folder(&here, "x.safetensors");
    put_file(path.s, file->bytes, n);
    adj_status status = adj_safetensors_read(path.s, &t);
    cr_assert_not_null(t);
    cr_expect_eq(status, expected, "%s", t->message);
    if (status != ADJ_OK) {
        expect_text(t->message, path.s);
        cr_expect(strstr(t->message, "offset ") != NULL ||
                      strstr(t->message, "not a file of tensors") != NULL,
                  "%s", t->message);
        cr_expect_eq(t->n, 0);
        cr_expect_eq(adj_tensors_find(t, "a"), -1);
        cr_expect_null(adj_tensors_metadata(t, "k"));
    }
    return t;
}

Test(safetensors, reads_literal_bytes)
{
    file_bytes file = safetensors_of(good_header, 24);
    adj_tensors *t = read_bytes(&file, file.n, ADJ_OK);
    static const struct {
        const char *name;
        adj_dtype dtype;
        int64_t rank, dim0;
        uint8_t first;
    } want[] = {{"a", ADJ_BF16, 1, 3, 0},
                {"e", ADJ_I32, 2, 0, 6},
                {"b", ADJ_F32, 2, 2, 6},
                {"s", ADJ_F64, 0, 0, 14},
                {"h", ADJ_F16, 1, 1, 22}};

    cr_assert_eq(t->n, 5);
    for (int i = 0; i < 5; i++) {
        adj_tensor x = t->tensor[i];
        cr_expect_str_eq(x.name, want[i].name);
        cr_expect_eq(adj_tensors_find(t, want[i].name), i);
        cr_expect(x.elem == (adj_elem)want[i].dtype && x.shape.rank == want[i].rank &&
                  x.shape.dim[0] == want[i].dim0);
        if (adj_shape_elems(x.shape) > 0)
            cr_expect_eq(*(const uint8_t *)x.data, want[i].first);
    }
    cr_expect_str_eq(adj_tensors_metadata(t, "k"), "v");
    cr_expect_null(adj_tensors_metadata(t, "l"));
    adj_tensors_free(t);

    file = safetensors_of("{}", 0); /* no tensors: an empty file of its kind */
    t = read_bytes(&file, file.n, ADJ_OK);
    cr_expect_eq(t->n, 0);
    adj_tensors_free(t);
}

/* A byte comes first, so that every other tensor begins at an odd address. The values are NumPy's:
 * numpy.frombuffer(bytes(range(29)), dtype, 1, offset). */
Test(safetensors, tensors_at_odd_addresses)
{
    static const char header[] =
        "{\"u\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[9,13]},"
        "\"i\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[13,17]},"
        "\"h\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[17,19]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[19,21]},"
        "\"l\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[21,29]}}";
    static const struct {
        adj_dtype dtype;
        double value;
    } want[] = {{ADJ_F64, 5.447603722011605e-270},
                {ADJ_F32, 1.0711190335780294e-31},
                {ADJ_I32, 269422093},
                {ADJ_F16, 0.0007405281066894531},
                {ADJ_BF16, 7.421603396319279e-27}};
    file_bytes file = safetensors_of(header, 29);
    scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_OK);

    for (int i = 0; i < 5; i++) {
        const adj_tensor x = t->tensor[i + 1];
        double real;
        float single;
        cr_expect_eq(adj_tensor_value(&x, 0), want[i].value, "%d: %.17g", i,
                     adj_tensor_value(&x, 0));
        adj_convert(want[i].dtype, x.data, ADJ_F32, &single, 1);
        cr_expect_eq(single, (float)want[i].value, "%d: %.9g", i, (double)single);
        adj_convert(want[i].dtype, x.data, ADJ_F64, &real, 1);
        cr_expect_eq(real, want[i].value, "%d: %.17g", i, real);
    }
    const adj_tensor last = t->tensor[6];
    cr_expect_eq(adj_tensor_value(&last, 0), 2025241152513840661.0, "%.17g",
                 adj_tensor_value(&last, 0));
}

/* The data are bytes 0, 1, 2, ...; the values are NumPy's and, of F8, those of the Open Compute
 * Project's specification. */
Test(safetensors, elements_that_no_executor_has)
{
    static const struct {
        const char *word, *name;
        size_t size;
        double second; /* element 1 */
    } want[] = {{"I64", "i64", 8, 1084818905618843912},
                {"I16", "i16", 2, 770},
                {"I8", "i8", 1, 1},
                {"U64", "u64", 8, 1084818905618843912},
                {"U32", "u32", 4, 117835012},
                {"U16", "u16", 2, 770},
                {"U8", "u8", 1, 1},
                {"BOOL", "bool", 1, 1},
                {"F8_E4M3", "f8_e4m3", 1, 0.001953125},
                {"F8_E5M2", "f8_e5m2", 1, 1.52587890625e-05}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char header[128];
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[2],\"data_offsets\":[0,%zu]}}", want[i].word,
                 2 * want[i].size);
        file_bytes file = safetensors_of(header, 2 * want[i].size);
        scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_OK);
        adj_tensor x = t->tensor[0];
        adj_type type;
        cr_expect_str_eq(adj_elem_name(x.elem), want[i].name);
        cr_expect_eq(adj_tensor_bytes(&x), (int64_t)(2 * want[i].size));
        cr_expect_eq(adj_tensor_value(&x, 1), want[i].second, "%s: %.17g", want[i].word,
                     adj_tensor_value(&x, 1));
        cr_expect(!adj_tensor_type(&x, &type));
    }

    static const uint8_t e4m3[] = {0x38, 0xb8, 0x7e, 0x7f, 0x08, 0x87, 0x00},
                         e5m2[] = {0x3c, 0xbc, 0x7b, 0x7c, 0x7e, 0x04, 0x83};
    static const double want4[] = {1, -1, 448, NAN, 0.015625, -0.013671875, 0},
                        want5[] = {
                            1, -1, 57344, INFINITY, NAN, 6.103515625e-05, -4.57763671875e-05};
    const adj_tensor four = {"", ADJ_ELEM_F8_E4M3, {1, {7}}, e4m3},
                     five = {"", ADJ_ELEM_F8_E5M2, {1, {7}}, e5m2};
    for (int i = 0; i < 7; i++) {
        double v4 = adj_tensor_value(&four, i), v5 = adj_tensor_value(&five, i);
        cr_expect(v4 == want4[i] || (isnan(v4) && isnan(want4[i])), "%d: %g", i, v4);
        cr_expect(v5 == want5[i] || (isnan(v5) && isnan(want5[i])), "%d: %g", i, v5);
    }
    static const int64_t minus = -1;
    static const adj_elem negative[] = {ADJ_ELEM_I64, ADJ_ELEM_I32, ADJ_ELEM_I16, ADJ_ELEM_I8};
    for (int i = 0; i < 4; i++)
        cr_expect_eq(adj_tensor_value(&(adj_tensor){"", negative[i], {0}, &minus}, 0), -1);
    cr_expect_eq(adj_tensor_value(&(adj_tensor){"", ADJ_ELEM_U64, {0}, &minus}, 0), 0x1p64);
}

Test(safetensors, truncated_at_every_byte_and_oversized)
{
    file_bytes file = safetensors_of(good_header, 24);
    for (size_t n = 2; n < file.n; n++) /* shorter: empty, or text (test_unreadable.c) */
        adj_tensors_free(read_bytes(&file, n, ADJ_EIO));
    adj_tensors_free(read_bytes(&file, file.n + 1, ADJ_EIO));
}

typedef struct {
    const char *word, *header;
    size_t data;
} lie;

#define F32(shape, offsets)                                                                        \
    "{\"a\":{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const lie lies[] = {
    {"a few bytes", "", 0},
    {"not JSON", "{", 0},
    {"not JSON", "{\"a\":1,\"a\":2}", 0}, /* duplicate keys */
    {"not JSON", "{\"a\\u0000b\":1}", 0},
    {"not JSON", "{}x", 0},
    {"got bytes 04 00 00 00 00 00 00 00 ff fe", "\xff\xfe{}", 0},
    {"not an object", "[]", 0},
    {"not an object", "{\"a\":[]}", 0},
    {"not an object", "{\"__metadata__\":1}", 0},
    {"not a string", "{\"__metadata__\":{\"k\":1}}", 0},
    {"dtype is not a string", "{\"a\":{}}", 0},
    {"shape is not a list", "{\"a\":{\"dtype\":\"7\"}}", 0},
    {"dtype is not a string", "{\"a\":{\"dtype\":7}}", 0},
    {"out of range", "{\"a\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,9]}}", 8},
    {"shape is not a list", "{\"a\":{\"dtype\":\"C64\",\"shape\":[-1],\"data_offsets\":[0,8]}}", 8},
    {"shape", F32("1", "[0,4]"), 4},
    {"shape", F32("[-1]", "[0,4]"), 4},
    {"shape", F32("[1.0]", "[0,4]"), 4},
    {"shape", F32("[\"1\"]", "[0,4]"), 4},
    {"shape", F32("[9223372036854775807,9223372036854775807]", "[0,4]"), 4},
    {"shape", F32("[4294967296,4294967296]", "[0,0]"), 0},
    {"fit its shape", F32("[4611686018427387905]", "[0,4]"), 4}, /* times 4 is 4 in 64 bits */
    {"not JSON", F32("[99999999999999999999]", "[0,4]"), 4},
    {"two numbers", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4},
    {"two numbers", F32("[1]", "[0]"), 4},
    {"two numbers", F32("[1]", "[0,4,4]"), 4},
    {"two numbers", F32("[1]", "[0,4.0]"), 4},
    {"two numbers", F32("[1]", "{\"0\":0}"), 4},
    {"out of range", F32("[1]", "[0,5]"), 4},
    {"out of range", F32("[1]", "[-4,0]"), 4},
    {"out of range", F32("[1]", "[4,0]"), 4},
    {"out of range", F32("[1]", "[9223372036854775804,9223372036854775807]"), 4},
    {"fit its shape", F32("[2]", "[0,4]"), 4},
    {"fit its shape", F32("[1]", "[0,8]"), 8},
    {"gap", F32("[1]", "[4,8]"), 8},
    {"no tensor", F32("[1]", "[0,4]"), 8},
    {"no tensor", "{}", 1},
    {"overlap",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
     12},
    {"overlap",
     "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
     "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
     8},
    {"tensor ?[31m", "{\"\\u001b[31m\":1}", 0}, /* no control characters reach a terminal */
};

Test(safetensors, hostile_headers)
{
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        file_bytes file = safetensors_of(lies[i].header, lies[i].data);
        scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_EIO);
        cr_expect_not_null(strstr(t->message, lies[i].word), "%zu: %s in: %s", i, lies[i].word,
                           t->message);
    }
    static const uint8_t lengths[][8] = {{3, 0, 0, 0, 0, 0, 0, 0}, /* one more than there is */
                                         {0, 0, 0, 0, 0, 0, 0, 0x80},
                                         {255, 255, 255, 255, 255, 255, 255, 255},
                                         {0xf8, 255, 255, 255, 255, 255, 255, 255},
                                         {0, 0, 0, 0, 1, 0, 0, 0}};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        file_bytes file = safetensors_of("{}", 0);
        memcpy(file.bytes, lengths[i], 8);
        scoped(release_tensors) adj_tensors *t = read_bytes(&file, file.n, ADJ_EIO);
        expect_text(t->message, "header length");
    }
    /* 2,000 open brackets: the parser's stack */
    char deep[2001];
    memset(deep, '[', 2000);
    deep[2000] = '\0';
    file_bytes file = safetensors_of(deep, 0);
    adj_tensors_free(read_bytes(&file, file.n, ADJ_EIO));
}

Test(safetensors, what_is_not_a_file, .timeout = 60)
{
    adj_tensors *t = NULL;
    cr_expect_eq(adj_safetensors_read(here.path, NULL), ADJ_EARG);
    cr_expect_eq(adj_safetensors_read(here.path, &t), ADJ_EIO);
    adj_tensors_free(t);
    cr_expect_eq(adj_safetensors_read(in_folder(&here, "none").s, &t), ADJ_EIO);
    expect_text(t->message, "No such file");
    adj_tensors_free(t);
    cr_expect_eq(adj_safetensors_read(NULL, &t), ADJ_EARG);
    adj_tensors_free(t);
    adj_tensors_free(NULL);

    /* written over a pipe or into a missing folder: refused, nothing left behind */
    adj_error error;
    file_name pipe = in_folder(&here, "pipe");
    cr_assert_eq(mkfifo(pipe.s, 0600), 0);
    cr_expect_eq(adj_safetensors_read(pipe.s, &t), ADJ_EIO);
    adj_tensors_free(t);
    cr_expect_eq(adj_tensors_write(pipe.s, 0, NULL, 0, NULL, &error), ADJ_EIO);
    expect_text(error.message, "not a regular file");
    cr_expect_eq(adj_tensors_write(in_folder(&here, "no/file").s, 0, NULL, 0, NULL, NULL), ADJ_EIO);
    cr_expect_eq(files_in(&here), 1);
}

/* A file left by a killed process is taken over; other files are not written to. */
Test(safetensors, left_behind)
{
    const file_name path = in_folder(&here, "w"), partial = in_folder(&here, "w.partial"),
                    other = in_folder(&here, "other");
    static char rubbish[100000];
    adj_error error = {0};
    adj_tensors *t = NULL;
    put_file(partial.s, rubbish, sizeof rubbish);
    cr_expect_eq(adj_tensors_write(path.s, 0, NULL, 0, NULL, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_safetensors_read(path.s, &t), ADJ_OK, "%s", t->message);
    adj_tensors_free(t);
    cr_expect_eq(files_in(&here), 1);

    put_file(other.s, "precious", 8);
    cr_assert_eq(symlink(other.s, partial.s), 0);
    cr_expect_eq(adj_tensors_write(path.s, 0, NULL, 0, NULL, NULL), ADJ_EIO);
    unlink(partial.s);
    cr_assert_eq(mkfifo(partial.s, 0600), 0);
    cr_expect_eq(adj_tensors_write(path.s, 0, NULL, 0, NULL, NULL), ADJ_EIO);
    unlink(partial.s);
    cr_assert_eq(mkdir(partial.s, 0700), 0);
    cr_expect_eq(adj_tensors_write(path.s, 0, NULL, 0, NULL, NULL), ADJ_EIO);
    rmdir(partial.s);
    char text[9] = "";
    cr_expect_eq(get_file(other.s, text, sizeof text), 8);
    cr_expect_str_eq(text, "precious");
}

/* Several processes write one file at once: each succeeds, and what is there is always whole. */
Test(safetensors, many_writers)
{
    enum { WRITERS = 8, TIMES = 250, N = 500 };
    const file_name path = in_folder(&here, "w");
    static float x[N];
    for (int i = 0; i < WRITERS; i++)
        if (fork() == 0) {
            int bad = 0;
            for (int k = 0; k < N; k++)
                x[k] = (float)i;
            const adj_tensor tensor = {"x", ADJ_ELEM_F32, {1, {N - 50 * i}}, x};
            for (int k = 0; k < TIMES; k++) {
                scoped(release_tensors) adj_tensors *t = NULL;
                bad += adj_tensors_write(path.s, 1, &tensor, 0, NULL, NULL) != ADJ_OK;
                bad += adj_safetensors_read(path.s, &t) != ADJ_OK;
                adj_tensor y = t->tensor[0];
                const float *v = y.data;
                for (int64_t j = 0; v != NULL && j < y.shape.dim[0]; j++)
                    bad += v[j] != (float)(N - y.shape.dim[0]) / 50;
            }
            _exit(bad != 0);
        }
    for (int i = 0; i < WRITERS; i++) {
        int status = 1;
        wait(&status);
        cr_expect_eq(status, 0);
    }
    cr_expect_eq(files_in(&here), 1);
}

/* The bytes written, spelled out: wider elements first, data aligned to 8. The checksums are
 * Python's. */
Test(safetensors, writes_these_bytes)
{
    file_name path = in_folder(&here, "w.safetensors");
    const float a[2] = {1, -2};
    const double d = 0.5;
    const adj_tensor tensors[] = {{"a", ADJ_ELEM_F32, {1, {2}}, a}, {"d", ADJ_ELEM_F64, {0}, &d}};
    const adj_metadata metadata[] = {{"k", "v\""}};
    static const char header[] = "{\"__metadata__\":{\"k\":\"v\\\"\","
                                 "\"adjoint.crc32:d\":\"8d3a01b8\","
                                 "\"adjoint.crc32:a\":\"c3872656\","
                                 "\"adjoint.crc32\":\"650ce209\"},"
                                 "\"d\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,16]}}";
    adj_error error = {0};
    put_file(path.s, "old", 3);
    cr_assert_eq(adj_tensors_write(path.s, 2, tensors, 1, metadata, &error), ADJ_OK, "%s",
                 error.message);

    uint8_t got[1024] = {0};
    const size_t n = get_file(path.s, got, sizeof got);
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    cr_assert_eq(n, 8 + padded + 16);
    cr_expect(got[0] + 256U * got[1] == padded && got[2] == 0 && got[7] == 0);
    cr_expect_eq(memcmp(got + 8, header, sizeof header - 1), 0);
    for (size_t i = sizeof header - 1; i < padded; i++)
        cr_expect_eq(got[8 + i], ' ');
    static const uint8_t data[16] = {0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0};
    cr_expect_arr_eq(got + 8 + padded, data, sizeof data);
    cr_expect_eq(files_in(&here), 1);
}

Test(safetensors, round_trip_and_refusals)
{
    file_name path = in_folder(&here, "r.safetensors");
    enum { ELEMS = ADJ_ELEM_F8_E5M2 + 1 };
    uint8_t data[ELEMS][64];
    adj_tensor x[ELEMS];
    adj_error error;
    char names[ELEMS][8];
    for (int i = 0; i < ELEMS; i++) {
        for (int k = 0; k < 64; k++)
            data[i][k] = (uint8_t)(37 * i + 11 * k);
        snprintf(names[i], sizeof names[i], "n%d", i);
        x[i] = (adj_tensor){names[i], (adj_elem)i, {3, {2, 1, 3}}, data[i]};
    }
    cr_assert_eq(adj_tensors_write(path.s, ELEMS, x, 0, NULL, &error), ADJ_OK);
    adj_tensors *t = NULL;
    cr_assert_eq(adj_safetensors_read(path.s, &t), ADJ_OK);
    cr_assert_eq(t->n, ELEMS);
    for (int i = 0; i < ELEMS; i++) {
        adj_tensor y = t->tensor[adj_tensors_find(t, names[i])];
        cr_expect_eq(y.elem, x[i].elem);
        cr_expect_eq(memcmp(&y.shape, &x[i].shape, sizeof y.shape), 0);
        cr_expect_eq(memcmp(y.data, data[i], 6 * adj_elem_size(x[i].elem)), 0);
        cr_expect_eq((uintptr_t)y.data % adj_elem_size(x[i].elem), 0, "not aligned");
    }
    adj_tensors_free(t);

    adj_tensor bad[2] = {x[0], x[0]}; /* twice the same name */
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1].name = "__metadata__";
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1].name = "\xff";
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1] = (adj_tensor){"x", ADJ_ELEM_F32, {1, {-1}}, data};
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    bad[1] = (adj_tensor){"x", (adj_elem)99, {1, {1}}, data};
    cr_expect_eq(adj_tensors_write(path.s, 2, bad, 0, NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_tensors_write(path.s, 1, NULL, 0, NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_tensors_write(path.s, 0, NULL, 1, NULL, &error), ADJ_EARG);
    expect_text(error.message, "(got 0 tensors, 1 metadata)");
    cr_assert_eq(adj_safetensors_read(path.s, &t), ADJ_OK,
                 "a refused write must leave the old file");
    cr_expect_eq(t->n, ELEMS);
    adj_tensors_free(t);
    cr_expect_eq(files_in(&here), 1);
}

/* Two parameters and a state, of which b has other initial values. */
static adj_exec *executor(adj_graph *g, uint64_t seed, int64_t width, adj_node **w)
{
    const adj_init normal = {.kind = ADJ_INIT_NORMAL, .b = 1};
    *w = adj_param(g, "fc/w", ADJ_F32, (adj_shape){2, {3, width}}, normal);
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {1, 3}});
    adj_node *s = adj_state(g, "fc/s", ADJ_F32, (adj_shape){2, {1, width}}, normal);
    adj_node *y = adj_add(adj_matmul(x, *w, 0), s);
    adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .backend = "naive", .seed = seed});
    return e;
}

Test(weights, save_and_load)
{
    file_name path = in_folder(&here, "weights");
    adj_graph *g[3] = {adj_graph_new(), adj_graph_new(), adj_graph_new()};
    adj_node *w[3];
    adj_exec *e[3] = {executor(g[0], 1, 2, &w[0]), executor(g[1], 2, 2, &w[1]),
                      executor(g[2], 3, 4, &w[2])};
    float a[6], b[6], c[12], before[12];
    adj_error error = {0};

    cr_assert_eq(adj_get(e[0], w[0], a, sizeof a), ADJ_OK);
    cr_assert_eq(adj_get(e[1], w[1], b, sizeof b), ADJ_OK);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    cr_assert_eq(adj_weights_save(e[0], path.s, 1, &(adj_metadata){"model", "m"}, &error), ADJ_OK,
                 "%s", error.message);
    cr_assert_eq(adj_weights_load(e[1], path.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_get(e[1], w[1], b, sizeof b), ADJ_OK);
    cr_expect_eq(memcmp(a, b, sizeof a), 0);

    /* another shape: refused, nothing set */
    cr_assert_eq(adj_get(e[2], w[2], before, sizeof before), ADJ_OK);
    cr_expect_eq(adj_weights_load(e[2], path.s, NULL, &error), ADJ_ESHAPE);
    expect_text(error.message, "got f32 [3, 2], expected f32 [3, 4]");
    cr_assert_eq(adj_get(e[2], w[2], c, sizeof c), ADJ_OK);
    cr_expect_eq(memcmp(c, before, sizeof c), 0);
    /* a parameter missing */
    cr_assert_eq(adj_tensors_write(path.s, 0, NULL, 0, NULL, NULL), ADJ_OK);
    cr_expect_eq(adj_weights_load(e[1], path.s, NULL, &error), ADJ_EIO);
    expect_text(error.message, "no tensor fc/");
    cr_expect_eq(adj_weights_load(e[1], in_folder(&here, "none").s, NULL, &error), ADJ_EIO);
    /* no executor, and one without a plan: the file stays */
    adj_exec *failed;
    const adj_exec_opts unknown = {.n_fetch = 1, .fetch = &w[0], .backend = "typo"};
    cr_assert_eq(adj_exec_new(g[0], &unknown, &failed), ADJ_EARG);
    cr_expect_eq(adj_exec_stats(failed).threads, 0);
    cr_assert_eq(adj_weights_save(e[0], path.s, 0, NULL, &error), ADJ_OK);
    cr_expect_eq(adj_weights_save(NULL, path.s, 0, NULL, &error), ADJ_EARG);
    expect_text(error.message, "weights: the executor is NULL");
    cr_expect_eq(adj_weights_load(NULL, path.s, NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_weights_save(failed, path.s, 0, NULL, &error), ADJ_EARG);
    expect_text(error.message, "weights: adj_exec_new: unknown backend");
    cr_expect_eq(adj_weights_load(failed, path.s, NULL, &error), ADJ_EARG);
    expect_text(error.message, "weights: adj_exec_new: unknown backend");
    cr_expect_eq(adj_weights_load(e[0], path.s, NULL, &error), ADJ_OK, "%s", error.message);
    adj_exec_free(failed);
    for (int i = 0; i < 3; i++) {
        adj_exec_free(e[i]);
        adj_graph_free(g[i]);
    }
}
