/* test_augment.c - shifted training images against a copy made pixel by pixel; name likeness. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/train/augment.h"
#include "cli/command.h"

enum { H = 4, W = 3, C = 2, ELEMS = H * W * C, N = 400 };

static const float background = -7;

/* Is y the image x moved by (dy, dx)? */
static int is_moved(const float *x, const float *y, int dy, int dx)
{
    for (int h = 0; h < H; h++)
        for (int w = 0; w < W; w++)
            for (int c = 0; c < C; c++) {
                int inside = h - dy >= 0 && h - dy < H && w - dx >= 0 && w - dx < W;
                float want = inside ? x[((h - dy) * W + w - dx) * C + c] : background;
                if (y[(h * W + w) * C + c] != want)
                    return 0;
            }
    return 1;
}

static void check_shifts(int max, uint64_t seed)
{
    static float x[N * ELEMS], y[N * ELEMS], again[ELEMS];
    int often[81] = {0}, side = 2 * max + 1;

    for (int i = 0; i < N * ELEMS; i++)
        x[i] = y[i] = (float)(i % ELEMS + 1);
    shift_images(y, (adj_shape){4, {N, H, W, C}}, max, background, seed, 1000);
    for (int i = 0; i < N; i++) {
        int found = -1;
        for (int k = 0; k < side * side && found < 0; k++)
            if (is_moved(x, y + i * ELEMS, k / side - max, k % side - max))
                found = k;
        cr_assert_geq(found, 0, "image %d is not moved by at most %d", i, max);
        often[found]++;
    }
    for (int k = 0; k < side * side && max < W; k++)
        cr_expect(often[k] > N / side / side / 3, "offset %d: %d times", k, often[k]);
    memcpy(again, x, sizeof again); /* image 5 of that batch, alone */
    shift_images(again, (adj_shape){4, {1, H, W, C}}, max, background, seed, 1005);
    cr_expect_eq(memcmp(again, y + 5 * ELEMS, sizeof again), 0);
}

Test(augment, shifts)
{
    check_shifts(0, 1);
    check_shifts(1, 1);
    check_shifts(1, 2);
    check_shifts(2, 1);
    check_shifts(4, 1); /* farther than the image is wide */
}

Test(nearest, names)
{
    static const char *const names[] = {"train", "eval", "models"};
    static const struct {
        const char *name, *nearest;
    } cases[] = {{"train", "train"},   {"trian", "train"}, {"rain", "train"},   {"evil", "eval"},
                 {"model", "models"},  {"", NULL},         {"xyzzy", NULL},     {"t", NULL},
                 {"mdoels", "models"}, {"ev", "eval"},     {"--mod", "models"}, {"vela", NULL},
                 {"triaan", "train"},  {"tarni", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = nearest_name(cases[i].name, names, 3, sizeof names[0]);
        cr_expect(got == cases[i].nearest || (got != NULL && cases[i].nearest != NULL &&
                                              strcmp(got, cases[i].nearest) == 0),
                  "%s: %s", cases[i].name, got != NULL ? got : "none");
    }
    char endless[10001];
    memset(endless, 'x', 10000);
    endless[10000] = '\0';
    cr_expect_null(nearest_name(endless, names, 3, sizeof names[0]));
}
