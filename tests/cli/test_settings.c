/* test_settings.c - what train does with: the model's recipe where the command line is silent, what
 * it says otherwise, and a learning rate that is looked for. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>

#include "adjoint_nn.h"
#include "cli/child.h"
#include "cli/small_data.h"

enum { WORDS = 40 };

/* Trains on f with what more says besides, and returns the log; out (NULL: none) gets the weights.
 */
static json_t *train(const folder *f, const char *const more[], const char *out)
{
    static finished r;
    char line[1 << 16];
    const file_name log = in_folder(f, "log");
    const char *words[WORDS] = {"train", "--data", f->path, "--threads", "1", "--log", log.s};
    int n = 7;

    remove(log.s);
    if (out != NULL) {
        words[n++] = "--out";
        words[n++] = out;
    }
    for (int i = 0; more[i] != NULL; i++)
        words[n++] = more[i];
    run_tool(words, &r);
    cr_assert_eq(r.status, 0, "%s", r.err);

    json_t *lines = json_array();
    FILE *file = fopen(log.s, "r");
    cr_assert_not_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        json_array_append_new(lines, json_loads(line, 0, NULL));
    fclose(file);
    return lines;
}

static const json_t *entry(const json_t *log, size_t i, const char *key)
{
    const json_t *value = json_object_get(json_array_get(log, i), key);
    cr_assert_not_null(value, "line %zu has no %s", i, key);
    return value;
}

static double number(const json_t *log, size_t i, const char *key)
{
    return json_number_value(entry(log, i, key));
}

static const char *word(const json_t *log, size_t i, const char *key)
{
    return json_string_value(entry(log, i, key));
}

Test(settings, as_the_recipe_says)
{
    static const char *const models[] = {"lenet5", "ds_cnn", "resnet8"};
    folder f = small_data();

    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const adj_recipe r = adj_recipe_for(adj_model_find(models[i], NULL), 1);
        json_t *log =
            train(&f, (const char *[]){"--model", models[i], "--epochs", "1", NULL}, NULL);
        cr_expect_str_eq(word(log, 0, "optimizer"), adj_optimiser_name(&r.optimiser));
        cr_expect_str_eq(word(log, 0, "schedule"), adj_schedule_name_at((int)r.schedule));
        cr_expect_eq(number(log, 0, "lr"), r.lr);
        cr_expect_eq(number(log, 0, "warmup"), r.warmup);
        cr_expect_eq(number(log, 0, "weight_decay"), r.optimiser.weight_decay);
        cr_expect_eq(number(log, 0, "clip"), r.optimiser.clip_norm);
        cr_expect_eq(number(log, 0, "smoothing"), r.smoothing);
        cr_expect_eq(number(log, 0, "batch"), (double)r.batch);
        cr_expect_eq(number(log, 0, "shift"), (double)r.shift);
        json_decref(log);
    }
    folder_remove(&f);
}

#define SMALL "--model", "lenet5", "--epochs", "2", "--batch", "32"

Test(settings, as_the_command_line_says)
{
    folder f = small_data();
    json_t *log =
        train(&f,
              (const char *[]){SMALL, "--optimizer", "adam", "--lr", "0.002", "--schedule",
                               "constant", "--warmup", "1.5", "--weight-decay", "0.125", "--clip",
                               "3", "--smoothing", "0.25", "--shift", "3", NULL},
              NULL);
    cr_expect_str_eq(word(log, 0, "optimizer"), "adam");
    cr_expect_str_eq(word(log, 0, "schedule"), "constant");
    cr_expect_eq(number(log, 0, "lr"), 0.002);
    cr_expect_eq(number(log, 0, "warmup"), 1.5);
    cr_expect_eq(number(log, 0, "weight_decay"), 0.125);
    cr_expect_eq(number(log, 0, "clip"), 3);
    cr_expect_eq(number(log, 0, "smoothing"), 0.25);
    cr_expect_eq(number(log, 0, "batch"), 32);
    cr_expect_eq(number(log, 0, "shift"), 3);
    /* 3 steps an epoch, 4 of warm-up: the third has three quarters of the rate */
    cr_expect_float_eq(number(log, 1, "lr"), 0.0015, 1e-15);
    cr_expect_float_eq(number(log, 2, "lr"), 0.002, 1e-15);
    json_decref(log);

    /* another optimizer than the recipe's: its usual rate and decay */
    log = train(&f, (const char *[]){SMALL, "--optimizer", "adamw", NULL}, NULL);
    cr_expect_eq(number(log, 0, "lr"), 0.001);
    cr_expect_eq(number(log, 0, "weight_decay"), 0.01);
    json_decref(log);
    folder_remove(&f);
}

