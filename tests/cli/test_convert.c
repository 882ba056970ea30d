/* test_convert.c - inspect and convert from the command line; a written header compiles, and eval
 * and train read the written files. */
#include <jansson.h>
#include <math.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/small_data.h"
#include "tests/plan.h"

static finished r;

static const float a[6] = {0.1F, -1, 3.4028235e38F, 1e-45F, NAN, -INFINITY};
static const int64_t big[2] = {INT64_MIN, INT64_MAX};
static const uint8_t bytes[3] = {0, 1, 255};
static const uint16_t brain[2] = {0x3f80, 0xc049}; /* 1, -3.140625 */
static const adj_tensor tensors[] = {{"layer/a b", ADJ_ELEM_F32, {2, {2, 3}}, a},
                                     {"layer.a b", ADJ_ELEM_I64, {1, {2}}, big},
                                     {"bytes", ADJ_ELEM_U8, {1, {3}}, bytes},
                                     {"brain */", ADJ_ELEM_BF16, {1, {2}}, brain}};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

static file_name put_tensors(const folder *f)
{
    file_name path = in_folder(f, "t.safetensors");
    const adj_metadata m = {"note", "a */ comment"};
    cr_assert_eq(adj_tensors_write(path.s, TENSORS, tensors, 1, &m, NULL), ADJ_OK);
    return path;
}

Test(convert, inspect)
{
    scoped(folder_remove) folder f = folder_new();
    file_name path = put_tensors(&f);
    tool(&r, 0, "inspect %s", path.s);
    expect_text(r.out, "note: a */ comment\n");
    expect_text(r.out,
                "layer/a b                    f32   [2, 3]             -1 to 3.40282e+38, mean "
                "8.50706e+37, 1 NaN, 1 infinite\n");
    expect_text(r.out, "bytes                        u8    [3]                0 to "
                       "255, mean 85.3333\n");
    expect_text(r.out, "4 tensors, 13 elements, 47 bytes\n");
    const file_name small = in_folder(&f, "small.safetensors");
    const adj_tensor one = {"one", ADJ_ELEM_U8, {0}, "1"};
    cr_assert_eq(adj_tensors_write(small.s, 1, &one, 0, NULL, NULL), ADJ_OK);
    tool(&r, ANY_STATUS, "inspect %s", small.s);
    expect_text(r.out, "1 tensor, 1 element, 1 byte\n");

    tool(&r, ANY_STATUS, "inspect --json %s", path.s);
    json_t *j = json_loads(r.out, 0, NULL), *first = NULL;
    cr_assert_not_null(j, "%s", r.out);
    for (size_t i = 0; i < TENSORS; i++)
        if (strcmp(json_string_value(
                       json_object_get(json_array_get(json_object_get(j, "tensors"), i), "name")),
                   "layer/a b") == 0)
            first = json_array_get(json_object_get(j, "tensors"), i);
    cr_expect_eq(json_integer_value(json_object_get(first, "nan")), 1);
    cr_expect_eq(json_number_value(json_object_get(first, "min")), -1);
    cr_expect_str_eq(json_string_value(json_object_get(json_object_get(j, "metadata"), "note")),
                     "a */ comment");
    json_decref(j);
    tool(&r, 3, "inspect");
    tool(&r, 3, "inspect %s %s", path.s, path.s);
    tool(&r, 1, "inspect /nowhere/x");
}

