/* test_augment.c - augmented images: literal draws from a few lines of Python (SplitMix64, Fisher
 * and Yates, Marsaglia and Tsang), and what is done with them pixel by pixel; jitter beside
 * torchvision. */
#include <math.h>

#include "loading.h"
#include "tests/io/scoped.h"

enum { N = 32, H = 6, W = 9, C = 3, ELEMS = H * W * C };

static const float zeros[4], ones[4] = {1, 1, 1, 1};

/* The images of one epoch, malloc'ed, in pixel units. */
static float *epoch_of(const adj_dataset *d, const adj_loader_opts *given, int64_t epoch)
{
    adj_loader_opts o = *given;
    int64_t elems = d->size.h * d->size.w * d->size.c, done = 0;
    o.mean = zeros;
    o.deviation = ones;
    float *x = malloc((size_t)(d->n * elems) * sizeof *x);
    scoped(release_loader) adj_loader *l = new_loader(d, &o);

    cr_assert_not_null(x);
    seek(l, epoch, 0);
    for (int64_t s = 0; s < adj_loader_steps(l); s++) {
        adj_loader_batch b = next_batch(l);
        memcpy(x + done * elems, b.x, (size_t)(b.count * elems) * sizeof *x);
        done += b.count;
    }
    cr_assert_eq(done, d->n);
    return x;
}

static float pixel(const adj_dataset *d, int64_t k, int64_t h, int64_t w, int64_t c)
{
    return d->images[((k * d->size.h + h) * d->size.w + w) * d->size.c + c];
}

typedef struct {
    int h, w;
} offset;

/* A change of an image: moved down and to the right, or mirrored, and black in a square. */
typedef struct {
    offset by, center; /* shift; center of the square */
    int side, is_mirrored;
} change;

static void expect_changes(const adj_dataset *d, const adj_loader_opts *o, int64_t epoch, int n,
                           const change want[])
{
    scoped(release) float *x = epoch_of(d, o, epoch);
    for (int i = 0; i < n * ELEMS; i++) {
        const int k = i / ELEMS, h = i / (W * C) % H, w = i / C % W;
        const change *a = &want[k];
        const int from_h = h - a->by.h, from_w = a->is_mirrored ? W - 1 - w : w - a->by.w;
        const int below = h - (a->center.h - a->side / 2), right = w - (a->center.w - a->side / 2);
        const int is_cut = below >= 0 && below < a->side && right >= 0 && right < a->side;
        const int is_inside = from_h >= 0 && from_h < H && from_w >= 0 && from_w < W;
        cr_assert_eq(x[i], is_inside && !is_cut ? pixel(d, k, from_h, from_w, i % C) : 0,
                     "seed %d, epoch %d, image %d, row %d, column %d", (int)o->seed, (int)epoch, k,
                     h, w);
    }
}

Test(augment, none)
{
    static const change none[N];
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);
    expect_changes(d, &(adj_loader_opts){.batch = 5, .seed = 3}, 0, N, none);
}

/* 1: mirrored. Batches of 5 and of 32 have the same images. */
Test(augment, flip)
{
    static const struct {
        uint64_t seed;
        int64_t epoch, batch;
        const char *flipped;
    } cases[] = {{1, 0, 5, "10101100001100001011001010000000"},
                 {1, 0, 32, "10101100001100001011001010000000"},
                 {1, 1, 5, "10011000011110101010101111010001"},
                 {2, 0, 7, "11110000001011101100000010000001"}};
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        adj_loader_opts o = {
            .batch = cases[i].batch, .seed = cases[i].seed, .augment = {.flip = 1}};
        change want[N];
        for (int k = 0; k < N; k++)
            want[k] = (change){.is_mirrored = cases[i].flipped[k] == '1'};
        expect_changes(d, &o, cases[i].epoch, N, want);
    }
}

