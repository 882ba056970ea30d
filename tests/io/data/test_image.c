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

/* Decodes a file of tests/io/files. */
static void decode(const char *name, const adj_image_opts *o, float *pixels)
{
    const sample file = sample_of(name);
    adj_error error = {0};
    int resized = 1;
    cr_assert_eq(adj_image_decode(file.bytes, file.n, name, o, pixels, &resized, &error), ADJ_OK,
                 "%s", error.message);
    cr_expect_eq(resized, 0);
}

/* Where alpha is laid over a background Pillow rounds. Of lossy files: every fifth pixel of every
 * fifth row, to within 1. */
Test(image, kinds)
{
    static const uint8_t bits[] = {0, 255, 255, 255, 0, 255};
    static const struct {
        const char *name;
        const uint8_t *pixels;
        adj_image_size size;
        int64_t step;
        float off;
        uint8_t background[3];
    } cases[] = {
        {"gray.png", gray_pixels, {2, 3, 1}, 1, 0, {0}},
        {"rgb.png", rgb_pixels, {2, 3, 3}, 1, 0, {0}},
        {"rgba.png", rgba_pixels, {2, 3, 4}, 1, 0, {9, 9, 9}},
        {"rgba.png", rgba_over_black, {2, 3, 3}, 1, 0.501f, {0}},
        {"rgba.png", rgba_over_orange, {2, 3, 3}, 1, 0.501f, {255, 128, 0}},
        {"gray_alpha.png", gray_alpha_over_black, {2, 3, 1}, 1, 0.501f, {0}},
        {"palette.png", palette_pixels, {2, 3, 3}, 1, 0, {0}},
        {"palette_alpha.png", palette_alpha_over_black, {2, 3, 3}, 1, 0.501f, {0}},
        {"bit.png", bits, {2, 3, 1}, 1, 0, {0}},
        {"gray.jpg", gray_jpeg_pixels, {2, 3, 1}, 1, 0, {0}},
        {"lossless.webp", lossless_pixels, {2, 3, 3}, 1, 0, {0}},
        {"lossless_alpha.webp", lossless_alpha_pixels, {2, 3, 4}, 1, 0, {0}},
        {"turned.webp", turned_pixels, {3, 2, 3}, 1, 0, {0}},
        {"lossy.webp", lossy_pixels, {16, 24, 3}, 5, 1, {0}},
        {"lossy_alpha.webp", lossy_alpha_pixels, {16, 24, 4}, 5, 1, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        adj_image_opts o = {.size = cases[i].size};
        const uint8_t *expected = cases[i].pixels;
        float got[16 * 24 * 4];
        memcpy(o.background, cases[i].background, sizeof o.background);
        decode(cases[i].name, &o, got);
        for (int64_t y = 0; y < o.size.h; y += cases[i].step)
            for (int64_t x = 0; x < o.size.w; x += cases[i].step)
                for (int64_t c = 0; c < o.size.c; c++, expected++)
                    cr_expect_float_eq(got[(y * o.size.w + x) * o.size.c + c], (float)*expected,
                                       cases[i].off, "%s (%d, %d)[%d]: %g, expected %d",
                                       cases[i].name, (int)y, (int)x, (int)c,
                                       got[(y * o.size.w + x) * o.size.c + c], *expected);
    }
}

Test(image, channels_converted)
{
    float got[ROOM];
    decode("rgb.png", &gray, got);
    for (int i = 0; i < 6; i++)
        cr_expect_float_eq(got[i], rgb_luma[i], 1e-4, "%g, expected %g", got[i], rgb_luma[i]);
    decode("gray.png", &color, got);
    for (int i = 0; i < 18; i++)
        cr_expect_eq(got[i], gray_pixels[i / 3]);
}

/* rgb.jpg with a segment of EXIF behind its first two bytes; big: the order of its bytes. */
static sample with_orientation(int orientation, int big)
{
    static const uint8_t tiff[2][26] = {
        {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0}};
    static const uint8_t segment[10] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0};
    sample s = sample_of("rgb.jpg");

    memmove(s.bytes + 38, s.bytes + 2, s.n - 2);
    memcpy(s.bytes + 2, segment, sizeof segment);
    memcpy(s.bytes + 12, tiff[big], sizeof tiff[big]);
    s.bytes[12 + (big ? 19 : 18)] = (uint8_t)orientation;
    s.n += 36;
    return s;
}