/* Through npz and back nothing changes but bf16, which is f32 there. */
Test(convert, npz_and_npy)
{
    scoped(folder_remove) folder f = folder_new();
    file_name path = put_tensors(&f), npz = in_folder(&f, "t.npz"), npy = in_folder(&f, "t.npy"),
              back = in_folder(&f, "back.safetensors");
    adj_tensors *t = NULL;
    tool(&r, 0, "convert %s %s", path.s, npz.s);
    tool(&r, 0, "convert %s %s", npz.s, back.s);
    cr_assert_eq(adj_tensors_read(back.s, &t), ADJ_OK, "%s", t->message);
    cr_assert_eq(t->n, TENSORS);
    for (int i = 0; i < TENSORS; i++) {
        adj_tensor x = t->tensor[adj_tensors_find(t, tensors[i].name)];
        cr_expect_eq(memcmp(&x.shape, &tensors[i].shape, sizeof x.shape), 0);
        if (tensors[i].elem != ADJ_ELEM_BF16)
            cr_expect(x.elem == tensors[i].elem &&
                      memcmp(x.data, tensors[i].data, (size_t)adj_tensor_bytes(&x)) == 0);
        else
            cr_expect(x.elem == ADJ_ELEM_F32 && ((const float *)x.data)[1] == -3.140625F);
    }
    adj_tensors_free(t);

    const adj_metadata model = {"model", "lenet"};
    cr_assert_eq(adj_tensors_write(back.s, 1, tensors, 1, &model, NULL), ADJ_OK);
    tool(&r, 0, "convert %s %s", back.s, npz.s);
    expect_text(r.err, "the model card");

    tool(&r, 1, "convert %s %s", path.s, npy.s);
    expect_text(r.err, "select one with --tensor NAME");
    tool(&r, 0, "convert %s %s --tensor bytes", path.s, npy.s);
    /* NumPy's np.save(np.array([0, 1, 255], np.uint8)) */
    static const char want[] = "\x93NUMPY\1\0\x76\0{'descr': '|u1', 'fortran_order': False, "
                               "'shape': (3, ), }";
    char got[200] = "";
    FILE *file = fopen(npy.s, "rb");
    cr_expect_eq(fread(got, 1, sizeof got, file), 128 + 3);
    fclose(file);
    cr_expect_eq(memcmp(got, want, sizeof want - 1), 0);
    cr_expect(got[127] == '\n' && memcmp(got + 128, bytes, 3) == 0);
    tool(&r, 1, "convert %s %s --tensor no", path.s, npy.s);
}

static void compile_and_run(const char *source, const char *program)
{
    static const char *const compilers[] = {"cc -std=c11", "c++ -x c++ -std=c++17"};
    for (int i = 0; i < 2; i++) {
        char line[1400];
        if (i == 1 && system("command -v c++ >/dev/null") != 0)
            continue;
        snprintf(line, sizeof line, "%s -Wall -Wextra -pedantic -Werror %s -o %s -lm && %s",
                 compilers[i], source, program, program);
        cr_expect_eq(system(line), 0, "%s", line);
    }
}

/* The header is compiled as C11 and as C++ without a warning, and has the values; the wider
 * elements are first in the file. */
Test(convert, header)
{
    static const char program[] =
        "#include <math.h>\n#include <stdio.h>\n#include \"t.h\"\n"
        "int main(void)\n{\n"
        "    int ok = weights_layer_a_b_2[0] == 0.1F && weights_layer_a_b_2[2] == 3.4028235e38F "
        "&&\n"
        "             weights_layer_a_b_2[3] > 0 && weights_layer_a_b_2[3] == 1e-45F &&\n"
        "             isnan(weights_layer_a_b_2[4]) && isinf(weights_layer_a_b_2[5]);\n"
        "    ok = ok && weights_layer_a_b[0] == INT64_MIN && weights_layer_a_b[1] == "
        "INT64_MAX;\n"
        "    ok = ok && weights_bytes[2] == 255 && weights_brain___[1] == -3.140625F;\n"
        "    ok = ok && sizeof weights_layer_a_b_2 == 24 && sizeof weights_bytes == 3;\n"
        "    int n = 0;\n    for (; weights[n].name; n++)\n"
        "        ok = ok && weights[n].data && (weights[n].data != weights_bytes || "
        "weights[n].bytes == 3);\n"
        "    return ok && n == sizeof weights / sizeof *weights - 1 && n > 3 ? 0 : 1;\n}\n";
    scoped(folder_remove) folder f = folder_new();
    file_name path = put_tensors(&f), h = in_folder(&f, "t.h"), c = in_folder(&f, "t.c"),
              exe = in_folder(&f, "t");
    tool(&r, 0, "convert %s %s", path.s, h.s);
    put_file(c.s, program, strlen(program));
    compile_and_run(c.s, exe.s);
    tool(&r, 1, "convert %s %s --prefix 9x", path.s, h.s);
}

