/* colour_jitter.c - brightness, contrast and saturation of an image in pixel units.
 *
 * torchvision's formulas: the image is mixed with black, with its mean gray and with its own gray,
 * f * x + (1 - f) * other, and what leaves 0 .. 255 is cut off after each. Gray is the luma of
 * ITU-R BT.601. */
#include <math.h>

#include "augment.h"

enum { COLOURS = 3 };

static double grey(const float *pixel, int64_t colours)
{
    return colours == COLOURS
               ? 0.299 * (double)pixel[0] + 0.587 * (double)pixel[1] + 0.114 * (double)pixel[2]
               : (double)pixel[0];
}

/* Blends a pixel's colors with the value other: factor * color + (1 - factor) * other. */
static void mix(float *pixel, int64_t colours, double factor, double other)
{
    for (int64_t c = 0; c < colours; c++) {
        double v = factor * (double)pixel[c] + (1 - factor) * other;
        pixel[c] = v < 0 ? 0 : v > 255 ? 255 : (float)v;
    }
}

static double factor_of(double jitter, uint64_t bits)
{
    double low = fmax(0, 1 - jitter);
    return low + (1 + jitter - low) * io_unit(bits);
}

void io_colour_jitter(double jitter, uint64_t key, image_size size, float *x)
{
    int64_t pixels = size.h * size.w, colours = size.c >= COLOURS ? COLOURS : 1;
    double brightness = factor_of(jitter, io_mix(key + DRAW_BRIGHTNESS));
    double contrast = factor_of(jitter, io_mix(key + DRAW_CONTRAST));
    double saturation = factor_of(jitter, io_mix(key + DRAW_SATURATION)), sum = 0;

    for (int64_t i = 0; i < pixels; i++) {
        float *pixel = x + i * size.c;
        mix(pixel, colours, brightness, 0);
        sum += grey(pixel, colours);
    }
    for (int64_t i = 0; i < pixels; i++) {
        float *pixel = x + i * size.c;
        mix(pixel, colours, contrast, sum / (double)pixels);
        if (colours == COLOURS)
            mix(pixel, colours, saturation, grey(pixel, colours));
    }
}
