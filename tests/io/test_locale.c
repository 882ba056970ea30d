/* test_locale.c - a host program under a locale that writes 0,5 for 0.5: the library
 * writes the text of the C locale, and reads it. */
#include <math.h>

#include "adjoint_fit.h"
#include "adjoint_nn.h"
#include "host_locale.h"
#include "io/data/names.h"
#include "io/folder.h"
#include "io/tensors/formats.h"
#include "tests/io/scoped.h"
#include "train/internal.h"

static folder f;

static void begin(void)
{
    char text[16];
    f = folder_new();
    set_host_locale(f.path, "de_DE", "ISO-8859-1");
    snprintf(text, sizeof text, "%g", 0.5);
    cr_assert_str_eq(text, "0,5", "the locale writes %s", text);
}

static void end(void) { remove_host_locale(f.path); }

TestSuite(locale, .init = begin, .fini = end);

/* Python: "%.9g" % numpy.float32(0.0093). */
Test(locale, header)
{
    static const float w[] = {0.0093F, -1.5F, 3e-20F};
    static const double d[] = {0.1};
    const adj_tensor tensors[] = {{"w", ADJ_ELEM_F32, {1, {3}}, w},
                                  {"d", ADJ_ELEM_F64, {1, {1}}, d}};
    static const adj_metadata metadata[] = {{"mean", "[33.25, 0.5]"}};
    const file_name path = in_folder(&f, "w.h");
    cr_assert_eq(adj_tensors_write_header(path.s, "net", 2, tensors, 1, metadata, NULL), ADJ_OK);
    static char text[1 << 16];
    get_file(path.s, text, sizeof text);
    expect_text(text, "0.00930000003F, -1.5F, 2.9999999e-20F,");
    expect_text(text, "0.10000000000000001,");
    expect_text(text, "net_mean[2] = {\n    33.25F, 0.5F,");
}

Test(locale, card)
{
    const adj_model_card card = {.model = "lenet",
                                 .options.multiplier = 0.25,
                                 .options.size = {28, 28, 1},
                                 .mean = {33.3184},
                                 .deviation = {78.5675},
                                 .accuracy = 98.75};
    const file_name path = in_folder(&f, "card");
    set_host_locale(f.path, "ps_AF", "UTF-8"); /* the decimal point has two bytes */
    scoped(release) adj_metadata *list = NULL;
    scoped(release) adj_model_card *back = NULL;
    scoped(release_tensors) adj_tensors *t = NULL;
    int n;
    cr_assert_eq(adj_model_card_write(&card, &list, &n, NULL), ADJ_OK);
    cr_assert_eq(adj_tensors_write(path.s, 0, NULL, n, list, NULL), ADJ_OK);
    cr_assert_eq(adj_tensors_read(path.s, &t), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(t, "multiplier"), "0.25");
    cr_expect_str_eq(adj_tensors_metadata(t, "mean"), "[33.3184]");
    cr_expect_str_eq(adj_tensors_metadata(t, "accuracy"), "98.75");
    cr_assert_eq(adj_model_card_read(t, &back, NULL), ADJ_OK);
    cr_expect(back->options.multiplier == 0.25 && back->mean[0] == 33.3184 &&
              back->deviation[0] == 78.5675 && back->accuracy == 98.75);
}

static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    (void)training;
    (void)user;
    return adj_layer_dense(x, "logits", classes, NULL);
}

/* 0.1 is 0x1.999999999999ap-4 (Python: (0.1).hex()). */
Test(locale, checkpoint)
{
    static const uint8_t images[4 * 2 * 2];
    static const int32_t labels[4] = {0, 1, 0, 1};
    static const adj_net net = {.name = "dense", .build = build};
    const adj_fit_opts o = {
        .epochs = 2, .batch = 4, .optimizer.lr = 0.1, .exec = {.backend = "naive", .threads = 1}};
    const file_name path = in_folder(&f, "checkpoint");
    scoped(release_dataset) adj_dataset *d = NULL;
    scoped(release_trainer) adj_trainer *t = NULL;
    adj_tensors *file;
    adj_error error = {0};
    cr_assert_eq(adj_dataset_new(4, 2, 2, 1, 2, images, labels, 0, &d), ADJ_OK);
    cr_assert_eq(adj_trainer_new(&net, d, NULL, &o, &t, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_trainer_step(t, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_trainer_save(t, path.s, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_tensors_read(path.s, &file), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(file, "lr"), "0x1.999999999999ap-4");
    adj_tensors_free(file);
    cr_expect_eq(adj_trainer_resume(t, path.s, &error), ADJ_OK, "%s", error.message);
    setlocale(LC_ALL, "C");
    cr_expect_eq(adj_trainer_resume(t, path.s, &error), ADJ_OK, "%s", error.message);
}

Test(locale, prints_and_messages)
{
    char *text = NULL;
    size_t size = 0;
    adj_error error;
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}}), *y = adj_leaky_relu(x, 0.25);
    for (int dot = 0; dot < 2; dot++) {
        FILE *memory = open_memstream(&text, &size);
        (dot ? adj_print_dot : adj_print)(memory, 1, &y);
        fclose(memory);
        expect_text(text, "0.25");
        free(text);
    }
    adj_graph_free(g);
    adj_error_set(&error, ADJ_EARG, "got %g", 1.5);
    cr_expect_str_eq(error.message, "got 1.5");
    adj_model_opts o = {0};
    cr_assert_not_null(adj_model_find("mobilenet_v1_0.5_128", &o));
    cr_expect_eq(o.multiplier, 0.5);
}

/* Lower case I has no dot in Turkish. */
Test(locale, endings_of_images)
{
    set_host_locale(f.path, "tr_TR", "ISO-8859-9");
    cr_expect(is_image_name("IMAGE.JFIF"));
}