/* Mean, deviation and classes of the card become constants, whose names no tensor takes; invalid
 * lists stay in a comment. */
Test(convert, header_of_a_card)
{
    static const char program[] =
        "#include <string.h>\n#include \"t.h\"\n"
        "int main(void)\n{\n"
        "    return sizeof weights_mean / sizeof *weights_mean == 3 && weights_mean[1] == -0.5F "
        "&&\n"
        "           weights_deviation[2] == 78.5674973F && weights_mean_2[0] == 7 &&\n"
        "           sizeof weights_classes / sizeof *weights_classes == 2 &&\n"
        "           strcmp(weights_classes[0], \"gr\\303\\274n \\\"1\\\"?\") == 0 &&\n"
        "           strcmp(weights_classes[1], \"b\") == 0 && strcmp(weights[0].name, \"mean\") == "
        "0 &&\n"
        "           weights[1].name == 0 ? 0 : 1;\n}\n";
    static const float seven = 7;
    const adj_tensor t = {"mean", ADJ_ELEM_F32, {1, {1}}, &seven};
    adj_metadata m[] = {{"mean", "[33,-0.5,1e-3]"},
                        {"deviation", "[1,2,78.5674973]"},
                        {"class_names", "[\"gr\u00fcn \\\"1\\\"?\",\"b\"]"}};
    scoped(folder_remove) folder f = folder_new();
    file_name path = in_folder(&f, "t.safetensors"), h = in_folder(&f, "t.h"),
              c = in_folder(&f, "t.c"), exe = in_folder(&f, "t");
    cr_assert_eq(adj_tensors_write(path.s, 1, &t, 3, m, NULL), ADJ_OK);
    tool(&r, 0, "convert %s %s", path.s, h.s);
    put_file(c.s, program, strlen(program));
    compile_and_run(c.s, exe.s);

    static const char without[] = "#include \"t.h\"\n"
                                  "static int weights_deviation, weights_classes;\n"
                                  "int main(void)\n{\n"
                                  "    return weights_mean[0] == 7 ? weights_deviation + "
                                  "weights_classes : 1;\n}\n";
    m[0].value = "[1e300]";
    m[1].value = "[\"1\"]";
    m[2].value = "[]";
    cr_assert_eq(adj_tensors_write(path.s, 1, &t, 3, m, NULL), ADJ_OK);
    tool(&r, 0, "convert %s %s", path.s, h.s);
    put_file(c.s, without, strlen(without));
    compile_and_run(c.s, exe.s);
}

static const struct {
    const char *words, *line;
} refused[] = {
    {"IN is missing", "convert"},
    {"OUT is missing", "convert x.npz"},
    {"expected a name that ends in", "convert x.npz y.txt"},
    {"unexpected argument \"z\"", "convert x.npz y.npz z"},
    {"--to-theirs requires --map NAME", "convert x.npz y.npz --to-theirs"},
    {"requires a model (--model", "convert --map pytorch"},
    {"did you mean lenet?", "convert --map keras --model lenett"},
};

Test(convert, refusals)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        run_line(&r, refused[i].line);
        cr_expect(r.status == 1 || r.status == 3);
        expect_text(r.err, refused[i].words);
    }
}

/* The number behind "test accuracy" of an eval. */
static double accuracy_of(const finished *r)
{
    const char *at = strstr(r->out, "test accuracy ");
    cr_assert(r->status == 0 && at != NULL, "%s%s", r->out, r->err);
    return strtod(at + strlen("test accuracy "), NULL);
}

