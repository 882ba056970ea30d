/* files.h - small image and array files (tests/io/data/files) as PIL 9.4 and NumPy 1.24 wrote them,
 * WEBP as Pillow 13.0, and what these read from them. Alpha over a color is the nearest whole
 * number to (a v + (255 - a) b) / 255, in fractions. */
#ifndef TESTS_IO_DATA_FILES_H
#define TESTS_IO_DATA_FILES_H

#include <stdint.h>

#include "io/folder.h"

/* The bytes of a file in tests/io/data/files. */
typedef struct {
    uint8_t bytes[1024];
    size_t n;
} sample;

static inline sample sample_of(const char *name)
{
    sample s;
    char path[80];
    snprintf(path, sizeof path, "tests/io/data/files/%s", name);
    s.n = get_file(path, s.bytes, sizeof s.bytes);
    return s;
}

/* Write a copy of it in a folder, as put_in does; and of its first n bytes. */
static inline void put_sample(const folder *f, const char *name, const char *of)
{
    const sample s = sample_of(of);
    put_in(f, name, s.bytes, s.n);
}

static inline void put_start(const folder *f, const char *name, const char *of, size_t n)
{
    put_in(f, name, sample_of(of).bytes, n);
}

/* Pixels of the files of 3 x 2. */
static const uint8_t gray_pixels[] = {106, 152, 249, 131, 184, 200};
static const uint8_t rgb_pixels[] = {0,   21,  253, 147, 202, 107, 249, 169, 138,
                                     149, 119, 166, 224, 148, 172, 93,  167, 142};
static const uint8_t rgba_pixels[] = {248, 26,  81,  0,  150, 66,  2,   255, 60, 129, 179, 90,
                                      69,  104, 110, 97, 157, 106, 152, 251, 62, 7,   248, 171};
static const uint8_t rgba_over_black[] = {0,  0,  0,  150, 66,  2,   21, 46, 63,
                                          26, 40, 42, 155, 104, 150, 42, 5,  166};
static const uint8_t rgba_over_orange[] = {255, 128, 0,  150, 66,  2,   186, 128, 63,
                                           184, 119, 42, 159, 106, 150, 126, 47,  166};
static const uint8_t gray_alpha_over_black[] = {16, 55, 3, 18, 74, 197};
static const uint8_t palette_pixels[] = {75, 70,  210, 198, 186, 123, 224, 148, 172,
                                         93, 167, 142, 224, 148, 172, 93,  167, 142};
static const uint8_t palette_alpha_over_black[] = {0, 0,   0, 200, 100, 50, 0, 128, 0,
                                                   0, 128, 0, 200, 100, 50, 0, 0,   0};
static const float rgb_luma[] = {41.169000f,  174.725000f, 189.386000f,
                                 133.328000f, 173.460000f, 142.024000f};

/* Pixels of rgb.jpg, by EXIF orientation, as PIL.ImageOps.exif_transpose makes them. */
static const uint8_t turned[8][18] = {
    {225, 23, 35, 155, 79, 43, 60, 158, 55, 191, 57, 48, 125, 116, 57, 30, 196, 70},
    {60, 158, 55, 155, 79, 43, 225, 23, 35, 30, 196, 70, 125, 116, 57, 191, 57, 48},
    {30, 196, 70, 125, 116, 57, 191, 57, 48, 60, 158, 55, 155, 79, 43, 225, 23, 35},
    {191, 57, 48, 125, 116, 57, 30, 196, 70, 225, 23, 35, 155, 79, 43, 60, 158, 55},
    {225, 23, 35, 191, 57, 48, 155, 79, 43, 125, 116, 57, 60, 158, 55, 30, 196, 70},
    {191, 57, 48, 225, 23, 35, 125, 116, 57, 155, 79, 43, 30, 196, 70, 60, 158, 55},
    {30, 196, 70, 60, 158, 55, 125, 116, 57, 155, 79, 43, 191, 57, 48, 225, 23, 35},
    {60, 158, 55, 30, 196, 70, 155, 79, 43, 125, 116, 57, 225, 23, 35, 191, 57, 48}};
