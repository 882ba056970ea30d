/* test_inner.c - inside a predictor: the values of named nodes and the gradient of a logit with
 * respect to the pixels, as PyTorch has them, and the tool's saliency map. */
#include <png.h>

#include "adjoint_fit.h"
#include "cli/child.h"
#include "io/weights/net.h"
#include "tests/io/scoped.h"

enum { PIXELS = HEIGHT * WIDTH * CHANNELS };

/* The layers of net_of (net.h). */
static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_pool half = {.ksize = {1, 2, 2, 1}};
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME},
                         dw = {.multiplier = 2, .padding = ADJ_SAME, .no_bias = 1};
    (void)user;
    adj_node *h = adj_layer_batch_norm(adj_layer_conv2d(x, "conv1", &conv), "bn1",
                                       &(adj_norm_layer){.training = training});
    h = adj_max_pool(adj_layer_depthwise_conv2d(adj_relu(h), "dw", &dw), &half);
    return adj_layer_dense(adj_relu(adj_layer_dense(h, "fc1", 5, NULL)), "logits", classes, NULL);
}

/* Computed by PyTorch 2.15 of the state_dict of net.h: the image is sin(0.37 i + 0.9) * 3 in the
 * order n, h, w, c, of which 0.25 and -0.5 by channel are subtracted, divided by 2 and 4. Outputs
 * of fc1 for two images; the gradient of each logit of the first with respect to that image. */
static const float fc1[BATCH * 5] = {2.85014606F,  -0.448759824F, -3.27892256F,  -2.76885247F,
                                     0.389372736F, 2.24026942F,   -0.869702458F, -3.05873752F,
                                     -2.14407158F, 0.747583628F};
static const float gradients[CLASSES][PIXELS] = {
    {-0.00233749719F, -0.00682512531F, 0.0343114734F,   -0.028783327F,  0.07356181F,
     -0.0463141203F,  0.0616396256F,   -0.0349178948F,  0.108030356F,   -0.0601971149F,
     0.17857556F,     -0.0923065245F,  0.16666843F,     -0.0802939832F, 0.0812594593F,
     -0.0360585637F,  0.0747519135F,   -0.0336575285F,  0.0799195841F,  -0.0311730299F,
     0.0349975228F,   -0.00694184331F, -0.00426958874F, 0.00864438433F, 0.0304705054F,
     -0.0106898714F,  0.0286101885F,   -0.00868828874F, 0.0313955955F,  -0.011203561F,
     0.0232634004F,   -0.00893969741F, 0.0383161344F,   -0.0158609077F, 0.0401303396F,
     -0.0134302899F,  0.0279875714F,   -0.0056338436F,  0.00183688442F, 0.00499562593F,
     -0.0144118154F,  0.0110786147F,   -0.040796034F,   0.0262971427F,  -0.0610773265F,
     0.0368666686F,   -0.0540894903F,  0.0307260193F},
    {-0.082403332F,    0.0415199883F,  -0.105145149F,  0.0488656573F,  -0.0925884247F,
     0.040864937F,     -0.0371768363F, 0.0142239453F,  -0.104287624F,  0.0447086357F,
     -0.103249967F,    0.0378571153F,  -0.0687749311F, 0.0202168562F,  -0.0156014357F,
     -0.000594751153F, -0.0331746452F, 0.00485035451F, 0.00334062916F, -0.0175049268F,
     0.029207455F,     -0.0288706589F, 0.0281241015F,  -0.0216770805F, 0.0145965833F,
     -0.0159899648F,   0.0377692357F,  -0.0315510631F, 0.0414036438F,  -0.0334613286F,
     0.0426453575F,    -0.029772399F,  -0.0141966511F, 0.00130714849F, 0.00802702922F,
     -0.0160322897F,   0.0385602377F,  -0.0312783718F, 0.0585538223F,  -0.0364128202F,
     0.034076795F,     -0.0227737315F, 0.0948737115F,  -0.055070702F,  0.111715682F,
     -0.0613891296F,   0.0825892687F,  -0.0425275266F},
    {0.0477566086F,   -0.0160598792F, 0.0236424934F,  0.00184952596F, -0.0225288644F,
     0.0237901639F,   -0.0411484614F, 0.0270779319F,  -0.0505490601F, 0.0355545841F,
     -0.121666178F,   0.0714404285F,  -0.128761008F,  0.0691508427F,  -0.0726602599F,
     0.0363863744F,   -0.0564667024F, 0.0309841149F,  -0.0817609057F, 0.0408214144F,
     -0.0510961153F,  0.0228548013F,  -0.0112318825F, 0.00330360979F, -0.0385158546F,
     0.0195032284F,   -0.0494278707F, 0.0260786265F,  -0.0542164743F, 0.0296467934F,
     -0.0467686914F,  0.0253496598F,  -0.0304912198F, 0.0151404347F,  -0.0445546806F,
     0.0222669728F,   -0.0492412075F, 0.0228738673F,  -0.0341105983F, 0.015074403F,
     -0.00437064888F, 0.00147382356F, -0.0114964992F, 0.00405675266F, -0.000498185749F,
     -0.00303017814F, 0.00856789853F, -0.00728567177F},
};