Test(image, turned_as_exif_says)
{
    for (int big = 0; big < 2; big++)
        for (int i = 1; i <= 10; i++) {
            int known = i <= 8 ? i : 1; /* 9 and 10 mean nothing */
            adj_image_opts o = {.size = {known < 5 ? 2 : 3, known < 5 ? 3 : 2, 3},
                                .resize = ADJ_RESIZE_ERROR};
            float got[ROOM];
            adj_error error = {0};
            const sample file = with_orientation(i, big);
            cr_assert_eq(adj_image_decode(file.bytes, file.n, "", &o, got, NULL, &error), ADJ_OK,
                         "%d: %s", i, error.message);
            for (int k = 0; k < 18; k++)
                cr_expect_eq(got[k], turned[known - 1][k], "big %d, orientation %d: %d", big, i, k);
        }
}

/* Wherever a file ends it is refused with its name and nothing is read beyond; never for its size,
 * which is good as soon as it is there. */
static void expect_refused_when_cut(const char *name, size_t whole)
{
    const sample file = sample_of(name);
    for (size_t n = 0; n < file.n - whole; n++) {
        scoped(release) uint8_t *part = malloc(n + 1);
        float got[ROOM];
        adj_error error = {0};
        memcpy(part, file.bytes, n);
        cr_expect_eq(adj_image_decode(part, n, "photo.x", &color, got, NULL, &error), ADJ_EIO,
                     "%s: %zu of %zu", name, n, file.n);
        cr_expect(error.status == ADJ_EIO && strstr(error.message, "photo.x") != NULL &&
                      strstr(error.message, "size") == NULL,
                  "%s", error.message);
    }
}

Test(image, truncated_at_every_byte)
{
    expect_refused_when_cut("rgb.png", 12); /* without IEND all pixels are there */
    expect_refused_when_cut("palette_alpha.png", 12);
    expect_refused_when_cut("rgb.jpg", 3);
    expect_refused_when_cut("lossless.webp", 0);
    expect_refused_when_cut("lossless_alpha.webp", 0);
    expect_refused_when_cut("turned.webp", 0);
    expect_refused_when_cut("lossy.webp", 0);
    expect_refused_when_cut("lossy_alpha.webp", 0);
}

static void expect_message(const sample *s, const char *word)
{
    float got[ROOM];
    adj_error error = {0};
    cr_expect_eq(adj_image_decode(s->bytes, s->n, "a.png", &color, got, NULL, &error), ADJ_EIO);
    cr_expect_not_null(strstr(error.message, word), "no %s in: %s", word, error.message);
}

Test(image, refused)
{
    static const uint8_t large[] = {0, 0, 0x27, 0, 0, 0, 0x27, 0};
    sample png = sample_of("rgb.png"), webp = sample_of("lossy.webp"), cmyk = sample_of("cmyk.jpg"),
           animated = sample_of("animated.webp");
    float got[ROOM];
    adj_error error = {0};

    memset(webp.bytes + 23, 0, 3); /* the start code of VP8 */
    expect_message(&webp, "the header is corrupt");
    expect_message(&(sample){.n = 0}, "the file is empty");
    expect_message(&(sample){"GIF89a", 6}, "is neither PNG, JPEG nor WEBP");
    expect_message(&cmyk, "its colors are CMYK (expected gray or RGB)");
    expect_message(&animated, "is an animation (expected one image)");
    memset(png.bytes + 16, 0x7f, 4); /* the width */
    expect_message(&png, "too large");
    memcpy(png.bytes + 16, large, sizeof large); /* 9984 x 9984 of 80 bytes */
    expect_message(&png, "");
    memset(png.bytes + 16, 0, 4);
    expect_message(&png, "is empty");
    adj_image_opts strict = {.size = {3, 3, 3}, .resize = ADJ_RESIZE_ERROR};
    png = sample_of("rgb.png");
    cr_expect_eq(adj_image_decode(png.bytes, png.n, "a.png", &strict, got, NULL, &error), ADJ_EIO);
    expect_text(error.message, "a.png: image size differs (got 2x3, expected 3x3)");
    cr_expect_eq(adj_image_decode(png.bytes, png.n, "", NULL, got, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_image_decode(NULL, 3, "", &gray, got, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_image_read("no such file.png", &gray, got, NULL, &error), ADJ_EIO);
    expect_text(error.message, "no such file.png: No such file");
    cr_expect_eq(adj_image_read(NULL, &gray, got, NULL, NULL), ADJ_EARG);
}
