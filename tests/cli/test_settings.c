/* test_settings.c - settings of train: the model's recipe, options that override it, and the
 * learning-rate range test. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "adjoint_nn.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"
#include "ops/nn/model_list.h"
#include "ops/nn/names.h"
#include "ops/nn/range_test.h"
#include "tests/plan.h"

TestSuite(settings, .init = enter_small_data, .fini = leave);
TestSuite(train_f16, .init = enter_small_data, .fini = leave);

/* A number of the log's first line. */
typedef struct {
    const char *key;
    double value;
} logged;

static void expect_logged(const json_t *log, const char *optimizer, const char *schedule, size_t n,
                          const logged numbers[])
{
    cr_expect_str_eq(log_word(log, 0, "optimizer"), optimizer);
    cr_expect_str_eq(log_word(log, 0, "schedule"), schedule);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(log_number(log, 0, numbers[i].key), numbers[i].value, "%s", numbers[i].key);
}

Test(settings, as_the_recipe_says)
{
    static const char *const models[] = {"lenet5", "ds_cnn", "resnet8"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const adj_recipe recipe = adj_recipe_for(adj_model_find(models[i], NULL), 1);
        const logged numbers[] = {{"lr", recipe.lr},
                                  {"warmup", recipe.warmup},
                                  {"weight_decay", recipe.optimizer.weight_decay},
                                  {"clip", recipe.optimizer.clip_norm},
                                  {"smoothing", recipe.smoothing},
                                  {"batch", (double)recipe.batch},
                                  {"shift", (double)recipe.shift},
                                  {"cutout", 0},
                                  {"jitter", 0},
                                  {"mixup", 0},
                                  {"patience", 0}};
        json_t *log = train_log(0, "--model %s --epochs 1", models[i]);
        expect_logged(log, adj_optimizer_name(&recipe.optimizer),
                      adj_schedule_name_at((int)recipe.schedule), sizeof numbers / sizeof *numbers,
                      numbers);
        cr_expect(json_is_false(log_entry(log, 0, "flip")));
        cr_expect_str_eq(log_word(log, 0, "class_weights"), "none");
    }
}

#define SMALL "--model lenet5 --epochs 2 --batch 32 "

Test(settings, as_the_command_line_says)
{
    static const logged numbers[] = {{"lr", 0.002},       {"warmup", 1.5}, {"weight_decay", 0.125},
                                     {"clip", 3},         {"batch", 32},   {"shift", 3},
                                     {"smoothing", 0.25}, {"cutout", 5},   {"jitter", 0.5},
                                     {"mixup", 0.75},     {"patience", 9}};
    json_t *log = train_log(
        0, SMALL "--optimizer adam,weight-decay=0.125,clip=3 --lr 0.002 --schedule "
                 "warmup=1.5,constant --smoothing 0.25 --augment shift=3,flip,cutout=5 --augment "
                 "jitter=0.5,mixup=0.75 --class-weights 1,1,2,1,1,0.5,1,1,1,3 --epochs patience=9");
    expect_logged(log, "adam", "constant", sizeof numbers / sizeof *numbers, numbers);
    cr_expect(json_is_true(log_entry(log, 0, "flip")));
    cr_expect_str_eq(log_word(log, 0, "class_weights"), "1,1,2,1,1,0.5,1,1,1,3");
    /* 3 steps an epoch, 4 of warm-up: the third has three quarters of the rate */
    cr_expect_float_eq(log_number(log, 1, "lr"), 0.0015, 1e-15);
    cr_expect_float_eq(log_number(log, 2, "lr"), 0.002, 1e-15);

    /* another optimizer than the recipe's: its default rate and decay */
    log = train_log(0, SMALL "--optimizer adamw");
    cr_expect_eq(log_number(log, 0, "lr"), 0.001);
    cr_expect_eq(log_number(log, 0, "weight_decay"), 0.01);
}

/* Trains with the options and writes the weights to a file. */
static void train(const char *out, const char *options)
{
    tool(0, "train --data . --threads 1 %s --out %s", options, out);
}

#define PLAIN                                                                                      \
    SMALL "--optimizer momentum,weight-decay=0,clip=0 --lr 0.01 --smoothing 0 --augment shift=0 "  \
          "--schedule constant,warmup=0 "

