/* test_files.c - files that commands write: unwritable ones are refused before the work, with
 * nothing left behind; closed streams and names that are not UTF-8 do no harm. */
#include <criterion/criterion.h>
#include <sys/stat.h>

#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "cli/train_log.h"
#include "tests/plan.h"

TestSuite(files, .init = enter_empty, .fini = leave);
TestSuite(files_of_train, .init = enter_small_data, .fini = leave);

Test(files, refused_before_the_work, .timeout = 300)
{
    put_file("file", "precious", 8);
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    cr_assert_eq(link("file", "hard"), 0);
    cr_assert_eq(symlink("file", "soft.safetensors"), 0);
    cr_assert_eq(symlink("none yet", "dangling.safetensors"), 0);
    expect_rows("refused before the work");
    cr_expect_eq(files_in(&here), 5);
    struct stat s;
    cr_expect(stat("file", &s) == 0 && s.st_size == 8);
}

/* No file gets the number of a stream that is closed: nothing is printed into it. */
Test(files_of_train, closed_streams)
{
    static const char *const closed[] = {">&- 2>/dev/null", "<&- >&- 2>&-", "2>&- >/dev/null"};
    for (int i = 0; i < 3; i++) {
        const int status = shell("adjoint train --data . --model lenet5 --epochs 2 --log log --out "
                                 "out.safetensors %s",
                                 closed[i]);
        cr_expect(status == 0 || status == 1, "%s: %d", closed[i], status);
        cr_expect_geq(json_array_size(read_log("log")), 4);
        adj_tensors_free(tensors_of("out.safetensors"));
        unlink("out.safetensors");
    }
}

/* Devices and pipes that are read are written to as they are. */
Test(files, devices_and_pipes, .timeout = 120) { expect_rows("devices and pipes"); }

static void expect_string(const json_t *object, const char *key, const char *part)
{
    const char *text = word_in(object, key);
    cr_expect(text != NULL && strstr(text, part) != NULL, "%s: %s", key,
              text != NULL ? text : "none");
}

Test(files_of_train, names_that_are_not_utf8)
{
    static const char odd[] = "odd\xff\xc3\xa4\xed\xa0\x80";
    cr_assert_eq(symlink(".", odd), 0); /* a data folder, and a folder for the output */
    tool(0, "train --data %s --model lenet5 --epochs 1 --log log --out %s/out\xff.safetensors", odd,
         odd);
    cr_expect_eq(access("out\xff.safetensors", F_OK), 0);
    cr_expect_geq(json_array_size(read_log("log")), 3);
    json_t *log = read_log("log");
    expect_string(json_array_get(log, 0), "data", "odd\\xff\xc3\xa4\\xed\\xa0\\x80");

    put_file("tune\xff", "adjoint tune rubbish", 20);
    setenv("ADJOINT_TUNE", "tune\xff", 1);
    tool(0, "bench --model lenet5 --batch 2 --seconds 0 --backend naive --tune --json");
    json_t *all = json_of(ran.out);
    expect_string(all, "warning", "tune\\xff is ignored");
}
