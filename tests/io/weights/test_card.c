/* test_card.c - model cards: written as metadata, read back, and rejected. */
#include <math.h>

#include "io/weights/net.h"
#include "io/weights/weights.h"
#include "tests/io/scoped.h"

static const char *const names[] = {"cat", "dog \"two\"", "M\xc3\xa4use"};
static const adj_model_card card = {.model = "mobilenet_v1_0.5_128",
                                    .options.multiplier = 0.5,
                                    .options.size = {128, 96, 3},
                                    .options.format = ADJ_NCHW,
                                    .mean = {0.5, 100, 3},
                                    .deviation = {1.5, 2, 255},
                                    .options.classes = 3,
                                    .class_names = names,
                                    .resize = "auto",
                                    .normalized = 1,
                                    .low = -2.5,
                                    .high = 2,
                                    .precision = ADJ_PRECISION_BF16,
                                    .math = ADJ_MATH_FAST,
                                    .accuracy = 98.75,
                                    .seed = INT64_MAX};

static const adj_metadata expected[] = {
    {"adjoint.version", ADJ_VERSION_TEXT},
    {"model", "mobilenet_v1_0.5_128"},
    {"multiplier", "0.5"},
    {"input", "[128,96,3]"},
    {"format", "NCHW"},
    {"mean", "[0.5,100.0,3.0]"},
    {"deviation", "[1.5,2.0,255.0]"},
    {"adjoint.input", "normalized"},
    {"adjoint.range", "[-2.5,2.0]"},
    {"classes", "3"},
    {"class_names", "[\"cat\",\"dog \\\"two\\\"\",\"M\xc3\xa4use\"]"},
    {"resize", "auto"},
    {"precision", "bf16"},
    {"math", "fast"},
    {"accuracy", "98.75"},
    {"seed", "9223372036854775807"},
};
enum { ENTRIES = sizeof expected / sizeof expected[0] };

/* A file without tensors that has these metadata. */
static adj_tensors *file_of(const folder *f, int n, const adj_metadata list[])
{
    adj_tensors *t = NULL;
    file_name path = in_folder(f, "card.safetensors");
    cr_assert_eq(adj_tensors_write(path.s, 0, NULL, n, list, NULL), ADJ_OK);
    cr_assert_eq(adj_tensors_read(path.s, &t), ADJ_OK);
    return t;
}

