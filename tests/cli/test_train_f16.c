/* test_train_f16.c - adjoint train --precision f16: which loss scale it takes, and what is told of
 * it. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/child.h"
#include "cli/small_data.h"
#include "cli/train_log.h"

/* Three steps an epoch. */
#define SMALL "--model", "lenet5", "--epochs", "2", "--batch", "32"
#define F16 SMALL, "--precision", "f16"

static void expect_scales(const json_t *log, double first, double second)
{
    cr_expect_eq(log_event_number(log, "epoch", 0, "loss_scale"), first);
    cr_expect_eq(log_event_number(log, "epoch", 1, "loss_scale"), second);
    for (int i = 0; i < 2; i++)
        cr_expect_eq(log_event_number(log, "epoch", i, "skipped_steps"), 0);
}

/* PyTorch's 65536 stays for 2,000 steps; doubled after every second step: once in the first epoch,
 * twice in the second. */
Test(train_f16, scale_is_told)
{
    folder f = small_data();
    static finished r;
    json_t *log = train_with(&f, (const char *[]){F16, NULL}, &r);
    cr_assert_eq(r.status, 0, "%s", r.err);
    expect_scales(log, 65536, 65536);
    cr_expect_not_null(strstr(r.out, "loss scale 65536, 0 skipped\n"), "%s", r.out);
    json_decref(log);
    log = train_to(&f, (const char *[]){F16, "--loss-scale-interval", "2", NULL}, NULL);
    expect_scales(log, 131072, 524288);
    json_decref(log);
    log = train_to(&f, (const char *[]){F16, "--loss-scale", "256", NULL}, NULL);
    expect_scales(log, 256, 256);
    json_decref(log);

    log = train_with(&f, (const char *[]){SMALL, NULL}, &r);
    cr_expect_null(strstr(r.out, "loss scale"), "%s", r.out);
    for (size_t i = 0; i < json_array_size(log); i++)
        cr_expect_null(json_object_get(json_array_get(log, i), "loss_scale"));
    json_decref(log);
    folder_remove(&f);
}

/* A prolonged run has the checkpoint's interval, and counts on from there. */
Test(train_f16, scale_goes_on_from_a_checkpoint)
{
    folder f = small_data();
    const file_name file = in_folder(&f, "checkpoint");
    json_t *log = train_to(&f,
                           (const char *[]){"--model", "lenet5", "--batch", "32", "--precision",
                                            "f16", "--loss-scale-interval", "2", "--epochs", "1",
                                            "--checkpoint", file.s, NULL},
                           NULL);
    cr_expect_eq(log_event_number(log, "epoch", 0, "loss_scale"), 131072);
    json_decref(log);
    log = train_to(&f, (const char *[]){"--resume", "--checkpoint", file.s, "--epochs", "2", NULL},
                   NULL);
    cr_expect_eq(log_event_number(log, "epoch", 0, "loss_scale"), 524288);
    json_decref(log);

    static finished r;
    json_decref(train_with(&f,
                           (const char *[]){"--resume", "--checkpoint", file.s, "--epochs", "3",
                                            "--loss-scale-interval", "3", NULL},
                           &r));
    cr_expect_eq(r.status, 1);
    cr_expect_not_null(strstr(r.err, "--loss-scale-interval is another there (got 3, expected 2"),
                       "%s", r.err);
    folder_remove(&f);
}

Test(train_f16, refused)
{
    static const struct {
        const char *err, *words[8];
    } cases[] = {
        {"--loss-scale: --precision f16 is missing", {"train", "--loss-scale", "8"}},
        {"--loss-scale: --precision f16 is missing",
         {"train", "--loss-scale", "0", "--precision", "bf16"}},
        {"--loss-scale-interval: --precision f16 is missing",
         {"train", "--loss-scale-interval", "8"}},
        {"--loss-scale-interval: a fixed --loss-scale never grows",
         {"train", "--precision", "f16", "--loss-scale", "8", "--loss-scale-interval", "8"}},
        {"--loss-scale: out of range (got -1,", {"train", "--loss-scale", "-1"}},
        {"--loss-scale: out of range (got 1e10,", {"train", "--loss-scale", "1e10"}},
        {"--loss-scale-interval: out of range (got 0,", {"train", "--loss-scale-interval", "0"}},
    };
    static finished r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_tool(cases[i].words, &r);
        cr_expect_eq(r.status, 3, "case %zu: %d", i, r.status);
        cr_expect_not_null(strstr(r.err, cases[i].err), "case %zu: %s", i, r.err);
    }
}
