/* color_jitter.c - brightness, contrast and saturation of an image in pixel units.
 *
 * torchvision's formulas: the image is mixed with black, with its mean gray and with its own gray,
 * f * x + (1 - f) * other, and what leaves 0 .. 255 is cut off after each. Gray is the luma of
 * ITU-R BT.601. */
#include <math.h>

#include "augment.h"

enum { COLORS = 3 };

static double gray(const float *pixel, int64_t colors)
{
    return colors == COLORS
               ? 0.299 * (double)pixel[0] + 0.587 * (double)pixel[1] + 0.114 * (double)pixel[2]
               : (double)pixel[0];
}

/* Blends a pixel's colors with the value other: factor * color + (1 - factor) * other. */
static void mix(float *pixel, int64_t colors, double factor, double other)
{
    for (int64_t c = 0; c < colors; c++) {
        double v = factor * (double)pixel[c] + (1 - factor) * other;
        pixel[c] = v < 0 ? 0 : v > 255 ? 255 : (float)v;
    }
}

static double factor_of(double jitter, uint64_t bits)
{
    double low = fmax(0, 1 - jitter);
    return low + (1 + jitter - low) * io_unit(bits);
}

void io_color_jitter(double jitter, uint64_t key, adj_image_size size, float *x)
{
    int64_t pixels = size.h * size.w, colors = size.c >= COLORS ? COLORS : 1;
    double brightness = factor_of(jitter, io_mix(key + DRAW_BRIGHTNESS));
    double contrast = factor_of(jitter, io_mix(key + DRAW_CONTRAST));
    double saturation = factor_of(jitter, io_mix(key + DRAW_SATURATION)), sum = 0;

    for (int64_t i = 0; i < pixels; i++) {
        float *pixel = x + i * size.c;
        mix(pixel, colors, brightness, 0);
        sum += gray(pixel, colors);
    }
    for (int64_t i = 0; i < pixels; i++) {
        float *pixel = x + i * size.c;
        mix(pixel, colors, contrast, sum / (double)pixels);
        if (colors == COLORS)
            mix(pixel, colors, saturation, gray(pixel, colors));
    }
}
