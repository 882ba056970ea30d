/* same_images.h - the same images of ten classes in files of every format. */
#ifndef TESTS_CLI_SAME_IMAGES_H
#define TESTS_CLI_SAME_IMAGES_H

#include <criterion/criterion.h>
#include <png.h>
#include <stdint.h>
#include <sys/stat.h>
#include <zip.h>

#include "cli/small_data.h"

enum { CLASSES = 10, EACH_TRAIN = 3, EACH_TEST = 1, LARGEST = 32 * 32 * 3 };
/* CIFAR-10's classes, which are in the order of their names. */
static const char *const names[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                           "dog",      "frog",       "horse", "ship", "truck"};
typedef struct {
    int h, w, c;
    void (*write)(const folder *to, int h, int w, int c);
    const char *file; /* within the folder; NULL: the folder itself */
} format;

/* Returns image i of a part, [h, w, c]; its class is i / (images of a class). */
static inline const uint8_t *pixels_of(int is_test, int i, int elems)
{
    static uint8_t pixels[LARGEST];
    uint32_t state = (uint32_t)(1000 * is_test + i + 1) * 2654435761u;
    for (int k = 0; k < elems; k++) {
        state = state * 1664525u + 1013904223u;
        pixels[k] = (uint8_t)((state >> 24) / 2 + (uint32_t)(k * (i + 2) % 128));
    }
    return pixels;
}

static inline int each(int is_test) { return is_test ? EACH_TEST : EACH_TRAIN; }
static inline int images(int is_test) { return CLASSES * each(is_test); }

/* ---- writers ---- */

/* Writes a header of NumPy's format 1.0 for n images, or with rank 1 for n labels. Returns its
 * length. */