static void expect_shifts(const adj_dataset *d, int max, const offset by[], int n)
{
    change want[N];
    for (int k = 0; k < n; k++)
        want[k] = (change){.by = by[k]};
    expect_changes(d, &(adj_loader_opts){.batch = 8, .seed = 1, .augment = {.shift = max}}, 0, n,
                   want);
}

Test(augment, shift)
{
    static const offset by_1[] = {{1, 0},  {-1, 0}, {1, -1}, {0, 1}, {0, 1}, {-1, 1}, {0, 0},
                                  {-1, 0}, {1, 1},  {1, 0},  {0, 0}, {0, 1}, {1, 1},  {0, -1}};
    static const offset by_2[] = {{1, -2},  {1, 1}, {1, -1}, {-1, -2}, {1, 1},  {1, -1}, {-2, 2},
                                  {-2, -1}, {2, 2}, {2, 2},  {-2, 2},  {1, -1}, {-1, 1}, {-2, 1}};
    static const offset by_4[] = {{-2, 4}, {-1, 2}, {-3, 3}, {-4, 1}, {-1, 3}, {1, -2}, {0, -3},
                                  {4, 1},  {4, 2},  {-2, 2}, {3, 4},  {2, 0},  {4, 3},  {1, 0}};
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);

    expect_shifts(d, 1, by_1, 14);
    expect_shifts(d, 2, by_2, 14);
    expect_shifts(d, 4, by_4, 14);
}

/* Farther than the image is wide: what is left of it, and black. */
Test(augment, shift_out_of_the_image)
{
    enum { IMAGES = 400, SIDE = 2 * ADJ_MAX_SHIFT + 1 };
    scoped(release_dataset) adj_dataset *d = new_dataset(IMAGES, 4, 3, 2);
    adj_loader_opts o = {.batch = 8, .seed = 1, .augment = {.shift = ADJ_MAX_SHIFT}};
    scoped(release) float *x = epoch_of(d, &o, 0);

    for (int k = 0; k < IMAGES; k++) {
        int found = 0;
        for (int s = 0; s < SIDE * SIDE && !found; s++) {
            int dy = s / SIDE - ADJ_MAX_SHIFT, dx = s % SIDE - ADJ_MAX_SHIFT;
            found = 1;
            for (int i = 0; i < 4 * 3 * 2; i++) {
                int h = i / 6 - dy, w = i / 2 % 3 - dx;
                int inside = h >= 0 && h < 4 && w >= 0 && w < 3;
                found &= x[k * 24 + i] == (inside ? pixel(d, k, h, w, i % 2) : 0);
            }
        }
        cr_assert(found, "image %d", k);
    }
}

/* Black and mean are what they are after normalizing, each channel's own. */
Test(augment, black_and_mean)
{
    scoped(release_dataset) adj_dataset *d = new_dataset(200, 4, 5, C);
    float mean[C] = {10, 20, 30}, deviation[C] = {2, 4, 8};
    adj_loader_opts o = {
        .batch = 200, .augment = {.shift = 2, .cutout = 1}, .mean = mean, .deviation = deviation};
    scoped(release_loader) adj_loader *l = new_loader(d, &o);
    adj_loader_batch b = next_batch(l);
    int black = 0, cut = 0;

    for (int i = 0; i < 200 * 4 * 5; i++) {
        const float *p = b.x + (ptrdiff_t)i * C;
        black += p[0] == -5 && p[1] == -5 && p[2] == -3.75F;
        cut += p[0] == 0 && p[1] == 0 && p[2] == 0;
    }
    cr_expect_eq(cut, 200);
    cr_expect_gt(black, 200);
}

