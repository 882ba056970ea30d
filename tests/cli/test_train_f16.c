/* test_train_f16.c - adjoint train --precision f16: the loss scale and its output. */
#include <criterion/criterion.h>
#include <string.h>

#include "cli/child.h"
#include "cli/small_data.h"
#include "cli/train_log.h"

/* Three steps an epoch. */
#define SMALL "--model", "lenet5", "--epochs", "2", "--batch", "32"
#define F16 SMALL, "--precision", "f16"

/* PyTorch's 65536, which stays for 2,000 steps. */
Test(train_f16, scale_is_told)
{
    folder f = small_data();
    static finished r;
    json_t *log = train_with(&f, (const char *[]){F16, NULL}, &r);
    cr_assert_eq(r.status, 0, "%s", r.err);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(log_event_number(log, "epoch", i, "loss_scale"), 65536);
        cr_expect_eq(log_event_number(log, "epoch", i, "skipped_steps"), 0);
    }
    expect_text(r.out, "loss scale 65536, 0 skipped\n");
    json_decref(log);
    log = train_with(&f, (const char *[]){SMALL, NULL}, &r);
    cr_expect_null(strstr(r.out, "loss scale"), "%s", r.out);
    for (size_t i = 0; i < json_array_size(log); i++)
        cr_expect_null(json_object_get(json_array_get(log, i), "loss_scale"));
    json_decref(log);
    folder_remove(&f);
}
