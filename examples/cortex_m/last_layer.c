/* last_layer.c - trains the last layer of an emitted net on the device, one image a step: lines in
 * three directions, which a net of digits has never seen, with digit 0, 1 and 2 as their labels.
 *
 *   adjoint train --model lenet5 --epochs 1 --out lenet5.safetensors
 *   adjoint emit --weights lenet5.safetensors --train --head-only --out net.c
 *
 * It runs on any machine: cc -I. last_layer.c -lm. docs/guide/deploy.md runs it on a Cortex-M. */
#include <stdio.h>

#include "net.c"

enum { SIDE = 32, LINES = 3, STEPS = 300, TESTS = 60 };

/* Draws a line, two pixels wide, at a random place; returns its direction. */
static int32_t draw(uint8_t pixels[SIDE * SIDE], uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    const int direction = (int)(*random >> 16) % LINES;
    const int at = SIDE / 4 + (int)(*random >> 24) % (SIDE / 2);
    for (int row = 0; row < SIDE; row++)
        for (int col = 0; col < SIDE; col++) {
            const int across[LINES] = {row - at, col - at, row - col + at - SIDE / 2};
            const int is_ink = across[direction] == 0 || across[direction] == 1;
            pixels[row * SIDE + col] = is_ink ? 255 : 0;
        }
    return direction;
}

/* Returns how many of TESTS new lines the net tells. */
static int count_right(void)
{
    static uint8_t pixels[SIDE * SIDE];
    static float input[NET_INPUT_SIZE], output[NET_OUTPUT_SIZE];
    uint32_t random = 7;
    int right = 0;
    for (int i = 0; i < TESTS; i++) {
        const int32_t label = draw(pixels, &random);
        int best = 0;
        net_normalize(pixels, input);
        net_predict(input, output);
        for (int k = 1; k < NET_OUTPUT_SIZE; k++)
            best = output[k] > output[best] ? k : best;
        right += best == label;
    }
    return right;
}

int main(void)
{
    static uint8_t pixels[SIDE * SIDE];
    static float input[NET_INPUT_SIZE];
    uint32_t random = 1;
    float loss = 0;

    printf("before: %d of %d\n", count_right(), TESTS);
    for (int i = 0; i < STEPS; i++) {
        const int32_t label = draw(pixels, &random);
        net_normalize(pixels, input);
        if (net_train_step(input, &label, 0.01f, &loss) != 0)
            return 1;
    }
    printf("after %d steps: %d of %d\n", STEPS, count_right(), TESTS);
    return 0;
}