Test(augment, cutout)
{
    static const struct {
        int64_t epoch;
        int side;
        offset center[8];
    } cases[] = {{0, 1, {{2, 8}, {4, 6}, {2, 0}, {0, 4}, {1, 8}, {0, 0}, {0, 8}, {0, 1}}},
                 {0, 3, {{2, 8}, {4, 6}, {2, 0}, {0, 4}, {1, 8}, {0, 0}, {0, 8}, {0, 1}}},
                 {1, 4, {{1, 0}, {3, 1}, {0, 8}, {5, 3}, {2, 4}, {5, 8}, {5, 5}, {4, 2}}},
                 {1, 50, {{1, 0}, {3, 1}, {0, 8}, {5, 3}, {2, 4}, {5, 8}, {5, 5}, {4, 2}}}};
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        adj_loader_opts o = {.batch = 5, .seed = 3, .augment = {.cutout = cases[i].side}};
        change want[8];
        for (int k = 0; k < 8; k++)
            want[k] = (change){.center = cases[i].center[k], .side = cases[i].side};
        expect_changes(d, &o, cases[i].epoch, 8, want);
    }
}

/* torchvision 0.14.1's adjust_brightness, adjust_contrast and adjust_saturation of f64 tensors, one
 * after another, with the factors that Python draws. Its weights of gray sum to 0.9999. */
Test(augment, jitter)
{
    static const struct {
        int64_t epoch, image, c;
        double want[36];
    } cases[] = {
        {0, 0, 3, {7.17,   39.87,  76.52, 136.61, 173.26, 32.87,  57.12,  93.77, 130.43,
                   163.34, 22.94,  59.6,  111.34, 147.99, 184.65, 26.51,  63.17, 99.82,
                   135.17, 10.49,  31.43, 80.73,  117.39, 154.04, 6.14,   33.31, 69.96,
                   129.71, 166.36, 29.23, 50.12,  86.78,  123.43, 156.34, 15.95, 52.6}},
        {1, 1, 3, {92.28, 137.27, 182.27, 16.42,  61.41,  106.4, 142.72, 187.71, 15.39,
                   64.91, 109.9,  154.89, 0,      33.83,  78.83, 115.34, 160.33, 0,
                   37.54, 82.53,  127.52, 173.88, 1.55,   46.54, 86.03,  131.02, 176.01,
                   10.16, 55.16,  100.15, 136.47, 181.46, 9.13,  58.65,  103.64, 148.64}},
        {3, 2, 3, {167.93, 43.81,  76.22,  110.68, 143.08, 18.96,  48.76,  81.16, 113.57,
                   145.18, 21.06,  53.47,  89.05,  121.46, 153.87, 26.01,  58.41, 90.82,
                   128.23, 160.63, 36.51,  66.31,  98.71,  131.12, 162.73, 38.61, 71.02,
                   106.6,  139.01, 171.42, 43.56,  75.96,  108.37, 139.98, 15.86, 48.27}},
        {1,
         1,
         1,
         {101.33, 142.78, 184.23, 25.47, 66.92, 108.37, 149.82, 0, 32.51, 73.96, 115.41, 156.86}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t elems = 3 * 4 * cases[i].c;
        scoped(release_dataset) adj_dataset *d = new_dataset(3, 3, 4, cases[i].c);
        adj_loader_opts o = {.batch = 2, .seed = 7, .augment = {.jitter = 0.4}};
        scoped(release) float *x = epoch_of(d, &o, cases[i].epoch);
        for (int64_t k = 0; k < elems; k++)
            cr_expect_float_eq(x[cases[i].image * elems + k], cases[i].want[k], 0.05,
                               "case %zu, %lld: %g, torchvision %g", i, (long long)k,
                               (double)x[cases[i].image * elems + k], cases[i].want[k]);
    }
}

/* Alpha is no color, and nothing leaves 0 .. 255. */
Test(augment, jitter_of_alpha)
{
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, 4);
    scoped(release) float *x =
        epoch_of(d, &(adj_loader_opts){.batch = 5, .seed = 3, .augment = {.jitter = 2}}, 0);
    int changed = 0;
    for (int i = 0; i < N * H * W * 4; i++) {
        cr_assert(x[i] >= 0 && x[i] <= 255);
        if (i % 4 == 3)
            cr_assert_eq(x[i], d->images[i]);
        changed += x[i] != d->images[i];
    }
    cr_expect_gt(changed, N * H * W * 2);
}

