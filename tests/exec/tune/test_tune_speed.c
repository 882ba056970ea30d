/* test_tune_speed.c - tuning measures the machine once, and believes what a file says of it as far
 * as it can be true. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* The machine itself is measured here, not the two candidates. */
static void pass_ms(double ms) { (void)ms; }

#include "planted.h"

/* Candidates are counted here: no other plans, whatever all tests are run with. */
static void unset_plan(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(tune_speed, .init = unset_plan);

/* The file's line of it; "": it has none. */
static const char *speed_line(void)
{
    static char line[256];
    size_t n;
    char *text = read_text(&n);
    const char *at = strstr(text, "\nspeed\t");
    snprintf(line, sizeof line, "%.*s", at != NULL ? (int)strcspn(at + 1, "\n") : 0,
             at != NULL ? at + 1 : "");
    free(text);
    return line;
}

/* It is measured before something is timed for which it is not known, and written to the file. */
Test(tune_speed, when_the_machine_is_measured)
{
    make_folder();
    adj_exec_opts o = tuned();
    o.tune_seconds = 5;
    plan(o, 64);
    char one[256], two[256];
    snprintf(one, sizeof one, "%s", speed_line());
    cr_expect_eq(strncmp(one, "speed\t1\t", 8), 0, "%s", one);
    cr_assert_eq(plan(o, 65).timed, 2);
    cr_expect_str_eq(speed_line(), one, "measured again");
    o.threads = 2;
    cr_assert_eq(plan(o, 64).timed, 2);
    snprintf(two, sizeof two, "%s", speed_line());
    cr_expect_eq(strncmp(two, "speed\t2\t", 8), 0, "%s", two);
    o.threads = 1;
    cr_assert_eq(plan(o, 64).timed, 0);
    cr_expect_str_eq(speed_line(), two, "nothing was to be timed");
    remove_folder();
}

/* More than there ever are, as OMP_THREAD_LIMIT and dynamic teams bring about. */
Test(tune_speed, a_machine_with_fewer_threads)
{
    make_folder();
    adj_exec_opts o = tuned();
    o.tune_seconds = 5;
    o.threads = 64;
    omp_set_dynamic(1);
    plan(o, 64);
    char first[256];
    snprintf(first, sizeof first, "%s", speed_line());
    cr_expect_eq(strncmp(first, "speed\t64\t", 9), 0, "%s", first);
    cr_assert_eq(plan(o, 65).timed, 2);
    cr_expect_str_eq(speed_line(), first, "measured again");
    remove_folder();
}

/* Of caches and memory there may be none: a huge last cache leaves no memory to measure. */
Test(tune_speed, what_is_not_known_of_the_machine)
{
    static const char unknown[] = "speed\t1\t1e+09\t0\t0\t0\t0\t0";
    char changed[8192];
    size_t n;
    make_folder();
    adj_exec_opts o = tuned();
    plan(o, 64);
    char *text = read_text(&n), *at = strstr(text, "\nplanted\t");
    cr_assert_not_null(at);
    snprintf(changed, sizeof changed, "%.*s\n%s%s", (int)(at - text), text, unknown, at);
    write_text(changed, strlen(changed));
    o.tune_seconds = 5;
    const outcome got = plan(o, 65);
    cr_expect_str_eq(got.note, "");
    cr_expect_eq(got.timed, 2);
    cr_expect_str_eq(speed_line(), unknown);
    cr_expect_eq(plan(o, 64).cached, 1);
    free(text);
    remove_folder();
}

/* What stands there is believed as far as it can be true. */
Test(tune_speed, the_speed_of_the_machine)
{
    static const struct {
        const char *line, *word;
    } wrong[] = {{"0\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"99999999999\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"1\t0\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"1\t1e-300\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"1\t1e9\t1e9\t1e9\t1e9\t1e9\t1e-300", "out of range"},
                 {"1\t999999\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"1\t1e9\t1e9\t1e9\t1e999\t1e9\t1e9", "out of range"},
                 {"1\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"1\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9x", "out of range"},
                 {"-1\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"+1\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {" 1\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"\n4\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"\t4\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "out of range"},
                 {"1\t1e9\t-1\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"1\t1e9\t1e9\tnan\t1e9\t1e9\t1e9", "numbers"},
                 {"1\t1e9\t1e9\t1e9\tinf\t1e9\t1e9", "numbers"},
                 {"1\t1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"1\t1e9\t1e9\t1e9\t1e9\t1e9\t", "numbers"},
                 {"1\t1e9\t\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"1\t1e9\t 1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"1\t1e9\t\n1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"x\t1e9\t1e9\t1e9\t1e9\t1e9\t1e9", "numbers"},
                 {"", "numbers"}};
    make_folder();
    size_t n;
    adj_exec_opts o = tuned();
    o.tune_seconds = 5;
    cr_assert_str_eq(plan(o, 64).note, "");
    char *text = read_text(&n);
    const char *line = strstr(text, "\nspeed\t1\t");
    cr_assert_not_null(line, "%s", text);
    const size_t before = (size_t)(line - text), length = strcspn(line + 1, "\n") + 1;
    double v[6];
    cr_assert_eq(sscanf(line, "\nspeed\t1\t%lf\t%lf\t%lf\t%lf\t%lf\t%lf", &v[0], &v[1], &v[2],
                        &v[3], &v[4], &v[5]),
                 6);
    cr_expect(v[0] > 1e8 && v[0] < 1e14, "%.*s", (int)length, line);
    cr_expect(v[5] == 0 || (v[5] > 1e7 && v[5] < 1e13), "%.*s", (int)length, line);

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char changed[8192];
        snprintf(changed, sizeof changed, "%.*s\nspeed\t%s%s", (int)before, text, wrong[i].line,
                 line + length);
        write_text(changed, strlen(changed));
        outcome got = plan(tuned(), 64);
        cr_expect(got.timed == 2 && strstr(got.note, "is ignored: line ") != NULL &&
                      strstr(got.note, wrong[i].word) != NULL,
                  "%s: %s", wrong[i].line, got.note);
    }
    free(text);
    remove_folder();
}
