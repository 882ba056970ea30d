/* test_png.c - PNG files of every bit depth, color type, interlacing and transparency. The files
 * are written here, sample by sample as the PNG specification says; the expected pixels are the
 * samples before that. */
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>

#include "adjoint_data.h"
#include "io/data/origin.h"
#include "io/sample.h"
#include "tests/plan.h"

enum { MAX_SIDE = 9, PALETTE = 200, GRAY = 0, RGB = 2, INDEXED = 3, GRAY_ALPHA = 4, RGBA = 6 };

typedef struct {
    int h, w, depth, color;
    int interlaced, transparent; /* Adam7; with a chunk tRNS */
} kind;

/* ---- samples ---- */

static int stored_channels(const kind *k)
{
    return k->color == RGB ? 3 : k->color == RGBA ? 4 : k->color == GRAY_ALPHA ? 2 : 1;
}

static unsigned scatter(unsigned i)
{
    i = (i + 1) * 2654435761u;
    return i ^ i >> 15;
}

/* Returns sample c of pixel (y, x), as it is stored. */
static unsigned stored_sample(const kind *k, int y, int x, int c)
{
    unsigned all = (1u << k->depth) - 1, v = scatter((unsigned)((y * MAX_SIDE + x) * 4 + c)) & all;
    if (k->color == INDEXED && v >= PALETTE)
        return v - PALETTE;
    return k->transparent && (y + x) % 3 == 0 && k->color != INDEXED ? 1 : v; /* tRNS's key */
}

static uint8_t palette(unsigned index, int c)
{
    return (uint8_t)(scatter(1000 + 4 * index) >> 8 * c);
}

/* Pixel (y, x) as R, G, B, A in pixel units. */
static void expected_pixel(const kind *k, int y, int x, float rgba[4])
{
    const float scale = 255 / (float)((1u << k->depth) - 1);
    const int n = stored_channels(k), is_gray = k->color == GRAY || k->color == GRAY_ALPHA;
    int is_key = k->transparent;
    for (int c = 0; c < 3; c++) {
        unsigned v = stored_sample(k, y, x, is_gray || k->color == INDEXED ? 0 : c);
        is_key &= v == 1;
        rgba[c] = k->color == INDEXED ? palette(v, c)
                  : k->depth == 16    ? (float)v / 257
                                      : (float)v * scale;
    }
    rgba[3] = is_key && k->color != INDEXED ? 0 : 255;
    if (k->transparent && k->color == INDEXED)
        rgba[3] = palette(stored_sample(k, y, x, 0), 3);
    if (n == 2 || n == 4)
        rgba[3] = k->depth == 16 ? (float)stored_sample(k, y, x, n - 1) / 257
                                 : (float)stored_sample(k, y, x, n - 1) * scale;
}

/* ---- the file ---- */

typedef struct {
    uint8_t bytes[4096];
    size_t n;
} file;

static void put_number(file *f, unsigned v, int bytes)
{
    while (bytes-- > 0)
        f->bytes[f->n++] = (uint8_t)(v >> 8 * bytes);
}

static void put_chunk(file *f, const char *name, const void *body, size_t n)
{
    put_number(f, (unsigned)n, 4);
    const size_t at = f->n;
    memcpy(f->bytes + f->n, name, 4);
    if (n > 0)
        memcpy(f->bytes + f->n + 4, body, n);
    f->n += 4 + n;
    put_number(f, (unsigned)crc32(0, f->bytes + at, (uInt)(4 + n)), 4);
}

/* Rows y0, y0 + dy, ... of columns x0, x0 + dx, ...: each a filter byte (none) and the samples,
 * most significant bit first. */
static void put_rows(file *f, const kind *k, int y0, int x0, int dy, int dx)
{
    for (int y = y0; y < k->h && x0 < k->w; y += dy) {
        unsigned bits = 0;
        int n_bits = 0;
        f->bytes[f->n++] = 0;
        for (int x = x0; x < k->w; x += dx)
            for (int c = 0; c < stored_channels(k); c++) {
                bits = bits << k->depth | stored_sample(k, y, x, c);
                n_bits += k->depth;
                if (n_bits >= 8) {
                    put_number(f, bits, n_bits / 8);
                    n_bits = 0;
                }
            }
        if (n_bits > 0)
            f->bytes[f->n++] = (uint8_t)(bits << (8 - n_bits));
    }
}