Test(card, there_and_back)
{
    scoped(folder_remove) folder f = folder_new();
    adj_metadata *list = NULL;
    adj_model_card *back = NULL;
    adj_error error = {0};
    int n = 0;
    cr_assert_eq(adj_model_card_write(&card, &list, &n, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(n, ENTRIES);
    for (int i = 0; i < ENTRIES; i++) {
        cr_expect_str_eq(list[i].key, expected[i].key);
        cr_expect_str_eq(list[i].value, expected[i].value);
    }
    adj_tensors *t = file_of(&f, n, list);
    cr_expect_eq(t->n_metadata, ENTRIES);
    cr_expect_str_eq(t->metadata[1].value, card.model);
    cr_assert_eq(adj_model_card_read(t, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect_str_eq(back->model, card.model);
    cr_expect_str_eq(back->resize, "auto");
    cr_expect_eq(back->normalized, 1);
    cr_expect(back->low == -2.5 && back->high == 2);
    cr_expect(back->options.multiplier == 0.5 && back->options.size.h == 128 &&
              back->options.size.w == 96 && back->options.size.c == 3 &&
              back->options.format == ADJ_NCHW && back->options.classes == 3 &&
              back->precision == ADJ_PRECISION_BF16 && back->math == ADJ_MATH_FAST &&
              back->accuracy == 98.75 && back->seed == INT64_MAX);
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(back->mean[i], card.mean[i]);
        cr_expect_eq(back->deviation[i], card.deviation[i]);
        cr_expect_str_eq(back->class_names[i], names[i]);
    }
    free(back);
    free(list);
    adj_tensors_free(t);

    t = file_of(&f, 0, NULL); /* a file of others: nothing is known */
    cr_assert_eq(adj_model_card_read(t, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect(back->model == NULL && back->options.classes == 0 && back->class_names == NULL &&
              back->options.size.h == 0 && back->deviation[0] == 0 && back->accuracy == 0);
    free(back);
    adj_tensors_free(t);

    const adj_metadata old[] = {
        {"checkpoint", "adjoint 2"}, {"height", "20"}, {"width", "24"}, {"channels", "3"}};
    t = file_of(&f, 4, old); /* a checkpoint of version 0.2.0 */
    cr_assert_eq(adj_model_card_read(t, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect(back->options.size.h == 20 && back->options.size.w == 24 &&
              back->options.size.c == 3 && back->deviation[0] == 0);
    free(back);
    adj_tensors_free(t);

    const adj_metadata theirs = {"format", "pt"}; /* as PyTorch's programs write */
    t = file_of(&f, 1, &theirs);
    cr_assert_eq(adj_model_card_read(t, &back, &error), ADJ_OK, "%s", error.message);
    cr_expect(back->model == NULL && back->options.format == ADJ_NHWC);
    free(back);
    adj_tensors_free(t);
}

static const adj_metadata lies[] = {
    {"input", "[128,96]"},
    {"input", "[128,96,0]"},
    {"input", "[1.5,96,3]"},
    {"input", "[1e9,96,3]"},
    {"input", "128"},
    {"input", "[\"1\",2,3]"},
    {"input", "["},
    {"resize", "crop"},
    {"adjoint.input", "bytes"},
    {"adjoint.range", "[0]"},
    {"adjoint.range", "[0,256]"},
    {"mean", "[1,2]"},
    {"mean", "[1e999,2,3]"},
    {"deviation", "[1,0,1]"},
    {"deviation", "[-1,1,1]"},
    {"classes", "0"},
    {"classes", "100001"},
    {"classes", "two"},
    {"classes", "4"},
    {"class_names", "[1,2,3]"},
    {"class_names", "{}"},
    {"class_names", "[\"a\",\"b\"]"},
    {"multiplier", "-1"},
    {"multiplier", "nan"},
    {"accuracy", "101"},
    {"seed", "-1"},
    {"seed", "1.5"},
    {"format", "NWHC"},
    {"precision", "f8"},
    {"math", "slow"},
};

Test(card, is_not_believed)
{
    scoped(folder_remove) folder f = folder_new();
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        adj_metadata list[ENTRIES];
        adj_model_card *back = NULL;
        adj_error error = {0};
        char words[80];
        memcpy(list, expected, sizeof list);
        for (int k = 0; k < ENTRIES; k++)
            if (strcmp(list[k].key, lies[i].key) == 0)
                list[k].value = lies[i].value;
        scoped(release_tensors) adj_tensors *t = file_of(&f, ENTRIES, list);
        cr_expect_eq(adj_model_card_read(t, &back, &error), ADJ_EIO, "%s %s", lies[i].key,
                     lies[i].value);
        snprintf(words, sizeof words, "entry %s is invalid (got ",
                 strcmp(lies[i].value, "4") == 0 ? "class_names" : lies[i].key);
        cr_expect_not_null(strstr(error.message, words), "%s: %s", words, error.message);
        cr_expect_null(back);
    }
}

Test(card, cannot_be_written)
{
    adj_metadata *list = NULL;
    int n = 1;
    adj_error error;
    const char *const bad[] = {"a", "\xff", NULL};
    adj_model_card c = {.model = "\xff"};
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    c = (adj_model_card){.model = "lenet", .options.classes = 2, .class_names = bad};
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    c = (adj_model_card){.model = "lenet", .accuracy = INFINITY};
    cr_expect_eq(adj_model_card_write(&c, &list, &n, &error), ADJ_EARG);
    cr_expect(list == NULL && n == 0);
}

Test(card, fits_the_data)
{
    static const char *const others[] = {"cat", "dog \"two\"", "mouse"};
    const adj_model_card none = {0};
    adj_error error;
    cr_expect_eq(adj_model_card_check(&card, 3, 3, names, &error), ADJ_OK);
    cr_expect_eq(adj_model_card_check(&card, 1, 3, NULL, &error), ADJ_OK); /* gray is repeated */
    cr_expect_eq(adj_model_card_check(&card, 4, 3, NULL, &error), ADJ_OK); /* alpha is laid over */
    cr_expect_eq(adj_model_card_check(&none, 4, 7, names, &error), ADJ_OK);
    cr_expect_eq(adj_model_card_check(&card, 3, 10, NULL, &error), ADJ_ESHAPE);
    cr_expect_str_eq(error.message, "its model has 3 classes (the data have 10)");
    cr_expect_eq(adj_model_card_check(&card, 2, 3, NULL, &error), ADJ_ESHAPE);
    cr_expect_str_eq(error.message, "its model takes images of 3 channels (the data have 2)");
    cr_expect_eq(adj_model_card_check(&card, 3, 3, others, &error), ADJ_ESHAPE);
    cr_expect_str_eq(error.message, "class 2 of its model is M\xc3\xa4use (in the data mouse)");
}