/* Trained weights as PyTorch's evaluate the same; a head is exchanged and the trunk frozen. */
Test(convert, train_eval_and_tune)
{
    scoped(folder_remove) folder f = small_data();
    const file_name w = in_folder(&f, "w.safetensors"), p = in_folder(&f, "p.safetensors"),
                    v = in_folder(&f, "v.safetensors"), q = in_folder(&f, "q.safetensors");
    tool(&r, 0, "train --model resnet8 --data %s --epochs 1 --batch 30 --out %s", f.path, w.s);
    tool(&r, ANY_STATUS, "eval --weights %s --data %s", w.s, f.path);
    double before = accuracy_of(&r);
    tool(&r, 0, "convert %s %s --map pytorch --to-theirs", w.s, p.s);
    tool(&r, 1, "eval --weights %s --data %s", p.s, f.path);
    expect_text(r.err, "no tensor conv1/w");
    tool(&r, ANY_STATUS, "eval --weights %s --data %s --map pytorch", p.s, f.path);
    cr_expect_eq(accuracy_of(&r), before);

    tool(&r, 0, "convert %s %s --map pytorch --model resnet8", p.s, q.s);
    tool(&r, 0,
         "train --model resnet8 --data %s --epochs 1 --batch 30 --weights %s --head new --freeze "
         "conv1/*,bn1/*,block?/* --optimizer adamw --out %s",
         f.path, q.s, v.s);
    expect_text(r.out, "  conv1/w: loaded from conv1/w\n");
    expect_text(r.out, "  logits/w: new\n");
    expect_text(r.out, "parameter tensors are frozen by conv1/*");
    adj_tensors *old = NULL, *new = NULL;
    cr_assert_eq(adj_tensors_read(w.s, &old), ADJ_OK);
    cr_assert_eq(adj_tensors_read(v.s, &new), ADJ_OK);
    for (int i = 0; i < old->n; i++) {
        adj_tensor x = old->tensor[i], y = new->tensor[adj_tensors_find(new, x.name)];
        int same = memcmp(x.data, y.data, (size_t)adj_tensor_bytes(&x)) == 0;
        cr_expect_eq(same, strncmp(x.name, "logits/", 7) != 0, "%s", x.name);
    }
    adj_tensors_free(old);
    adj_tensors_free(new);
    tool(&r, ANY_STATUS, "train --model resnet8 --data %s --epochs 1 --freeze conv1/w", f.path);
    expect_text(r.out, "\n1 parameter tensor is frozen by conv1/w\n");
    expect_text(r.err, "note: --freeze without --weights keeps random");
    tool(&r, 3,
         "train --model resnet8 --data %s --epochs 1 --size channels=1 --weights %s --head new "
         "--freeze conv1/*,bn1/*",
         f.path, q.s);
    expect_text(r.err, "conv1/w would stay random, as it is not loaded (1 such)");
    tool(&r, ANY_STATUS,
         "train --model resnet8 --data %s --epochs 1 --size channels=1 --weights %s", f.path, q.s);
    expect_text(r.err, "weights: tensor conv1/w has the wrong");
    expect_text(r.err, "(the file has 3 channels, the model 1; use --size ");
    expect_text(r.err, "--head new to train new layers where needed");
    tool(&r, ANY_STATUS, "train --data %s --freeze nothing*", f.path);
    expect_text(r.err, "freeze nothing*: matches no parameter (the first is conv1/w)");
    tool(&r, ANY_STATUS, "train --data %s --freeze *", f.path);
    expect_text(r.err, "freeze *: matches every parameter");
    tool(&r, 3, "train --head new");
}

/* The file's metadata entry; NULL: there is none. */
static const char *entry_of(const char *path, const char *key)
{
    static char value[400];
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(path, &t), ADJ_OK, "%s", t->message);
    const char *text = adj_tensors_metadata(t, key);
    snprintf(value, sizeof value, "%s", text != NULL ? text : "");
    return text != NULL ? value : NULL;
}

/* from's tensors alone, as another program writes them. */
static void put_foreign(const char *from, const char *to)
{
    scoped(release_tensors) adj_tensors *t = NULL;
    adj_tensor x[128];
    const adj_metadata m = {"format", "pt"};
    cr_assert_eq(adj_tensors_read(from, &t), ADJ_OK);
    for (int i = 0; i < t->n; i++)
        x[i] = t->tensor[i];
    cr_assert_eq(adj_tensors_write(to, t->n, x, 1, &m, NULL), ADJ_OK);
}

/* Hugging Face's transformers refuse a file whose format is none of "pt", "tf", "flax"; a card says
 * which net ours is of, as far as it is known. */
