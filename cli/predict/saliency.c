/* saliency.c - see predict.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/standard.h"
#include "cli/page/page.h"
#include "predict.h"

/* Draws the gradient [pixels, c] as gray values: black if it is 0 everywhere or not finite. */
static void draw(const float gradient[], int64_t pixels, int64_t c, uint8_t gray[])
{
    float largest = 0;
    for (int64_t i = 0; i < pixels * c; i++)
        largest = fmaxf(largest, fabsf(gradient[i]));
    for (int64_t i = 0; i < pixels; i++) {
        float most = 0;
        for (int64_t k = 0; k < c; k++)
            most = fmaxf(most, fabsf(gradient[i * c + k]));
        gray[i] = largest > 0 && isfinite(largest) ? (uint8_t)lrintf(255 * (most / largest)) : 0;
    }
}

static int write_bytes(FILE *f, const void *source)
{
    size_t n = 0;
    uint8_t *file = png_encode(source, &n);
    const int failed = file == NULL || fwrite(file, 1, n, f) != n;
    free(file);
    return failed;
}

int write_saliency(adj_predictor *p, const char *path, const float pixels[], int64_t class)
{
    const adj_model_card *card = adj_predictor_card(p);
    const int64_t h = card->options.size.h, w = card->options.size.w, c = card->options.size.c;
    float *gradient = allocate(h * w * c, sizeof *gradient);
    uint8_t *gray = allocate(h * w, 1);
    adj_error error = {0};
    int status = EXIT_OK;

    if (adj_predictor_gradient(p, class, pixels, gradient, &error) != ADJ_OK)
        status = complain(EXIT_FAILED, "--saliency: %s", error.message);
    if (status == EXIT_OK) {
        draw(gradient, h * w, c, gray);
        const picture picture = {.w = w, .h = h, .c = 1, .pixels = gray};
        status = write_output(&(output_file){"--saliency", path, OUTPUT_REPLACED}, write_bytes,
                              &picture);
    }
    if (status == EXIT_OK)
        complain(EXIT_OK, "note: saliency written to %s", path);
    free(gray);
    free(gradient);
    return status == EXIT_OK ? CONTINUE : status;
}
