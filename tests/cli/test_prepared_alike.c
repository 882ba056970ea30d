/* test_prepared_alike.c - the same images as NumPy arrays, IDX, CIFAR's files and PNG, of another
 * size than the model's: train gives the same weights, eval the same loss and predict the same
 * probabilities, to the bit, whatever file the images come from. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/same_images.h"
#include "cli/small_data.h"
#include "tests/io/scoped.h"

/* ---- the tool ---- */

static void train(const char *data, const char *out)
{
    tool(0, "train --data %s --model lenet --threads 1 --epochs 2 --batch 8 --out %s", data, out);
}

/* Copies eval's "test loss 2.3051  test accuracy 10.00 % (1 of 10)". */
static void eval(const char *weights, const char *data, char line[100])
{
    tool(0, "eval --data %s --weights %s --threads 1", data, weights);
    const char *at = strstr(ran.out, "test loss");
    cr_assert_not_null(at, "%s", ran.out);
    snprintf(line, 100, "%s", at);
}

static void predict_files(const char *weights, const folder *png, float probability[][CLASSES])
{
    static file_name path[CLASSES * EACH_TEST];
    const char *words[ARGUMENTS] = {"predict", "--weights", weights, "--threads",
                                    "1",       "--json",    "--top", "10"};
    for (int i = 0; i < images(1); i++) {
        path[i] = png_name(png, 1, i);
        words[8 + i] = path[i].s;
    }
    run_tool(words);
    cr_assert_eq(ran.status, 0, "%s", ran.err);
    const char *at = ran.out;
    for (int i = 0; i < images(1); i++) {
        double read[CLASSES];
        at = read_probabilities(at, read);
        for (int k = 0; k < CLASSES; k++)
            probability[i][k] = (float)read[k];
    }
}

/* Predicts by the library alone, with images read at the card's size. */
static void predict_data(adj_predictor *p, const char *data, float probability[][CLASSES])
{
    const adj_model_card *card = adj_predictor_card(p);
    const adj_dataset_opts o = {.image.size = card->options.size};
    const int64_t elems = o.image.size.h * o.image.size.w * o.image.size.c;
    scoped(release) float *x = malloc((size_t)(images(1) * elems) * sizeof *x);
    scoped(release_dataset) adj_dataset *d = dataset_of(data, ADJ_TEST, &o);
    adj_error error = {0};

    for (int i = 0; i < images(1); i++)
        cr_assert_eq(adj_dataset_read(d, i, x + i * elems, NULL), ADJ_OK);
    cr_assert_eq(adj_predict_floats(p, images(1), x, probability[0], &error), ADJ_OK, "%s",
                 error.message);
}

/* Expects the same score of images that get the card's size and channels as they are read and of
 * images that the loader brings to them. */
static void expect_same_score(adj_predictor *p, const char *data)
{
    const adj_model_card *card = adj_predictor_card(p);
    adj_score score[2];
    for (int own_size = 0; own_size < 2; own_size++) {
        const adj_dataset_opts o = {.image.size = {own_size ? 0 : card->options.size.h,
                                                   own_size ? 0 : card->options.size.w,
                                                   own_size ? 0 : card->options.size.c}};
        scoped(release_dataset) adj_dataset *d = dataset_of(data, ADJ_TEST, &o);
        adj_error error = {0};
        cr_assert_eq(adj_predictor_evaluate(p, d, &score[own_size], NULL, &error), ADJ_OK, "%s",
                     error.message);
    }
    cr_expect(score[0].loss == score[1].loss && score[0].right == score[1].right);
}

static void expect_alike(const format *f)
{
    static float from_files[CLASSES][CLASSES], from_data[CLASSES][CLASSES];
    scoped(folder_remove) const folder data = folder_new(), png = folder_new();
    const file_name path = f->file != NULL ? in_folder(&data, f->file) : (file_name){""};
    const char *where = f->file != NULL ? path.s : data.path;
    const file_name w = in_folder(&png, "data.safetensors"), v = in_folder(&png, "png.safetensors");
    char line[100], other[100];

    f->write(&data, f->h, f->w, f->c);
    write_png(&png, f->h, f->w, f->c);
    train(where, w.s);
    expect_text(ran.out, "note: 40 of 40 images are resized to 28x28");
    train(png.path, v.s);
    expect_same_tensors(w.s, v.s);
    cr_expect_str_eq(entry_of(w.s, "mean"), entry_of(v.s, "mean"));
    eval(w.s, where, line);
    eval(w.s, png.path, other);
    cr_expect_str_eq(line, other);
    predict_files(w.s, &png, from_files);
    scoped(release_predictor) adj_predictor *p = predictor_from(w.s);
    predict_data(p, where, from_data);
    cr_expect_eq(memcmp(from_files, from_data, sizeof from_data), 0, "%g and %g", from_files[0][0],
                 from_data[0][0]);
    expect_same_score(p, where);
    expect_same_score(p, png.path);
}