/* ---- mixup ---- */

Test(augment, mixup)
{
    static const struct {
        double alpha, mix[6];
    } cases[] = {
        {0.2, {0.831583184, 0.731196680, 1.000000000, 0.999970699, 0.999999997, 0.558263299}},
        {1, {0.605442136, 0.655613377, 0.887491465, 0.949604886, 0.542557839, 0.755110525}},
        {4, {0.549840201, 0.573736471, 0.737995277, 0.761990331, 0.516719408, 0.608721593}}};
    enum { BATCH = 6, STEPS = 6 }; /* the last has two images, and four fillers */
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        adj_loader_opts o = {.batch = BATCH, .seed = 5, .shuffle = 1}, mixed = o;
        mixed.augment.mixup = cases[i].alpha;
        scoped(release_loader) adj_loader *plain = new_loader(d, &o), *l = new_loader(d, &mixed);
        seek(plain, 2, 0);
        seek(l, 2, 0);
        for (int s = 0; s < STEPS; s++) {
            adj_loader_batch a = next_batch(plain), b = next_batch(l);
            cr_expect_float_eq(b.mix, cases[i].mix[s], 1e-7, "%.9g", (double)b.mix);
            cr_assert(a.count == (s < 5 ? BATCH : 2) && b.count == a.count && a.mix == 1);
            for (int k = 0; k < BATCH; k++) {
                int64_t with = k < a.count ? a.count - 1 - k : k;
                cr_assert_eq(b.labels[k], a.labels[k]);
                cr_assert_eq(b.other_labels[k], a.labels[with]);
                cr_assert_eq(a.other_labels[k], a.labels[k]);
                for (int e = 0; e < ELEMS; e++)
                    cr_assert_float_eq(
                        b.x[k * ELEMS + e],
                        b.mix * a.x[k * ELEMS + e] + (1 - b.mix) * a.x[with * ELEMS + e], 1e-6);
            }
        }
    }
}

static double uniform_below(double x) { return x; }
static double arcsine_below(double x) { return 2 * asin(sqrt(x)) / 3.14159265358979; }
static double beta_2_below(double x) { return x * x * (3 - 2 * x); }
static double beta_3_below(double x) { return x * x * x * (10 - 15 * x + 6 * x * x); }

/* The shares are those of the larger of mix and 1 - mix: P(share < x) = F(x) - F(1 - x), with F of
 * Beta(1/2, 1/2), Beta(1, 1), Beta(2, 2) and Beta(3, 3) in closed form. */
Test(augment, mixup_is_beta)
{
    static const struct {
        double alpha, (*below)(double);
    } cases[] = {{0.5, arcsine_below}, {1, uniform_below}, {2, beta_2_below}, {3, beta_3_below}};
    enum { SHARES = 10000, BINS = 5 };
    scoped(release_dataset) adj_dataset *d = new_dataset(SHARES, 1, 1, 1);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        adj_loader_opts o = {.batch = 1, .seed = 1, .augment = {.mixup = cases[i].alpha}};
        scoped(release_loader) adj_loader *l = new_loader(d, &o);
        int often[BINS] = {0};
        for (int s = 0; s < SHARES; s++) {
            float mix = next_batch(l).mix;
            cr_assert(mix >= 0.5F && mix <= 1);
            for (int k = 0; k < BINS; k++)
                often[k] += (double)mix < 0.5 + 0.5 * (k + 1) / (BINS + 1);
        }
        for (int k = 0; k < BINS; k++) {
            double x = 0.5 + 0.5 * (k + 1) / (BINS + 1);
            double p = cases[i].below(x) - cases[i].below(1 - x);
            cr_expect_float_eq(often[k], SHARES * p, 4 * sqrt(SHARES * p * (1 - p)),
                               "alpha %g: %d of %d below %g, expected %.0f", cases[i].alpha,
                               often[k], SHARES, x, SHARES * p);
        }
    }
}
