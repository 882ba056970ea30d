/* test_image.c - PNG, JPEG and WEBP files, by EXIF orientation, cut and damaged. */
#include <criterion/criterion.h>
#include <string.h>

#include "adjoint_data.h"
#include "io/data/files.h"
#include "io/data/origin.h"
#include "io/folder.h"
#include "tests/plan.h"

enum { ROOM = 64 };

static const adj_image_opts gray = {.size = {2, 3, 1}}, color = {.size = {2, 3, 3}};

/* off: 0, or the rounding of Pillow where alpha is laid over a background. */
static void expect_near(const char *name, const float *got, const uint8_t *expected, size_t n,
                        float off)
{
    for (size_t i = 0; i < n; i++)
        cr_expect_float_eq(got[i], (float)expected[i], off, "%s[%zu]: %g, expected %d", name, i,
                           got[i], expected[i]);
}

static void expect_pixels(const char *name, const float *got, const uint8_t *expected, size_t n)
{
    expect_near(name, got, expected, n, 0);
}

typedef struct {
    const char *name;
    const uint8_t *file;
    size_t size;
    const uint8_t *pixels;
    int64_t channels;
    uint8_t background[3];
} file_case;

Test(image, kinds_of_png)
{
    static const uint8_t bits[] = {0, 255, 255, 255, 0, 255};
    static const file_case cases[] = {
        {"gray", gray_png, sizeof gray_png, gray_pixels, 1, {0}},
        {"rgb", rgb_png, sizeof rgb_png, rgb_pixels, 3, {0}},
        {"rgba", rgba_png, sizeof rgba_png, rgba_pixels, 4, {9, 9, 9}},
        {"rgba over black", rgba_png, sizeof rgba_png, rgba_over_black, 3, {0}},
        {"rgba over orange", rgba_png, sizeof rgba_png, rgba_over_orange, 3, {255, 128, 0}},
        {"gray over black", la_png, sizeof la_png, la_over_black, 1, {0}},
        {"palette", palette_png, sizeof palette_png, palette_pixels, 3, {0}},
        {"palette over black",
         palette_alpha_png,
         sizeof palette_alpha_png,
         palette_alpha_over_black,
         3,
         {0}},
        {"one bit", bit_png, sizeof bit_png, bits, 1, {0}},
        {"gray jpeg", gray_jpeg, sizeof gray_jpeg, gray_jpeg_pixels, 1, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const file_case *c = &cases[i];
        adj_image_opts o = {.size = {2, 3, c->channels}};
        adj_error error = {0};
        float got[ROOM];
        int resized = 1;
        memcpy(o.background, c->background, sizeof o.background);
        cr_assert_eq(adj_image_decode(c->file, c->size, c->name, &o, got, &resized, &error), ADJ_OK,
                     "%s", error.message);
        cr_expect_eq(resized, 0);
        expect_near(c->name, got, c->pixels, (size_t)(6 * c->channels),
                    strstr(c->name, "over") != NULL ? 0.501f : 0);
    }
}

/* Lossy files: every fifth pixel of every fifth row, to within 1. */
Test(image, kinds_of_webp)
{
    static const struct {
        const char *name;
        const uint8_t *file;
        size_t size;
        int64_t h, w, c, step;
        const uint8_t *pixels;
        float tolerance;
    } cases[] = {
        {"lossless", lossless_webp, sizeof lossless_webp, 2, 3, 3, 1, lossless_pixels, 0},
        {"with alpha", lossless_alpha_webp, sizeof lossless_alpha_webp, 2, 3, 4, 1,
         lossless_alpha_pixels, 0},
        {"turned", turned_webp, sizeof turned_webp, 3, 2, 3, 1, turned_pixels, 0},
        {"lossy", lossy_webp, sizeof lossy_webp, 16, 24, 3, 5, lossy_pixels, 1},
        {"lossy with alpha", lossy_alpha_webp, sizeof lossy_alpha_webp, 16, 24, 4, 5,
         lossy_alpha_pixels, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const adj_image_opts o = {.size = {cases[i].h, cases[i].w, cases[i].c},
                                  .resize = ADJ_RESIZE_ERROR};
        const uint8_t *expected = cases[i].pixels;
        float got[16 * 24 * 4];
        adj_error error = {0};
        cr_assert_eq(
            adj_image_decode(cases[i].file, cases[i].size, cases[i].name, &o, got, NULL, &error),
            ADJ_OK, "%s", error.message);
        for (int64_t y = 0; y < o.size.h; y += cases[i].step)
            for (int64_t x = 0; x < o.size.w; x += cases[i].step)
                for (int64_t c = 0; c < o.size.c; c++, expected++)
                    cr_expect_float_eq(got[(y * o.size.w + x) * o.size.c + c], (float)*expected,
                                       cases[i].tolerance, "%s (%d, %d)[%d]: %g, expected %d",
                                       cases[i].name, (int)y, (int)x, (int)c,
                                       got[(y * o.size.w + x) * o.size.c + c], *expected);
    }
}

Test(image, channels_converted)
{
    float got[ROOM];
    cr_assert_eq(adj_image_decode(rgb_png, sizeof rgb_png, "", &gray, got, NULL, NULL), ADJ_OK);
    for (int i = 0; i < 6; i++)
        cr_expect_float_eq(got[i], rgb_luma[i], 1e-4, "%g, expected %g", got[i], rgb_luma[i]);
    cr_assert_eq(adj_image_decode(gray_png, sizeof gray_png, "", &color, got, NULL, NULL), ADJ_OK);
    for (int i = 0; i < 18; i++)
        cr_expect_eq(got[i], gray_pixels[i / 3]);
}

/* The JPEG with a segment of EXIF behind its first two bytes; big: the order of its bytes. */
static size_t with_orientation(uint8_t *to, int orientation, int big)
{
    static const uint8_t tiff[2][26] = {
        {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}};
    static const uint8_t segment[10] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0};

    memcpy(to, rgb_jpeg, 2);
    memcpy(to + 2, segment, sizeof segment);
    memcpy(to + 12, tiff[big], sizeof tiff[big]);
    to[12 + (big ? 19 : 18)] = (uint8_t)orientation;
    memcpy(to + 38, rgb_jpeg + 2, sizeof rgb_jpeg - 2);
    return sizeof rgb_jpeg + 36;
}

Test(image, turned_as_exif_says)
{
    uint8_t file[sizeof rgb_jpeg + 36];
    for (int big = 0; big < 2; big++)
        for (int i = 1; i <= 10; i++) {
            int known = i <= 8 ? i : 1; /* 9 and 10 mean nothing */
            adj_image_opts o = {.size = {known < 5 ? 2 : 3, known < 5 ? 3 : 2, 3},
                                .resize = ADJ_RESIZE_ERROR};
            float got[ROOM];
            adj_error error = {0};
            size_t n = with_orientation(file, i, big);
            cr_assert_eq(adj_image_decode(file, n, "", &o, got, NULL, &error), ADJ_OK, "%d: %s", i,
                         error.message);
            expect_pixels(big ? "big" : "little", got, turned[known - 1], 18);
        }
}

/* Wherever a file ends it is refused with its name and nothing is read beyond; never for its size,
 * which is good as soon as it is there. */
static void expect_refused_when_cut(const uint8_t *file, size_t size, size_t whole)
{
    for (size_t n = 0; n < size - whole; n++) {
        scoped(release) uint8_t *part = malloc(n + 1);
        float got[ROOM];
        adj_error error = {0};
        memcpy(part, file, n);
        cr_expect_eq(adj_image_decode(part, n, "photo.x", &color, got, NULL, &error), ADJ_EIO,
                     "%zu of %zu", n, size);
        cr_expect(error.status == ADJ_EIO && strstr(error.message, "photo.x") != NULL &&
                      strstr(error.message, "size") == NULL,
                  "%s", error.message);
    }
}

Test(image, truncated_at_every_byte)
{
    expect_refused_when_cut(rgb_png, sizeof rgb_png, 12); /* without IEND all pixels are there */
    expect_refused_when_cut(palette_alpha_png, sizeof palette_alpha_png, 12);
    expect_refused_when_cut(rgb_jpeg, sizeof rgb_jpeg, 3);
    expect_refused_when_cut(lossless_webp, sizeof lossless_webp, 0);
    expect_refused_when_cut(lossless_alpha_webp, sizeof lossless_alpha_webp, 0);
    expect_refused_when_cut(turned_webp, sizeof turned_webp, 0);
    expect_refused_when_cut(lossy_webp, sizeof lossy_webp, 0);
    expect_refused_when_cut(lossy_alpha_webp, sizeof lossy_alpha_webp, 0);
}

static void expect_message(const void *bytes, size_t n, const char *word)
{
    float got[ROOM];
    adj_error error = {0};
    cr_expect_eq(adj_image_decode(bytes, n, "a.png", &color, got, NULL, &error), ADJ_EIO);
    cr_expect_not_null(strstr(error.message, word), "no %s in: %s", word, error.message);
}

Test(image, refused)
{
    static const uint8_t large[] = {0, 0, 0x27, 0, 0, 0, 0x27, 0};
    uint8_t file[sizeof rgb_png], webp[sizeof lossy_webp];
    float got[ROOM];
    adj_error error = {0};

    memcpy(webp, lossy_webp, sizeof webp);
    memset(webp + 23, 0, 3); /* the start code of VP8 */
    expect_message(webp, sizeof webp, "the header is corrupt");
    expect_message("", 0, "the file is empty");
    expect_message("GIF89a", 6, "is neither PNG, JPEG nor WEBP");
    expect_message(cmyk_jpeg, sizeof cmyk_jpeg, "its colors are CMYK (expected gray or RGB)");
    expect_message(animated_webp, sizeof animated_webp, "is an animation (expected one image)");
    memcpy(file, rgb_png, sizeof file);
    memset(file + 16, 0x7f, 4); /* the width */
    expect_message(file, sizeof file, "too large");
    memcpy(file, rgb_png, sizeof file);
    memcpy(file + 16, large, sizeof large); /* 9984 x 9984 of 80 bytes */
    expect_message(file, sizeof file, "");
    memset(file + 16, 0, 4);
    expect_message(file, sizeof file, "is empty");
    adj_image_opts strict = {.size = {3, 3, 3}, .resize = ADJ_RESIZE_ERROR};
    cr_expect_eq(adj_image_decode(rgb_png, sizeof rgb_png, "a.png", &strict, got, NULL, &error),
                 ADJ_EIO);
    expect_text(error.message, "a.png: image size differs (got 2x3, expected 3x3)");
    cr_expect_eq(adj_image_decode(rgb_png, sizeof rgb_png, "", NULL, got, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_image_decode(NULL, 3, "", &gray, got, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_image_read("no such file.png", &gray, got, NULL, &error), ADJ_EIO);
    expect_text(error.message, "no such file.png: No such file");
    cr_expect_eq(adj_image_read(NULL, &gray, got, NULL, NULL), ADJ_EARG);
}