static void put_pixels(file *f, const kind *k)
{
    static const int adam7[7][4] = {{0, 0, 8, 8}, {0, 4, 8, 8}, {4, 0, 8, 4}, {0, 2, 4, 4},
                                    {2, 0, 4, 2}, {0, 1, 2, 2}, {1, 0, 2, 1}};
    static uint8_t packed[4096];
    uLongf n = sizeof packed;
    file rows = {.n = 0};

    if (k->interlaced)
        for (int i = 0; i < 7; i++)
            put_rows(&rows, k, adam7[i][0], adam7[i][1], adam7[i][2], adam7[i][3]);
    else
        put_rows(&rows, k, 0, 0, 1, 1);
    cr_assert_eq(compress(packed, &n, rows.bytes, rows.n), Z_OK);
    put_chunk(f, "IDAT", packed, n);
}

static void put_palette(file *f, const kind *k)
{
    uint8_t colors[3 * PALETTE], alpha[PALETTE];
    unsigned n = k->depth == 8 ? PALETTE : 1u << k->depth;
    for (unsigned i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++)
            colors[3 * i + (unsigned)c] = palette(i, c);
        alpha[i] = palette(i, 3);
    }
    put_chunk(f, "PLTE", colors, 3 * n);
    if (k->transparent)
        put_chunk(f, "tRNS", alpha, n);
}

/* Chunks about the meaning of colors: gAMA's number (0: none), and the others. */
typedef struct {
    unsigned gamma;
    int others;
} meaning;
static const meaning meanings[] = {{0, 0}, {22727, 0}, {100000, 0}, {100000, 1}};
enum { MEANINGS = sizeof meanings / sizeof meanings[0] };

/* Writes a whole file. Chunks about the meaning of colors change nothing, and may be wrong. */
static void write_png(const kind *k, meaning colors, file *f)
{
    file head = {.n = 0}, gamma = {.n = 0};
    *f = (file){{137, 'P', 'N', 'G', 13, 10, 26, 10}, 8};
    put_number(&head, (unsigned)k->w, 4);
    put_number(&head, (unsigned)k->h, 4);
    head.bytes[head.n++] = (uint8_t)k->depth;
    head.bytes[head.n++] = (uint8_t)k->color;
    put_number(&head, (unsigned)k->interlaced, 3);
    put_chunk(f, "IHDR", head.bytes, head.n);
    put_number(&gamma, colors.gamma, 4);
    if (colors.gamma > 0)
        put_chunk(f, "gAMA", gamma.bytes, gamma.n);
    if (colors.others) {
        put_chunk(f, "cHRM",
                  "\0\0z&\0\0\x80\x84\0\0\xfa\0\0\0\x80\xe8\0\0u0\0\0\xea`\0\0:\x98\0\0\x17p", 32);
        put_chunk(f, "iCCP", "profile\0\0no deflate stream", 26);
        put_chunk(f, "sBIT", "\x03\x03\x03\x03",
                  (size_t)(k->color == INDEXED ? 3 : stored_channels(k)));
    }
    if (k->color == INDEXED)
        put_palette(f, k);
    else if (k->transparent)
        put_chunk(f, "tRNS", "\0\1\0\1\0\1", k->color == RGB ? 6 : 2);
    put_pixels(f, k);
    put_chunk(f, "IEND", NULL, 0);
}

/* ---- the tests ---- */

static void decode(const kind *k, const file *f, int64_t channels, float *got)
{
    static const uint8_t background[3] = {10, 20, 30};
    adj_image_opts o = {.size = {k->h, k->w, channels}};
    adj_error error = {0};
    int resized = 1;
    char name[80];

    snprintf(name, sizeof name, "%dx%d depth %d color %d interlaced %d tRNS %d", k->h, k->w,
             k->depth, k->color, k->interlaced, k->transparent);
    memcpy(o.background, background, sizeof background);
    cr_assert_eq(adj_image_decode(f->bytes, f->n, name, &o, got, &resized, &error), ADJ_OK, "%s",
                 error.message);
    cr_expect_eq(resized, 0);
}

static void expect_kind(const kind *k, meaning colors)
{
    float rgba[4 * MAX_SIDE * MAX_SIDE], rgb[3 * MAX_SIDE * MAX_SIDE], expected[4];
    file f;
    write_png(k, colors, &f);
    decode(k, &f, 4, rgba);
    decode(k, &f, 3, rgb);
    for (int y = 0; y < k->h; y++)
        for (int x = 0; x < k->w; x++) {
            const int i = y * k->w + x;
            expected_pixel(k, y, x, expected);
            for (int c = 0; c < 4; c++)
                cr_assert_eq(rgba[4 * i + c], expected[c],
                             "depth %d color %d interlaced %d tRNS %d: pixel (%d, %d)[%d]: %.9g, "
                             "expected %.9g",
                             k->depth, k->color, k->interlaced, k->transparent, y, x, c,
                             rgba[4 * i + c], expected[c]);
            const int is_gray = k->color == GRAY || k->color == GRAY_ALPHA;
            for (int c = 0; c < 3; c++) {
                /* (10, 20, 30) has luma 18.15, whose nearest whole number is under a gray image */
                const float under = is_gray ? 18 : (float)(10 * c + 10), a = expected[3];
                const float over = (a * expected[c] + (255 - a) * under) / 255;
                cr_assert_float_eq(rgb[3 * i + c], over, 1e-3);
            }
        }
}

