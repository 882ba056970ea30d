/* test_convert.c - inspect and convert from the command line; a written header compiles, and eval
 * and train read the written files. */
#include <jansson.h>
#include <math.h>

#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "tests/plan.h"

static const float a[6] = {0.1F, -1, 3.4028235e38F, 1e-45F, NAN, -INFINITY};
static const int64_t big[2] = {INT64_MIN, INT64_MAX};
static const uint8_t bytes[3] = {0, 1, 255};
static const uint16_t brain[2] = {0x3f80, 0xc049}; /* 1, -3.140625 */
static const adj_tensor tensors[] = {{"layer/a b", ADJ_ELEM_F32, {2, {2, 3}}, a},
                                     {"layer.a b", ADJ_ELEM_I64, {1, {2}}, big},
                                     {"bytes", ADJ_ELEM_U8, {1, {3}}, bytes},
                                     {"brain */", ADJ_ELEM_BF16, {1, {2}}, brain}};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

/* The name of a file with these tensors in the working folder. */
static const char path[] = "t.safetensors";

static void put_tensors(void)
{
    const adj_metadata m = {"note", "a */ comment"};
    cr_assert_eq(adj_tensors_write(path, TENSORS, tensors, 1, &m, NULL), ADJ_OK);
}

TestSuite(convert, .init = enter_small_data, .fini = leave);

Test(convert, inspect_and_refused)
{
    put_tensors();
    const adj_tensor one = {"one", ADJ_ELEM_U8, {0}, "1"};
    cr_assert_eq(adj_tensors_write("small.safetensors", 1, &one, 0, NULL, NULL), ADJ_OK);
    expect_rows("inspect and refused");

    tool(ANY_STATUS, "inspect --json %s", path);
    json_t *j = json_of(ran.out), *first = named(json_object_get(j, "tensors"), "layer/a b");
    cr_expect_eq(number_in(first, "nan"), 1);
    cr_expect_eq(number_in(first, "min"), -1);
    cr_expect_str_eq(word_in(json_object_get(j, "metadata"), "note"), "a */ comment");
}

/* Through npz and back nothing changes but bf16, which is f32 there. */
Test(convert, npz_and_npy)
{
    put_tensors();
    tool(0, "convert t.safetensors t.npz");
    tool(0, "convert t.npz back.safetensors");
    scoped(release_tensors) adj_tensors *t = tensors_of("back.safetensors");
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
    const adj_metadata model = {"model", "lenet"};
    cr_assert_eq(adj_tensors_write("back.safetensors", 1, tensors, 1, &model, NULL), ADJ_OK);
    complains(0, "the model card", "convert back.safetensors t.npz");

    tool(0, "convert t.safetensors t.npy --tensor bytes");
    /* NumPy's np.save(np.array([0, 1, 255], np.uint8)) */
    static const char want[] = "\x93NUMPY\1\0\x76\0{'descr': '|u1', 'fortran_order': False, "
                               "'shape': (3, ), }";
    char got[200] = "";
    FILE *file = fopen("t.npy", "rb");
    cr_expect_eq(fread(got, 1, sizeof got, file), 128 + 3);
    fclose(file);
    cr_expect_eq(memcmp(got, want, sizeof want - 1), 0);
    cr_expect(got[127] == '\n' && memcmp(got + 128, bytes, 3) == 0);
}

/* Compiles and runs a program that includes t.h. */
static void compile_and_run(const char *program)
{
    static const char *const compilers[] = {"cc -std=c11", "c++ -x c++ -std=c++17"};
    put_file("t.c", program, strlen(program));
    for (int i = 0; i < 2; i++) {
        if (i == 1 && shell("command -v c++") != 0)
            continue;
        cr_expect_eq(shell("%s -Wall -Wextra -pedantic -Werror t.c -o t -lm && ./t", compilers[i]),
                     0, "%s: %s", compilers[i], ran.err);
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
    put_tensors();
    tool(0, "convert t.safetensors t.h");
    compile_and_run(program);
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
    cr_assert_eq(adj_tensors_write(path, 1, &t, 3, m, NULL), ADJ_OK);
    tool(0, "convert t.safetensors t.h");
    compile_and_run(program);

    static const char without[] = "#include \"t.h\"\n"
                                  "static int weights_deviation, weights_classes;\n"
                                  "int main(void)\n{\n"
                                  "    return weights_mean[0] == 7 ? weights_deviation + "
                                  "weights_classes : 1;\n}\n";
    m[0].value = "[1e300]";
    m[1].value = "[\"1\"]";
    m[2].value = "[]";
    cr_assert_eq(adj_tensors_write(path, 1, &t, 3, m, NULL), ADJ_OK);
    tool(0, "convert t.safetensors t.h");
    compile_and_run(without);
}

Test(convert, refused) { expect_rows("refused"); }

/* Trained weights as PyTorch's evaluate the same; a head is exchanged and the trunk frozen. */
Test(convert, train_eval_and_tune)
{
    expect_rows("train eval and tune");
    scoped(release_tensors) adj_tensors *old = tensors_of("w.safetensors"),
                                        *new = tensors_of("v.safetensors");
    for (int i = 0; i < old->n; i++) {
        adj_tensor x = old->tensor[i], y = new->tensor[adj_tensors_find(new, x.name)];
        int same = memcmp(x.data, y.data, (size_t)adj_tensor_bytes(&x)) == 0;
        cr_expect_eq(same, strncmp(x.name, "logits/", 7) != 0, "%s", x.name);
    }
}

/* Hugging Face's transformers refuse a file whose format is none of "pt", "tf", "flax"; a card says
 * which net ours is of, as far as it is known. */
Test(convert, says_whose_file_it_is)
{
    static const adj_metadata foreign = {"format", "pt"}; /* as another program writes it */
    expect_rows("ours and theirs");
    copy_tensors("p.safetensors", "f.safetensors", 1, &foreign);
    expect_rows("a file of another program");
}

/* train --weights names the file, and what to do about it. */
Test(convert, start_from_what_does_not_fit)
{
    tool(0, "train --model lenet5 --data . --epochs 1 --out w.safetensors");
    tool(0, "convert w.safetensors p.safetensors --map pytorch --to-theirs");
    put_file("w.pt", "\211HDF\r\n\032\n", 8);
    expect_rows("start from what does not fit");
    put_labels("train-labels-idx1-ubyte", 45, 45, 0);
    put_labels("t10k-labels-idx1-ubyte", 22, 21, 0);
    expect_rows("start from ten classes");
}

/* Keras's files do not hold batch norm's epsilon. */
Test(convert, keras_epsilon) { expect_rows("keras epsilon"); }

/* A net of two classes is not evaluated on ten. */
Test(convert, eval_refuses_what_does_not_fit)
{
    static const struct {
        int entries;
        const char *classes, *says;
    } cards[] = {
        {2, "2", "logits/w has the wrong type or shape (got f32 [84, 10], expected f32 [84, 2])"},
        {2, "many", "entry classes is invalid (got many, expected a number or a list)"},
        {0, NULL, "does not name its model (set --model NAME)"},
    };
    tool(0, "train --model lenet5 --data . --epochs 1 --out w.safetensors");
    for (int i = 0; i < 3; i++) {
        const adj_metadata m[] = {{"model", "lenet5"}, {"classes", cards[i].classes}};
        copy_tensors("w.safetensors", "w2", cards[i].entries, m);
        complains(1, cards[i].says, "eval --weights w2 --data .");
    }
}