static adj_predictor *predictor_of(const folder *f, const char *backend)
{
    static torch_weights w;
    const file_name path = in_folder(f, "w.safetensors");
    const adj_metadata card[] = {
        {"input", "[6,4,2]"}, {"mean", "[0.25,-0.5]"}, {"deviation", "[2,4]"}, {"classes", "3"}};
    const adj_weights_opts load = {.map = "pytorch"};
    adj_predictor *p = NULL;
    adj_error error = {0};
    fill_torch(&w);
    cr_assert_eq(adj_tensors_write(path.s, DICT, w.tensor, 4, card, &error), ADJ_OK);
    cr_assert_eq(adj_predictor_load(
                     path.s, &(adj_net){.name = "small", .build = build},
                     &(adj_predictor_opts){.weights = &load, .exec.backend = backend}, &p, &error),
                 ADJ_OK, "%s", error.message);
    return p;
}

static void fill_pixels(float pixels[BATCH * PIXELS])
{
    for (int i = 0; i < BATCH * PIXELS; i++)
        pixels[i] = sine(i, 0.9, 3);
}

static void expect_near(const float *got, const float *want, int n, const char *what)
{
    for (int i = 0; i < n; i++)
        cr_expect_float_eq(got[i], want[i], 1e-5, "%s %d: %.9g, expected %.9g", what, i,
                           (double)got[i], (double)want[i]);
}

Test(inner, values)
{
    scoped(folder_remove) folder f = folder_new();
    float pixels[BATCH * PIXELS], value[BATCH * PIXELS * 4];
    adj_error error = {0};
    adj_shape s;
    scoped(release_predictor) adj_predictor *p = predictor_of(&f, NULL);
    fill_pixels(pixels);
    cr_assert_eq(adj_predictor_fetch(p, "fc1", BATCH, pixels, &s, value, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect(s.rank == 2 && s.dim[0] == 1 && s.dim[1] == 5);
    expect_near(value, fc1, BATCH * 5, "fc1");
    cr_assert_eq(adj_predictor_fetch(p, "conv1", 0, NULL, &s, NULL, &error), ADJ_OK);
    cr_expect(s.rank == 4 && s.dim[0] == 1 && s.dim[1] == HEIGHT && s.dim[3] == 4);
    cr_assert_eq(adj_predictor_fetch(p, "conv1", BATCH, pixels, &s, value, &error), ADJ_OK);
    for (int k = 0; k < 4; k++) { /* PyTorch's [0, :, 0, 0] and [1, :, 5, 3], four digits of them */
        static const double first[] = {0.3349, 0.7679, 1.0949, 1.2704},
                            last[] = {-0.4047, -0.1759, 0.0793, 0.3256};
        cr_expect_float_eq(value[k], first[k], 6e-5);
        cr_expect_float_eq(value[BATCH * HEIGHT * WIDTH * 4 - 4 + k], last[k], 6e-5);
    }
    cr_assert_eq(adj_predictor_fetch(p, "images", 1, pixels, &s, value, &error), ADJ_OK);
    cr_expect_float_eq(value[0], (pixels[0] - 0.25F) / 2, 1e-6);

    cr_expect_eq(adj_predictor_fetch(p, "conv2", 1, pixels, &s, value, &error), ADJ_EARG);
    expect_text(error.message, "no node is named conv2 (expected one of images, "
                               "conv1, bn1, dw, fc1, logits)");
    cr_expect_eq(adj_predictor_fetch(p, "fc1", 1, NULL, &s, value, &error), ADJ_EARG);
    cr_expect_eq(adj_predictor_fetch(p, NULL, 0, NULL, &s, NULL, &error), ADJ_EARG);
    cr_expect_eq(adj_predictor_fetch(p, "fc1", 1, pixels, &s, value, &error), ADJ_OK);
    expect_near(value, fc1, 5, "fc1");
}

Test(inner, gradient)
{
    static const char *const backends[] = {NULL, "naive"};
    scoped(folder_remove) folder f = folder_new();
    float pixels[BATCH * PIXELS], got[PIXELS];
    adj_error error = {0};
    fill_pixels(pixels);
    for (int b = 0; b < 2; b++) {
        scoped(release_predictor) adj_predictor *p = predictor_of(&f, backends[b]);
        for (int k = 0; k < CLASSES; k++) {
            cr_assert_eq(adj_predictor_gradient(p, k, pixels, got, &error), ADJ_OK, "%s",
                         error.message);
            expect_near(got, gradients[k], PIXELS, "gradient");
        }
        cr_expect_eq(adj_predictor_gradient(p, CLASSES, pixels, got, &error), ADJ_EARG);
        expect_text(error.message, "class is out of range (got 3, expected 0 to 2)");
        cr_expect_eq(adj_predictor_gradient(p, -1, pixels, got, &error), ADJ_EARG);
    }
}

/* Initial weights of lenet, with a card. */
static void put_lenet(const char *path)
{
    const adj_metadata card[] = {{"model", "lenet"},
                                 {"input", "[28,28,1]"},
                                 {"mean", "[128]"},
                                 {"deviation", "[64]"},
                                 {"classes", "10"}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits = adj_model_logits(g, adj_model_find("lenet", NULL), &(adj_model_opts){0});
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &logits, .seed = 5});
    cr_assert_eq(adj_weights_save(e, path, 5, card, NULL), ADJ_OK);
}

enum { SIDE = 28, GRAYS = SIDE * SIDE };

/* The pixel's gray value: neighbors differ by more than a difference's step. */
static uint8_t gray_at(int i) { return (uint8_t)(i * 7919 % 251); }

static void put_gray(const char *path)
{
    uint8_t rows[GRAYS];
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = SIDE, .height = SIDE, .format = PNG_FORMAT_GRAY};
    for (int i = 0; i < GRAYS; i++)
        rows[i] = gray_at(i);
    cr_assert(png_image_write_to_file(&image, path, 0, rows, 0, NULL), "%s", image.message);
}