static int same_file(const char *a, const char *b)
{
    char command[900];
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", a, b);
    return system(command) == 0;
}

#define PLAIN                                                                                      \
    SMALL, "--optimizer", "momentum", "--lr", "0.01", "--warmup", "0", "--weight-decay", "0",      \
        "--clip", "0", "--smoothing", "0", "--shift", "0", "--schedule", "constant"

/* Each of them changes what is learned. Said twice, the last counts. */
Test(settings, all_have_an_effect)
{
    static const char *const changes[][2] = {{"--warmup", "1"},          {"--weight-decay", "0.1"},
                                             {"--clip", "0.01"},         {"--smoothing", "0.5"},
                                             {"--shift", "1"},           {"--schedule", "cosine"},
                                             {"--optimizer", "nesterov"}};
    folder f = small_data();
    const file_name plain = in_folder(&f, "plain.safetensors"),
                    other = in_folder(&f, "other.safetensors");

    json_decref(train(&f, (const char *[]){PLAIN, NULL}, plain.s));
    json_decref(train(&f, (const char *[]){PLAIN, NULL}, other.s));
    cr_assert(same_file(plain.s, other.s));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        json_decref(
            train(&f, (const char *[]){PLAIN, changes[i][0], changes[i][1], NULL}, other.s));
        cr_expect_not(same_file(plain.s, other.s), "%s", changes[i][0]);
    }
    folder_remove(&f);
}

/* The run is the one that is given the rate which was found: the test leaves nothing behind. */
Test(settings, rate_from_a_range_test)
{
    char rate[40];
    folder f = small_data();
    const file_name found = in_folder(&f, "found.safetensors"),
                    given = in_folder(&f, "given.safetensors");

    json_t *log = train(&f, (const char *[]){SMALL, "--lr", "auto", NULL}, found.s);
    cr_expect_str_eq(word(log, 1, "event"), "range_test");
    double lr = number(log, 0, "lr");
    cr_expect_eq(number(log, 1, "lr"), lr);
    cr_expect(lr > 1e-5 && lr < 1, "%g", lr);
    const json_t *rates = entry(log, 1, "rates");
    size_t n = json_array_size(rates);
    cr_assert(n > 10 && n <= ADJ_RANGE_STEPS);
    cr_expect_eq(json_array_size(entry(log, 1, "losses")), n);
    cr_expect_eq(json_array_size(entry(log, 1, "smooth")), n);
    cr_expect_float_eq(json_number_value(json_array_get(rates, 0)), 1e-6, 1e-18);

    snprintf(rate, sizeof rate, "%.17g", lr);
    json_decref(log);
    json_decref(train(&f, (const char *[]){SMALL, "--lr", rate, NULL}, given.s));
    cr_expect(same_file(found.s, given.s));
    folder_remove(&f);
}

static const struct {
    int status;
    const char *err, *arguments[6];
} refused[] = {
    {3, "--lr: not a number (got \"automatic\")", {"train", "--lr", "automatic"}},
    {3,
     "--lr auto: the checkpoint has the rate",
     {"train", "--resume", "--checkpoint", "x", "--lr=auto"}},
    {3,
     "--schedule: got \"cosin\", expected constant, step, exponential or cosine",
     {"train", "--schedule", "cosin"}},
    {3, "--warmup: out of range (got -1,", {"train", "--warmup", "-1"}},
    {3, "--weight-decay: out of range (got 2,", {"train", "--weight-decay", "2"}},
    {3, "--clip: not a number", {"train", "--clip", "x"}},
    {3, "--smoothing: out of range (got 1,", {"train", "--smoothing", "1"}},
    {3, "unknown model lenett", {"train", "--lr", "auto", "--model", "lenett"}},
};

Test(settings, refused)
{
    static finished r;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        run_tool(refused[i].arguments, &r);
        cr_expect_eq(r.status, refused[i].status, "case %zu: %d", i, r.status);
        cr_expect_not_null(strstr(r.err, refused[i].err), "case %zu: %s", i, r.err);
    }
}
