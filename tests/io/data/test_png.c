/* test_png.c - PNG files of every bit depth, color type, interlacing and transparency. The files
 * are written here, sample by sample as the PNG specification says; the expected pixels are the
 * samples before that. */
#include <criterion/criterion.h>
#include <string.h>
#include <zlib.h>

#include "adjoint_data.h"
#include "io/data/origin.h"
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
static unsigned sample(const kind *k, int y, int x, int c)
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
        unsigned v = sample(k, y, x, is_gray || k->color == INDEXED ? 0 : c);
        is_key &= v == 1;
        rgba[c] = k->color == INDEXED ? palette(v, c)
                  : k->depth == 16    ? (float)v / 257
                                      : (float)v * scale;
    }
    rgba[3] = is_key && k->color != INDEXED ? 0 : 255;
    if (k->transparent && k->color == INDEXED)
        rgba[3] = palette(sample(k, y, x, 0), 3);
    if (n == 2 || n == 4)
        rgba[3] = k->depth == 16 ? (float)sample(k, y, x, n - 1) / 257
                                 : (float)sample(k, y, x, n - 1) * scale;
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
                bits = bits << k->depth | sample(k, y, x, c);
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

/* Writes a whole file. Chunks about the meaning of colors change nothing, and may be wrong. */
static void write_png(const kind *k, int with_color_chunks, file *f)
{
    file head = {.n = 0};
    *f = (file){{137, 'P', 'N', 'G', 13, 10, 26, 10}, 8};
    put_number(&head, (unsigned)k->w, 4);
    put_number(&head, (unsigned)k->h, 4);
    head.bytes[head.n++] = (uint8_t)k->depth;
    head.bytes[head.n++] = (uint8_t)k->color;
    put_number(&head, (unsigned)k->interlaced, 3);
    put_chunk(f, "IHDR", head.bytes, head.n);
    if (with_color_chunks) {
        put_chunk(f, "gAMA", (const uint8_t[]){0, 1, 0x86, 0xa0}, 4); /* 1.0 */
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

static void expect_kind(const kind *k, int with_color_chunks)
{
    float rgba[4 * MAX_SIDE * MAX_SIDE], rgb[3 * MAX_SIDE * MAX_SIDE], expected[4];
    file f;
    write_png(k, with_color_chunks, &f);
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
                    expect_kind(&k, 0);
                    expect_kind(&k, 1);
                    n++;
                }
    cr_expect_eq(n, (15 + 11) * 2 * 5);
}

/* ---- files of strangers that were read wrongly, with their pixels as Pillow reads them; 16 bits
 * are divided by 257 and rounded to 3 decimals ---- */

static const uint8_t png16_gray_interlaced[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,   0,
    9,   0,   0,   0,   7,   16,  0,   0,   0,   1,   216, 103, 212, 105, 0,   0,   0,   151, 73,
    68,  65,  84,  120, 156, 1,   140, 0,   115, 255, 0,   23,  106, 43,  253, 0,   187, 184, 0,
    94,  69,  25,  157, 147, 62,  0,   44,  249, 153, 0,   0,   18,  110, 124, 152, 0,   233, 224,
    247, 172, 5,   167, 77,  248, 241, 81,  0,   59,  94,  21,  149, 214, 206, 214, 28,  86,  54,
    0,   6,   152, 230, 131, 99,  200, 99,  21,  0,   246, 148, 250, 93,  25,  142, 14,  26,  0,
    27,  104, 118, 97,  166, 106, 185, 251, 0,   234, 49,  129, 127, 253, 244, 31,  119, 0,   74,
    147, 118, 202, 171, 107, 91,  249, 198, 169, 222, 138, 155, 149, 244, 119, 253, 166, 0,   133,
    218, 10,  150, 99,  66,  201, 2,   31,  191, 173, 60,  50,  129, 15,  179, 3,   90,  0,   42,
    7,   123, 248, 44,  171, 30,  33,  89,  123, 181, 79,  80,  176, 215, 37,  28,  20,  172, 132,
    61,  25,  157, 228, 229, 134, 0,   0,   0,   0,   73,  69,  78,  68,  174, 66,  96,  130,
};
static const float png16_gray_interlaced_pixels[] = {
    23.323f,  6.568f,   44.798f,  229.615f, 186.988f, 99.393f,  152.405f, 98.696f,  43.817f,
    74.284f,  118.327f, 170.751f, 91.615f,  197.887f, 221.673f, 154.977f, 243.514f, 252.661f,
    232.965f, 245.619f, 246.708f, 249.389f, 5.630f,   25.455f,  77.665f,  14.047f,  240.377f,
    133.331f, 10.545f,  98.872f,  200.226f, 31.623f,  172.560f, 50.307f,  15.638f,  3.339f,
    93.903f,  27.300f,  18.358f,  117.918f, 25.514f,  165.767f, 124.109f, 185.257f, 146.669f,
    41.864f,  123.486f, 44.494f,  30.012f,  89.132f,  180.603f, 80.374f,  214.307f, 27.969f,
    59.136f,  233.280f, 21.498f,  128.992f, 213.969f, 252.965f, 213.276f, 31.342f,  85.875f,
};
static const uint8_t png16_rgb_interlaced[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,   0,
    9,   0,   0,   0,   7,   16,  2,   0,   0,   1,   114, 110, 28,  226, 0,   0,   1,   147, 73,
    68,  65,  84,  120, 156, 1,   136, 1,   119, 254, 0,   68,  0,   34,  192, 251, 233, 10,  219,
    239, 144, 89,  255, 0,   62,  174, 130, 33,  8,   113, 0,   34,  135, 201, 185, 53,  225, 90,
    8,   19,  20,  179, 8,   192, 133, 56,  212, 49,  247, 0,   62,  165, 136, 184, 119, 184, 179,
    119, 119, 202, 62,  235, 0,   38,  92,  91,  60,  183, 144, 206, 19,  72,  100, 159, 137, 0,
    211, 202, 32,  182, 5,   240, 49,  21,  82,  113, 71,  56,  220, 160, 6,   176, 100, 9,   9,
    188, 242, 216, 109, 55,  145, 112, 166, 208, 168, 76,  0,   42,  39,  219, 60,  207, 95,  199,
    161, 157, 124, 137, 85,  57,  92,  103, 11,  70,  246, 33,  179, 251, 71,  24,  13,  250, 222,
    24,  63,  93,  41,  0,   33,  18,  69,  116, 55,  191, 239, 199, 232, 165, 166, 253, 44,  1,
    31,  85,  176, 117, 159, 124, 75,  228, 238, 99,  0,   65,  228, 110, 91,  225, 241, 158, 104,
    33,  39,  25,  29,  92,  33,  37,  239, 249, 247, 145, 11,  12,  212, 171, 138, 0,   19,  171,
    26,  32,  228, 252, 19,  27,  121, 53,  1,   107, 22,  152, 51,  206, 30,  76,  232, 26,  98,
    178, 72,  60,  0,   0,   32,  189, 215, 225, 88,  109, 51,  100, 90,  56,  207, 125, 233, 250,
    252, 176, 17,  82,  95,  179, 196, 3,   255, 0,   243, 80,  206, 160, 171, 144, 147, 242, 169,
    18,  159, 75,  136, 183, 163, 96,  28,  223, 80,  141, 197, 165, 69,  158, 142, 48,  55,  189,
    205, 33,  121, 52,  169, 241, 113, 252, 66,  242, 136, 2,   148, 156, 88,  36,  243, 90,  198,
    232, 194, 172, 184, 176, 119, 59,  0,   19,  68,  77,  44,  104, 44,  3,   251, 245, 19,  187,
    144, 232, 120, 210, 226, 110, 167, 164, 178, 23,  193, 104, 35,  92,  173, 96,  242, 112, 52,
    141, 1,   103, 18,  63,  191, 156, 2,   94,  215, 161, 227, 36,  148, 232, 62,  95,  209, 28,
    22,  201, 220, 67,  235, 0,   255, 95,  65,  233, 166, 106, 61,  81,  124, 9,   202, 32,  156,
    141, 133, 254, 112, 44,  150, 71,  67,  92,  53,  36,  255, 125, 95,  170, 136, 200, 209, 252,
    204, 26,  249, 152, 60,  148, 100, 62,  88,  172, 142, 158, 34,  145, 193, 116, 48,  32,  86,
    181, 234, 86,  20,  142, 183, 219, 175, 190, 236, 236, 0,   0,   0,   0,   73,  69,  78,  68,
    174, 66,  96,  130,
};
static const float png16_rgb_interlaced_pixels[] = {
    67.735f,  34.615f,  250.930f, 32.942f,  69.183f,  55.529f,  62.401f,  136.187f, 119.253f,
    238.844f, 231.739f, 166.339f, 62.436f,  129.623f, 8.409f,   43.833f,  31.210f,  175.770f,
    178.767f, 119.323f, 62.673f,  158.864f, 75.595f,  237.459f, 10.813f,  238.630f, 89.646f,
    242.366f, 205.821f, 170.895f, 147.370f, 168.412f, 158.673f, 136.183f, 162.739f, 28.759f,
    80.237f,  196.875f, 69.346f,  141.634f, 55.521f,  204.331f, 120.732f, 169.280f, 113.541f,
    66.685f,  135.479f, 148.031f, 87.798f,  242.405f, 198.132f, 193.914f, 183.969f, 118.767f,
    210.965f, 32.584f,  5.914f,   65.634f,  109.926f, 225.062f, 48.891f,  82.121f,  70.942f,
    157.790f, 33.023f,  25.016f,  219.767f, 6.661f,   99.646f,  91.770f,  37.786f,  248.992f,
    9.696f,   241.899f, 108.790f, 144.479f, 12.778f,  170.872f, 144.872f, 166.163f, 167.642f,
    19.191f,  76.872f,  103.767f, 3.965f,   244.121f, 186.833f, 231.564f, 210.062f, 110.222f,
    164.054f, 23.661f,  103.732f, 92.315f,  96.568f,  111.767f, 140.455f, 102.669f, 63.498f,
    155.401f, 94.471f,  161.257f, 36.436f,  231.339f, 95.444f,  27.977f,  201.074f, 67.654f,
    34.393f,  200.938f, 53.669f,  19.591f,  26.023f,  228.093f, 38.210f,  90.879f,  182.848f,
    19.031f,  120.735f, 1.412f,   89.681f,  19.004f,  178.335f, 22.506f,  51.603f,  30.179f,
    205.272f, 72.109f,  158.914f, 231.198f, 98.311f,  71.953f,  191.770f, 56.607f,  49.770f,
    254.377f, 65.654f,  165.767f, 61.078f,  123.553f, 201.339f, 155.942f, 133.471f, 111.735f,
    149.693f, 67.097f,  52.934f,  254.494f, 95.292f,  136.249f, 209.167f, 203.307f, 248.623f,
    60.342f,  99.852f,  88.327f,  142.062f, 34.432f,  192.700f, 47.938f,  86.370f,  233.424f,
    41.988f,  218.381f, 206.564f, 0.125f,   189.101f, 224.467f, 198.852f, 156.872f, 136.798f,
    108.774f, 99.961f,  56.588f,  57.136f,  102.642f, 70.685f,  125.420f, 250.008f, 175.381f,
    33.568f,  250.300f, 23.957f,  82.051f,  179.066f, 3.981f,   249.891f, 24.152f,  92.798f,
};
static const uint8_t png8_gamma_100000[] = {
    137, 80,  78,  71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,   0,
    5,   0,   0,   0,   4,   8,   2,   0,   0,   0,   201, 81,  98,  23,  0,   0,   0,   4,   103,
    65,  77,  65,  0,   1,   134, 160, 49,  232, 150, 95,  0,   0,   0,   75,  73,  68,  65,  84,
    120, 156, 1,   64,  0,   191, 255, 0,   13,  205, 96,  216, 60,  175, 164, 183, 234, 184, 213,
    198, 87,  220, 12,  0,   156, 111, 110, 138, 139, 35,  213, 220, 49,  72,  217, 34,  11,  89,
    248, 0,   217, 187, 132, 85,  221, 0,   184, 94,  173, 199, 97,  226, 149, 162, 250, 0,   238,
    29,  170, 7,   222, 158, 76,  203, 246, 167, 57,  177, 245, 231, 108, 46,  87,  34,  109, 17,
    101, 48,  196, 0,   0,   0,   0,   73,  69,  78,  68,  174, 66,  96,  130,
};
static const float png8_gamma_100000_pixels[] = {
    13,  205, 96,  216, 60,  175, 164, 183, 234, 184, 213, 198, 87,  220, 12,
    156, 111, 110, 138, 139, 35,  213, 220, 49,  72,  217, 34,  11,  89,  248,
    217, 187, 132, 85,  221, 0,   184, 94,  173, 199, 97,  226, 149, 162, 250,
    238, 29,  170, 7,   222, 158, 76,  203, 246, 167, 57,  177, 245, 231, 108,
};
static const uint8_t png8_gamma_22727[] = {
    137, 80,  78, 71,  13,  10,  26,  10,  0,   0,   0,   13,  73,  72,  68,  82,  0,   0,   0,
    5,   0,   0,  0,   4,   8,   2,   0,   0,   0,   201, 81,  98,  23,  0,   0,   0,   4,   103,
    65,  77,  65, 0,   0,   88,  199, 252, 71,  224, 2,   0,   0,   0,   75,  73,  68,  65,  84,
    120, 156, 1,  64,  0,   191, 255, 0,   172, 21,  94,  41,  199, 220, 34,  143, 22,  45,  36,
    168, 90,  52, 9,   0,   147, 232, 69,  182, 140, 26,  163, 152, 180, 226, 43,  119, 151, 178,
    18,  0,   64, 199, 218, 181, 160, 78,  122, 211, 26,  3,   165, 21,  110, 244, 122, 0,   151,
    237, 76,  18, 34,  92,  6,   198, 147, 60,  205, 118, 231, 255, 109, 89,  222, 28,  66,  201,
    4,   146, 6,  0,   0,   0,   0,   73,  69,  78,  68,  174, 66,  96,  130,
};
static const float png8_gamma_22727_pixels[] = {
    172, 21,  94,  41,  199, 220, 34,  143, 22,  45,  36,  168, 90,  52,  9,
    147, 232, 69,  182, 140, 26,  163, 152, 180, 226, 43,  119, 151, 178, 18,
    64,  199, 218, 181, 160, 78,  122, 211, 26,  3,   165, 21,  110, 244, 122,
    151, 237, 76,  18,  34,  92,  6,   198, 147, 60,  205, 118, 231, 255, 109,
};
static const uint8_t png8_gray_gamma[] = {
    137, 80,  78,  71,  13,  10,  26, 10,  0,   0,   0,   13,  73, 72,  68,  82,  0,   0,
    0,   5,   0,   0,   0,   4,   8,  0,   0,   0,   0,   99,  88, 170, 156, 0,   0,   0,
    4,   103, 65,  77,  65,  0,   1,  134, 160, 49,  232, 150, 95, 0,   0,   0,   32,  73,
    68,  65,  84,  120, 156, 99,  80, 119, 176, 233, 89,  193, 80, 201, 162, 245, 245, 9,
    67,  173, 213, 189, 169, 111, 24, 24,  148, 125, 69,  93,  0,  101, 148, 8,   55,  105,
    170, 83,  14,  0,   0,   0,   0,  73,  69,  78,  68,  174, 66, 96,  130,
};
static const float png8_gray_gamma_pixels[] = {
    39, 64, 60, 140, 168, 121, 4, 42, 245, 228, 125, 58, 222, 149, 236, 0, 35, 77, 21, 68,
};

typedef struct {
    const char *name;
    const uint8_t *file;
    size_t size;
    int h, w, c;
    const float *pixels;
} png_case;

static const png_case png_cases[] = {
    {"png16_gray_interlaced", png16_gray_interlaced, sizeof png16_gray_interlaced, 7, 9, 1,
     png16_gray_interlaced_pixels},
    {"png16_rgb_interlaced", png16_rgb_interlaced, sizeof png16_rgb_interlaced, 7, 9, 3,
     png16_rgb_interlaced_pixels},
    {"png8_gamma_100000", png8_gamma_100000, sizeof png8_gamma_100000, 4, 5, 3,
     png8_gamma_100000_pixels},
    {"png8_gamma_22727", png8_gamma_22727, sizeof png8_gamma_22727, 4, 5, 3,
     png8_gamma_22727_pixels},
    {"png8_gray_gamma", png8_gray_gamma, sizeof png8_gray_gamma, 4, 5, 1, png8_gray_gamma_pixels},
};

Test(png, cases_of_strangers)
{
    for (size_t i = 0; i < sizeof png_cases / sizeof png_cases[0]; i++) {
        const png_case *k = &png_cases[i];
        const adj_image_opts o = {.size = {k->h, k->w, k->c}};
        float got[200];
        adj_error error = {0};
        cr_assert_eq(adj_image_decode(k->file, k->size, k->name, &o, got, NULL, &error), ADJ_OK,
                     "%s", error.message);
        for (int j = 0; j < k->h * k->w * k->c; j++)
            cr_assert_float_eq(got[j], k->pixels[j], 1e-3, "%s[%d]: %g, expected %g", k->name, j,
                               got[j], k->pixels[j]);
    }
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
        write_png(&k, 0, &f);
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
