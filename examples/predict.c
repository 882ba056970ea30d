/* predict.c - loads a weights file of a built-in model and classifies an image.
 *
 *   cc predict.c $(pkg-config --cflags --libs adjoint_io) && ./a.out WEIGHTS IMAGE */
#include <stdlib.h>

#include "adjoint_fit.h"

static int failed(const char *why) { return fprintf(stderr, "predict: %s\n", why), 1; }

int main(int argc, char **argv)
{
    adj_predictor *p;
    adj_error error;

    if (argc != 3)
        return failed("expected WEIGHTS IMAGE");
    if (adj_predictor_load(argv[1], NULL, NULL, &p, &error))
        return failed(error.message);
    const adj_model_card *card = adj_predictor_card(p);
    const adj_image_size size = card->options.size;
    const adj_image_opts options = {.size = size};
    float *pixels = calloc((size_t)(size.h * size.w * size.c), sizeof *pixels);
    float *probability = calloc((size_t)card->options.classes, sizeof *probability);
    int status = 0;

    if (pixels == NULL || probability == NULL)
        status = failed("out of memory");
    else if (adj_image_read(argv[2], &options, pixels, NULL, &error) ||
             adj_predict_floats(p, 1, pixels, probability, &error))
        status = failed(error.message);
    for (int k = 0; k < card->options.classes && status == 0; k++)
        if (card->class_names != NULL)
            printf("%s %.4f\n", card->class_names[k], (double)probability[k]);
        else
            printf("%d %.4f\n", k, (double)probability[k]);
    free(probability);
    free(pixels);
    adj_predictor_free(p);
    return status;
}