TestSuite(prepared_alike, .timeout = 120);

Test(prepared_alike, npz) { expect_alike(&(format){20, 24, 1, write_bytes, "data.npz"}); }
Test(prepared_alike, npz_floats) { expect_alike(&(format){20, 31, 3, write_floats, "data.npz"}); }
Test(prepared_alike, idx) { expect_alike(&(format){20, 24, 1, write_idx, NULL}); }
Test(prepared_alike, idx_in_color) { expect_alike(&(format){31, 24, 3, write_idx, NULL}); }
Test(prepared_alike, cifar) { expect_alike(&(format){32, 32, 3, write_cifar, NULL}); }

/* Gray data for a net in color are normalized by each channel's mean, and color for a gray net
 * becomes luma: eval and predict agree for every format of files. */
Test(prepared_alike, other_channels)
{
    static float from_files[CLASSES][CLASSES], from_data[CLASSES][CLASSES];
    for (int c = 1; c <= 3; c += 2) {
        scoped(folder_remove) const folder data = folder_new(), idx = folder_new(),
                                           png = folder_new();
        const file_name w = in_folder(&data, "w.safetensors");
        char line[100], other[100];
        write_idx(&data, 28, 28, c);
        write_idx(&idx, 20, 24, 4 - c);
        write_png(&png, 20, 24, 4 - c);
        train(data.path, w.s);
        eval(w.s, idx.path, line);
        eval(w.s, png.path, other);
        cr_expect_str_eq(line, other);
        predict_files(w.s, &png, from_files);
        scoped(release_predictor) adj_predictor *p = predictor_from(w.s);
        predict_data(p, idx.path, from_data);
        cr_expect_eq(memcmp(from_files, from_data, sizeof from_data), 0);
        expect_same_score(p, idx.path);
    }
}

/* The rule of the training is in the card: eval and predict obey it for every format. */
Test(prepared_alike, another_size_is_refused)
{
    static const char *const names_of_folders[] = {"exact", "idx", "png", "npz"};
    enter_empty();
    for (int i = 0; i < 4; i++)
        make_folder(names_of_folders[i]);
    write_idx(&(folder){"exact"}, 28, 28, 1);
    write_idx(&(folder){"idx"}, 20, 24, 1);
    write_png(&(folder){"png"}, 20, 24, 1);
    write_bytes(&(folder){"npz"}, 20, 24, 1);
    expect_rows("another size is refused");
    leave();
}

/* The library refuses batches of such a data set, and a net with such a card other data. */
Test(prepared_alike, the_library_refuses_another_size)
{
    scoped(folder_remove) const folder exact = folder_new(), small = folder_new();
    const adj_dataset_opts strict = {.image.resize = ADJ_RESIZE_ERROR};
    const adj_net lenet = {.name = "lenet"};
    adj_predictor *p = NULL;
    adj_loader *l = NULL;
    adj_score score;
    adj_error error = {0};
    int32_t label[1];
    static float x[28 * 28];
    write_idx(&exact, 28, 28, 1);
    write_idx(&small, 20, 24, 1);

    scoped(release_dataset) adj_dataset *other = dataset_of(small.path, ADJ_TRAIN, &strict);
    cr_expect_eq(adj_batch(other, NULL, 0, (adj_shape){4, {1, 28, 28, 1}}, x, label, &error), -1);
    expect_text(error.message, "of 20x24x1 cannot become 28x28x1: the resize rule");
    const adj_loader_opts o = {.batch = 1, .size.h = 28, .size.w = 28};
    cr_expect_eq(adj_loader_new(other, &o, &l, NULL), ADJ_ESHAPE);
    cr_expect_eq(adj_fit(&lenet, other, NULL, NULL, &p, NULL), ADJ_ESHAPE);

    scoped(release_dataset) adj_dataset *d = dataset_of(exact.path, ADJ_TRAIN, &strict);
    const adj_fit_opts once = {.epochs = 1};
    cr_assert_eq(adj_fit(&lenet, d, NULL, &once, &p, &error), ADJ_OK, "%s", error.message);
    cr_expect_str_eq(adj_predictor_card(p)->resize, "error");
    adj_dataset_free(other);
    other = dataset_of(small.path, ADJ_TRAIN, NULL);
    cr_expect_eq(adj_predictor_evaluate(p, other, &score, NULL, &error), ADJ_ESHAPE);
    expect_text(error.message, "(got 20x24, expected 28x28)");
    adj_predictor_free(p);
}