static const uint8_t gray_jpeg_pixels[] = {10, 60, 118, 198, 220, 252};

/* 5 rows of 4, and its resizings: means of areas by whole pixels of a finer grid (numpy.kron),
 * bilinear by PIL (mode F). */
static const uint8_t five_by_four[] = {18, 116, 191, 165, 184, 184, 199, 165, 253, 174,
                                       33, 113, 1,   85,  117, 119, 202, 235, 124, 228};
static const float area_3x3[] = {99.10000f,  168.70000f, 172.30000f, 181.15000f, 120.60000f,
                                 114.20000f, 134.95000f, 148.10000f, 168.60000f};
static const float area_2x1[] = {150.85000f, 139.75000f};
static const float bilinear_7x6[] = {
    18.00000f,  67.00000f,  128.50000f, 178.50000f, 178.00000f, 165.00000f, 112.85714f,
    133.85715f, 161.64285f, 188.78572f, 180.28572f, 165.00000f, 203.71428f, 192.42857f,
    176.21428f, 156.50000f, 150.85715f, 150.14285f, 253.00000f, 213.50000f, 150.50000f,
    56.50000f,  73.00000f,  113.00000f, 73.00000f,  91.71429f,  107.52381f, 95.90476f,
    105.14286f, 117.28571f, 87.14286f,  118.21429f, 144.40477f, 124.88095f, 142.85715f,
    165.71428f, 202.00000f, 218.50000f, 216.50000f, 142.50000f, 176.00000f, 228.00000f};
static const float mixed_3x9[] = {
    84.40000f,  94.20000f,  120.33333f, 146.03333f, 168.70000f, 191.36667f, 182.84444f,
    169.86667f, 165.00000f, 188.80000f, 183.70000f, 170.10001f, 154.02222f, 120.60000f,
    87.17778f,  99.17778f,  117.66666f, 124.60000f, 121.60000f, 130.50000f, 154.23334f,
    172.01111f, 148.10001f, 124.18889f, 145.77777f, 173.86667f, 184.39999f};

/* Pixels of the WEBP files. */
static const uint8_t lossless_pixels[] = {248, 194, 190, 207, 147, 26,  237, 21, 245,
                                          211, 239, 45,  5,   157, 159, 60,  54, 236};
static const uint8_t lossless_alpha_pixels[] = {199, 82,  32, 0,   36, 7,  134, 222,
                                                57,  146, 8,  149, 14, 15, 22,  10,
                                                144, 208, 24, 24,  7,  41, 11,  255};
static const uint8_t turned_pixels[] = {211, 239, 45, 248, 194, 190, 5,   157, 159,
                                        207, 147, 26, 60,  54,  236, 237, 21,  245};
static const uint8_t lossy_pixels[] = {22,  3,   203, 49,  2,   179, 104, 4,   158, 140, 5,   135,
                                       199, 0,   115, 16,  73,  186, 48,  76,  167, 100, 80,  144,
                                       135, 76,  116, 199, 73,  104, 20,  146, 169, 51,  149, 150,
                                       111, 147, 135, 143, 144, 109, 203, 150, 95,  17,  221, 155,
                                       49,  225, 136, 105, 217, 116, 142, 219, 95,  196, 222, 79};
static const uint8_t lossy_alpha_pixels[] = {
    34,  17,  204, 0,   48,  2,   170, 25,  102, 2,   154, 50,  138, 3,   133, 75,
    200, 0,   117, 100, 16,  75,  176, 35,  44,  75,  153, 60,  97,  78,  141, 85,
    137, 78,  118, 110, 196, 71,  102, 135, 20,  146, 169, 70,  48,  146, 147, 95,
    109, 145, 133, 120, 145, 146, 112, 145, 203, 150, 95,  170, 17,  221, 155, 105,
    45,  221, 132, 130, 108, 220, 118, 155, 144, 221, 97,  180, 196, 222, 79,  205};

#endif