Test(convert, says_whose_file_it_is)
{
    scoped(folder_remove) folder f = small_data();
    const file_name w = in_folder(&f, "w.safetensors"), p = in_folder(&f, "p.safetensors"),
                    k = in_folder(&f, "k.safetensors"), foreign = in_folder(&f, "f.safetensors"),
                    back = in_folder(&f, "back.safetensors");
    tool(&r, 0, "train --model lenet5 --data %s --epochs 1 --out %s", f.path, w.s);
    tool(&r, ANY_STATUS, "eval --weights %s --data %s", w.s, f.path);
    const double before = accuracy_of(&r);

    tool(&r, 0, "train --weights %s --data %s --epochs 1", w.s, f.path);
    expect_text(r.out, "\nlenet5, ");

    tool(&r, 0, "convert %s %s --map pytorch --to-theirs", w.s, p.s);
    cr_expect_str_eq(entry_of(p.s, "format"), "pt");
    cr_expect_null(entry_of(p.s, "adjoint.version"));
    cr_expect_str_eq(entry_of(p.s, "model"), "lenet5");
    tool(&r, 0, "convert %s %s --map keras --to-theirs", w.s, k.s);
    cr_expect_null(entry_of(k.s, "format"));
    tool(&r, 0, "convert %s %s --map pytorch", p.s, back.s);
    cr_expect_str_eq(entry_of(back.s, "format"), "NHWC");
    cr_expect_str_eq(entry_of(back.s, "seed"), "1");
    tool(&r, ANY_STATUS, "eval --weights %s --data %s", back.s, f.path);
    cr_expect_eq(accuracy_of(&r), before);

    put_foreign(p.s, foreign.s);
    tool(&r, 0, "convert %s %s --map pytorch --model lenet5", foreign.s, back.s);
    cr_expect_str_eq(entry_of(back.s, "model"), "lenet5");
    cr_expect_str_eq(entry_of(back.s, "classes"), "10");
    cr_expect_str_eq(entry_of(back.s, "format"), "NHWC");
    cr_expect(entry_of(back.s, "seed") == NULL && entry_of(back.s, "input") == NULL);
    tool(&r, ANY_STATUS, "eval --weights %s --data %s", back.s, f.path);
    (void)accuracy_of(&r); /* of pixels as they are: the mean is lost */
    expect_text(r.err, "has no mean or deviation");

    /* without a map no note */
    tool(&r, 0, "convert %s %s", foreign.s, back.s);
    cr_expect(entry_of(back.s, "model") == NULL && strcmp(entry_of(back.s, "format"), "pt") == 0);
}

/* Labels 0 to classes - 1 in turn, in place of those of n digits. */
static void put_labels(const folder *f, const char *name, int n, int classes)
{
    const unsigned char head[8] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)n};
    FILE *file = fopen(in_folder(f, name).s, "wb");
    fwrite(head, 1, sizeof head, file);
    for (int i = 0; i < n; i++)
        fputc(i % classes, file);
    fclose(file);
}

/* train --weights names the file, and what to do about it. */
Test(convert, start_from_what_does_not_fit)
{
    scoped(folder_remove) folder f = small_data(), two = small_data();
    const file_name w = in_folder(&f, "w.safetensors"), p = in_folder(&f, "p.safetensors"),
                    none = in_folder(&f, "none.safetensors"), text = in_folder(&f, "w.pt");
    char words[700];
    tool(&r, 0, "train --model lenet5 --data %s --epochs 1 --out %s", f.path, w.s);
    tool(&r, 0, "convert %s %s --map pytorch --to-theirs", w.s, p.s);

    snprintf(words, sizeof words, "train: --weights: %s: No such file", none.s);
    tool(&r, 1, "train --data %s --weights %s", f.path, none.s);
    expect_text(r.err, words);
    FILE *file = fopen(text.s, "wb");
    fputs("\211HDF\r\n\032\n", file);
    fclose(file);
    snprintf(words, sizeof words, "train: --weights: %s: ", text.s);
    tool(&r, 1, "train --data %s --weights %s", f.path, text.s);
    expect_text(r.err, words);

    snprintf(words, sizeof words,
             "train: --weights: %s: weights: the file has no tensor conv1/w (expected adjoint's "
             "names; for the file's, use --map pytorch",
             p.s);
    tool(&r, 1, "train --model lenet5 --data %s --weights %s", f.path, p.s);
    expect_text(r.err, words);
    tool(&r, 0, "train --model lenet5 --data %s --epochs 1 --weights %s --map pytorch", f.path,
         p.s);
    expect_text(r.out, "0 of its tensors not used");
    tool(&r, 3, "train --data %s --map pytorch", f.path);
    expect_text(r.err, "--map requires --weights FILE");

    tool(&r, 1, "train --model vgg6 --data %s --weights %s", f.path, w.s);
    expect_text(r.err, "(the file holds another model: got lenet5, expected vgg6)");
    put_labels(&two, "train-labels-idx1-ubyte", 90, 2);
    put_labels(&two, "t10k-labels-idx1-ubyte", 43, 2);
    tool(&r, ANY_STATUS, "train --data %s --weights %s", two.path, w.s);
    cr_expect(
        r.status == 1 &&
            strstr(r.err,
                   "(the file has 10 classes, the data 2; --head new trains a new last layer)"),
        "%s", r.err);
    tool(&r, 1, "train --data %s --weights %s --size 36", f.path, w.s);
    expect_text(r.err, "(the file is for 32x32 images; use --size 32x32");
}