static inline size_t npy(const char *descr, int n, int rank, int h, int w, int c, uint8_t *to)
{
    static const uint8_t magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    char shape[80], header[119];
    snprintf(shape, sizeof shape,
             rank == 1   ? "(%d,)"
             : rank == 3 ? "(%d, %d, %d)"
                         : "(%d, %d, %d, %d)",
             n, h, w, c);
    memset(header, ' ', sizeof header);
    int used = snprintf(header, sizeof header,
                        "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
    header[used] = ' ';
    header[117] = '\n';
    memcpy(to, magic, sizeof magic);
    memcpy(to + 10, header, 118);
    return 128;
}

static inline void add_array(zip_t *z, const char *name, const uint8_t *bytes, size_t n)
{
    void *copy = malloc(n);
    cr_assert_not_null(copy);
    memcpy(copy, bytes, n);
    zip_source_t *s = zip_source_buffer(z, copy, n, 1);
    cr_assert_geq(zip_file_add(z, name, s, 0), 0);
}

typedef enum { BYTES, ZERO_TO_ONE, MINUS_ONE_TO_ONE } npz_kind;

static inline void write_npz(const folder *to, int h, int w, int c, npz_kind kind)
{
    static uint8_t bytes[128 + CLASSES * EACH_TRAIN * LARGEST * 4];
    zip_t *z = zip_open(in_folder(to, "data.npz").s, ZIP_CREATE, NULL);
    cr_assert_not_null(z);
    for (int is_test = 0; is_test < 2; is_test++) {
        size_t at =
            npy(kind == BYTES ? "|u1" : "<f4", images(is_test), c == 1 ? 3 : 4, h, w, c, bytes);
        for (int i = 0; i < images(is_test); i++) {
            const uint8_t *x = pixels_of(is_test, i, h * w * c);
            for (int k = 0; k < h * w * c; k++) {
                const float f = kind == ZERO_TO_ONE ? (float)x[k] / 255 : (float)x[k] / 127.5f - 1;
                memcpy(bytes + at, kind == BYTES ? (const void *)(x + k) : &f,
                       kind == BYTES ? 1 : 4);
                at += kind == BYTES ? 1 : 4;
            }
        }
        add_array(z, is_test ? "x_test.npy" : "x_train.npy", bytes, at);
        at = npy("|u1", images(is_test), 1, 0, 0, 0, bytes);
        for (int i = 0; i < images(is_test); i++)
            bytes[at++] = (uint8_t)(i / each(is_test));
        add_array(z, is_test ? "y_test.npy" : "y_train.npy", bytes, at);
    }
    cr_assert_eq(zip_close(z), 0);
}

static inline void write_bytes(const folder *to, int h, int w, int c)
{
    write_npz(to, h, w, c, BYTES);
}
static inline void write_floats(const folder *to, int h, int w, int c)
{
    write_npz(to, h, w, c, ZERO_TO_ONE);
}

static inline void write_idx(const folder *to, int h, int w, int c)
{
    static uint8_t x[CLASSES * EACH_TRAIN * LARGEST], y[CLASSES * EACH_TRAIN];
    for (int is_test = 0; is_test < 2; is_test++) {
        const char *part = is_test ? "t10k" : "train";
        const int n = images(is_test), elems = h * w * c;
        char name[60];
        for (int i = 0; i < n; i++) {
            memcpy(x + (ptrdiff_t)i * elems, pixels_of(is_test, i, elems), (size_t)elems);
            y[i] = (uint8_t)(i / each(is_test));
        }
        snprintf(name, sizeof name, "%s-images-idx%d-ubyte", part, c == 1 ? 3 : 4);
        put_idx(in_folder(to, name).s, n, h, w, c, x);
        snprintf(name, sizeof name, "%s-labels-idx1-ubyte", part);
        put_idx(in_folder(to, name).s, n, 0, 0, 0, y);
    }
}

/* Records of a label and the planes of red, green and blue. */
static inline void write_cifar(const folder *to, int h, int w, int c)
{
    for (int is_test = 0; is_test < 2; is_test++) {
        FILE *f = fopen(in_folder(to, is_test ? "test_batch.bin" : "data_batch_1.bin").s, "wb");
        for (int i = 0; i < images(is_test); i++) {
            const uint8_t *x = pixels_of(is_test, i, h * w * c);
            fputc(i / each(is_test), f);
            for (int k = 0; k < c; k++)
                for (int p = 0; p < h * w; p++)
                    fputc(x[p * c + k], f);
        }
        fclose(f);
    }
}

static inline void make_folder(const char *path) { cr_assert_eq(mkdir(path, 0777), 0, "%s", path); }

static inline file_name png_name(const folder *to, int is_test, int i)
{
    char name[100];
    snprintf(name, sizeof name, "%s/%s/%d.png", is_test ? "test" : "train",
             names[i / each(is_test)], i % each(is_test));
    return in_folder(to, name);
}

static inline void write_png(const folder *to, int h, int w, int c)
{
    for (int is_test = 0; is_test < 2; is_test++) {
        make_folder(in_folder(to, is_test ? "test" : "train").s);
        for (int i = 0; i < images(is_test); i++) {
            file_name path = png_name(to, is_test, i), parent = path;
            png_image image = {.version = PNG_IMAGE_VERSION,
                               .width = (unsigned)w,
                               .height = (unsigned)h,
                               .format = c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
            *strrchr(parent.s, '/') = '\0';
            if (i % each(is_test) == 0)
                make_folder(parent.s);
            cr_assert(png_image_write_to_file(&image, path.s, 0, pixels_of(is_test, i, h * w * c),
                                              0, NULL));
        }
    }
}

/* Reads the probabilities of the classes in a line of predict --json --top 10. Returns the next
 * line. */
static inline const char *read_probabilities(const char *line, double probability[CLASSES])
{
    const json_t *top = json_object_get(json_first(line, JSON_DISABLE_EOF_CHECK), "top");
    cr_assert_eq(json_array_size(top), CLASSES, "%s", line);
    for (size_t i = 0; i < CLASSES; i++) {
        const json_t *one = json_array_get(top, i);
        const char *name = word_in(one, "class");
        int class = 0;
        while (class < CLASSES && strcmp(names[class], name) != 0)
            class ++;
        probability[class < CLASSES ? class : atoi(name)] = number_in(one, "probability");
    }
    return strchr(line, '\n') + 1;
}

#endif