Test(png, every_kind)
{
    static const struct {
        int color, depths, may_be_transparent; /* depths: their sum */
    } types[] = {{GRAY, 1 + 2 + 4 + 8 + 16, 1},
                 {RGB, 8 + 16, 1},
                 {INDEXED, 1 + 2 + 4 + 8, 1},
                 {GRAY_ALPHA, 8 + 16, 0},
                 {RGBA, 8 + 16, 0}};
    static const int sizes[][2] = {{7, 9}, {1, 1}, {3, 5}, {9, 1}, {8, 8}};
    int n = 0;

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        for (int depth = 1; depth <= 16; depth *= 2)
            for (int variant = 0; variant < 4 && (types[i].depths & depth) != 0; variant++)
                for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                    const kind k = {sizes[s][0],    sizes[s][1], depth,
                                    types[i].color, variant & 1, variant >> 1};
                    if (k.transparent && !types[i].may_be_transparent)
                        continue;
                    for (int m = 0; m < MEANINGS; m++)
                        expect_kind(&k, meanings[m]);
                    n++;
                }
    cr_expect_eq(n, (15 + 11) * 2 * 5);
}

/* ---- a file of another program, once read wrongly: its pixels as Pillow reads them, divided by
 * 257 and rounded to 3 decimals ---- */

static const float gray16_pixels[] = {
    23.323f,  6.568f,   44.798f,  229.615f, 186.988f, 99.393f,  152.405f, 98.696f,  43.817f,
    74.284f,  118.327f, 170.751f, 91.615f,  197.887f, 221.673f, 154.977f, 243.514f, 252.661f,
    232.965f, 245.619f, 246.708f, 249.389f, 5.630f,   25.455f,  77.665f,  14.047f,  240.377f,
    133.331f, 10.545f,  98.872f,  200.226f, 31.623f,  172.560f, 50.307f,  15.638f,  3.339f,
    93.903f,  27.300f,  18.358f,  117.918f, 25.514f,  165.767f, 124.109f, 185.257f, 146.669f,
    41.864f,  123.486f, 44.494f,  30.012f,  89.132f,  180.603f, 80.374f,  214.307f, 27.969f,
    59.136f,  233.280f, 21.498f,  128.992f, 213.969f, 252.965f, 213.276f, 31.342f,  85.875f,
};

Test(png, file_of_another_program)
{
    enum { PIXELS = 7 * 9 };
    const adj_image_opts o = {.size = {7, 9, 1}};
    const sample file = sample_of("gray16_interlaced.png");
    float got[PIXELS];
    adj_error error = {0};
    cr_assert_eq(adj_image_decode(file.bytes, file.n, "a.png", &o, got, NULL, &error), ADJ_OK, "%s",
                 error.message);
    for (int i = 0; i < PIXELS; i++)
        cr_expect_float_eq(got[i], gray16_pixels[i], 1e-3, "%d: %g", i, (double)got[i]);
}

/* Every file is refused wherever it ends before its last pixel. */
Test(png, cut_at_every_byte)
{
    enum { END = 12 }; /* bytes of IEND, without which all pixels are there */
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        const kind k = {7, 9, 16, RGBA, interlaced, 0};
        const adj_image_opts o = {.size = {k.h, k.w, 3}};
        file f;
        float got[3 * MAX_SIDE * MAX_SIDE];
        write_png(&k, meanings[0], &f);
        for (size_t n = 0; n < f.n - END; n++) {
            adj_error error = {0};
            cr_assert_eq(adj_image_decode(f.bytes, n, "a.png", &o, got, NULL, &error), ADJ_EIO,
                         "%zu of %zu bytes", n, f.n);
            expect_text(error.message, "a.png: ");
        }
    }
}

/* A header whose size is more than deflate can pack into so few bytes gets no memory. */
Test(png, size_that_lies)
{
    const adj_image_opts o = {.size = {1, 1, 3}};
    float got[3];
    adj_error error = {0};
    file f = {{137, 'P', 'N', 'G', 13, 10, 26, 10}, 8};
    put_chunk(&f, "IHDR", "\0\0\x23\x28\0\0\x23\x28\x08\x02\0\0\0", 13);
    put_chunk(&f, "IDAT", "\x78\x9c", 2);
    cr_assert_eq(adj_image_decode(f.bytes, f.n, "a.png", &o, got, NULL, &error), ADJ_EIO);
    expect_text(error.message, "size 9000x9000: the file is too short for that");
}