/* The difference of the best logit when a pixel is half a step more and less. */
static float slope(adj_predictor *p, float pixels[GRAYS], int at, int label)
{
    float logits[2][10], was = pixels[at];
    adj_shape s;
    for (int k = 0; k < 2; k++) {
        pixels[at] = was + (k ? 0.5F : -0.5F);
        cr_assert_eq(adj_predictor_fetch(p, "logits", 1, pixels, &s, logits[k], NULL), ADJ_OK);
    }
    pixels[at] = was;
    return logits[1][label] - logits[0][label];
}

/* The tool's picture is that of differences, but where a unit's sign or a maximum changes. */
Test(inner, saliency)
{
    static float pixels[GRAYS], slopes[GRAYS], picture[GRAYS], p10[10];
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors"), image = in_folder(&f, "i.png"),
                    out = in_folder(&f, "s.png");
    const adj_image_opts size = {.size = {SIDE, SIDE, 1}};
    adj_predictor *p = NULL;
    adj_error error = {0};
    int best = 0, near = 0, resized = 0;
    float largest = 0;
    put_lenet(w.s);
    put_gray(image.s);
    cr_assert_eq(adj_predictor_load(w.s, NULL, NULL, &p, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_image_read(image.s, &size, pixels, &resized, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect(pixels[1] == gray_at(1) && pixels[GRAYS - 1] == gray_at(GRAYS - 1));
    cr_assert_eq(adj_predict_floats(p, 1, pixels, p10, &error), ADJ_OK);
    for (int k = 1; k < 10; k++)
        best = p10[k] > p10[best] ? k : best;
    for (int i = 0; i < GRAYS; i++) {
        slopes[i] = fabsf(slope(p, pixels, i, best));
        largest = fmaxf(largest, slopes[i]);
    }
    adj_predictor_free(p);

    tool(0, "predict --weights %s --saliency %s %s", w.s, out.s, image.s);
    cr_assert_eq(adj_image_read(out.s, &size, picture, &resized, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect_eq(resized, 0);
    for (int i = 0; i < GRAYS; i++)
        near += fabsf(picture[i] - 255 * slopes[i] / largest) <= 6;
    cr_expect_geq(near, GRAYS * 9 / 10, "%d of %d", near, GRAYS);
}