/* Each option changes the weights. The last of repeated items counts. */
Test(settings, all_have_an_effect)
{
    static const char *const changes[] = {
        PLAIN "--schedule warmup=1",   PLAIN "--optimizer weight-decay=0.1",
        PLAIN "--optimizer clip=0.01", PLAIN "--smoothing 0.5",
        PLAIN "--augment shift=1",     PLAIN "--schedule cosine",
        PLAIN "--optimizer nesterov",  PLAIN "--augment flip",
        PLAIN "--augment cutout=6",    PLAIN "--augment jitter=0.5",
        PLAIN "--augment mixup=0.5",   PLAIN "--class-weights 1,1,1,9,1,1,1,1,1,1"};
    train("plain.safetensors", PLAIN);
    train("other.safetensors", PLAIN);
    cr_assert(same_file("plain.safetensors", "other.safetensors"));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        train("other.safetensors", changes[i]);
        cr_expect_not(same_file("plain.safetensors", "other.safetensors"), "%s", changes[i]);
    }
}

/* 60, 20 and 10 images: 90 / (3 * 60), 90 / (3 * 20), 90 / (3 * 10). */
Test(settings, balanced_class_weights)
{
    put_labels("train-labels-idx1-ubyte", 60, 20, 10);
    put_labels("t10k-labels-idx1-ubyte", 23, 10, 10);
    train("balanced.safetensors", SMALL "--class-weights balanced");
    train("given.safetensors", SMALL "--class-weights 0.5,1.5,3");
    cr_expect(same_file("balanced.safetensors", "given.safetensors"));
    train("given.safetensors", SMALL);
    cr_expect_not(same_file("balanced.safetensors", "given.safetensors"));
}

/* At this rate nothing is learned: the first epoch stays the best. */
Test(settings, patience)
{
    static const char again[] = "--resume --checkpoint checkpoint";
    json_t *log =
        train_log(0, "--model lenet5 --batch 32 --optimizer sgd,weight-decay=0 --lr 1e-12 "
                     "--schedule constant --epochs 7,patience=3 --checkpoint checkpoint");
    cr_expect_eq(log_count(log, "epoch"), 4);
    cr_expect_eq(log_event_number(log, "end", 0, "best_epoch"), 1);
    expect_text(ran.out, "stopped early after epoch 4 of 7 (patience 3): no better test accuracy");

    /* it has come to its end; with more patience it goes on */
    log = train_log(0, "%s", again);
    cr_expect_eq(log_count(log, "epoch"), 0);
    cr_expect_eq(log_number(log, 0, "patience"), 3);
    expect_text(ran.out, "stopped early after epoch 4 of 7 (patience 3)");
    log = train_log(0, "%s --epochs patience=5", again);
    cr_expect_eq(log_count(log, "epoch"), 2);
    cr_expect_eq(log_event_number(log, "epoch", 1, "epoch"), 6);
}

/* The run is the one that is given the rate which was found: the test leaves nothing behind. */
Test(settings, rate_from_a_range_test)
{
    json_t *log = train_log(0, SMALL "--lr auto --out found.safetensors");
    expect_text(ran.out, "range test: up to 300 steps");
    cr_expect_str_eq(log_word(log, 1, "event"), "range_test");
    double lr = log_number(log, 0, "lr");
    cr_expect_eq(log_number(log, 1, "lr"), lr);
    cr_expect(lr > 1e-5 && lr < 1, "%g", lr);
    const json_t *rates = log_entry(log, 1, "rates");
    size_t n = json_array_size(rates);
    cr_assert(n > 10 && n <= ADJ_RANGE_STEPS);
    cr_expect_eq(json_array_size(log_entry(log, 1, "losses")), n);
    cr_expect_eq(json_array_size(log_entry(log, 1, "smooth")), n);
    cr_expect_float_eq(json_number_value(json_array_get(rates, 0)), 1e-6, 1e-18);
    tool(0, "train --data . --threads 1 " SMALL "--lr %.17g --out given.safetensors", lr);
    cr_expect(same_file("found.safetensors", "given.safetensors"));
}

Test(settings, refused) { expect_rows("refused"); }

/* PyTorch's 65536, which stays for 2,000 steps. */
Test(train_f16, scale_is_told)
{
    json_t *log = train_log(0, SMALL "--precision f16");
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(log_event_number(log, "epoch", i, "loss_scale"), 65536);
        cr_expect_eq(log_event_number(log, "epoch", i, "skipped_steps"), 0);
    }
    expect_text(ran.out, "loss scale 65536, 0 skipped\n");
    log = train_log(0, SMALL);
    cr_expect_null(strstr(ran.out, "loss scale"), "%s", ran.out);
    for (size_t i = 0; i < json_array_size(log); i++)
        cr_expect_null(json_object_get(json_array_get(log, i), "loss_scale"));
}