/* Keras's files do not hold batch norm's epsilon. */
Test(convert, keras_epsilon)
{
    static const char note[] =
        "note: batch norm epsilon is 1e-05 in resnet8 (Keras's default: 0.001)";
    scoped(folder_remove) folder f = small_data();
    const file_name w = in_folder(&f, "w.safetensors"), k = in_folder(&f, "k.safetensors");
    for (int normalizes = 0; normalizes < 2; normalizes++) {
        const char *model = normalizes ? "resnet8" : "lenet5";
        tool(&r, 0, "train --model %s --data %s --epochs 1 --out %s", model, f.path, w.s);
        tool(&r, 0, "convert %s %s --map keras --to-theirs", w.s, k.s);
        cr_expect_eq(strstr(r.err, note) != NULL, normalizes, "%s", r.err);
        tool(&r, 0, "eval --weights %s --data %s --map keras", k.s, f.path);
        cr_expect_eq(strstr(r.err, note) != NULL, normalizes, "%s", r.err);
        tool(&r, 0, "train --model %s --data %s --epochs 1 --weights %s --map keras", model, f.path,
             k.s);
        cr_expect_eq(strstr(r.err, note) != NULL, normalizes, "%s", r.err);
    }
}

/* A net of two classes is not evaluated on ten. */
Test(convert, eval_refuses_what_does_not_fit)
{
    scoped(folder_remove) folder f = small_data();
    const file_name w = in_folder(&f, "w.safetensors"), two = in_folder(&f, "two.safetensors");
    scoped(release_tensors) adj_tensors *t = NULL;
    adj_tensor x[64];
    tool(&r, 0, "train --model lenet5 --data %s --epochs 1 --out %s", f.path, w.s);
    cr_assert_eq(adj_tensors_read(w.s, &t), ADJ_OK);
    for (int i = 0; i < t->n; i++)
        x[i] = t->tensor[i];
    adj_metadata m[] = {{"model", "lenet5"}, {"classes", "2"}};
    cr_assert_eq(adj_tensors_write(two.s, t->n, x, 2, m, NULL), ADJ_OK);
    tool(&r, 1, "eval --weights %s --data %s", two.s, f.path);
    expect_text(r.err,
                "logits/w has the wrong type or shape (got f32 [84, 10], expected f32 [84, 2])");
    m[1].value = "many";
    cr_assert_eq(adj_tensors_write(two.s, t->n, x, 2, m, NULL), ADJ_OK);
    tool(&r, 1, "eval --weights %s --data %s", two.s, f.path);
    expect_text(r.err, "entry classes is invalid (got many, expected a number or a list)");
    cr_assert_eq(adj_tensors_write(two.s, t->n, x, 0, NULL, NULL), ADJ_OK);
    tool(&r, 1, "eval --weights %s --data %s", two.s, f.path);
    expect_text(r.err, "does not name its model (set --model NAME)");
}
