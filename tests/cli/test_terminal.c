/* test_terminal.c - output of train on a terminal: lines that fit, colors. */
#include <criterion/criterion.h>
#include <math.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "cli/child.h"
#include "cli/small_data.h"
#include "cli/terminal.h"
#include "cli/train/progress.h"
#include "tests/plan.h"

static char text[1 << 16];

static const terminal plain = {1, 0, 0}, full = {1, 1, 1};

static const char *pieces(const terminal *t, int columns)
{
    static const line_piece piece[] = {{0, NULL, "1/10"},
                                       {2, COLOR_BAR, "##\xe2\x94\x81"},
                                       {1, NULL, "loss 0.5"},
                                       {3, NULL, "more"}};
    memset(text, 0, sizeof text);
    FILE *f = fmemopen(text, sizeof text - 1, "w");
    put_pieces(f, t, columns, 4, piece);
    fclose(f);
    return text;
}

Test(terminal, pieces_that_fit)
{
    cr_expect_str_eq(pieces(&plain, 200), "1/10  ##\xe2\x94\x81  loss 0.5  more");
    cr_expect_str_eq(pieces(&plain, 25), "1/10  ##\xe2\x94\x81  loss 0.5  more");
    cr_expect_str_eq(pieces(&plain, 24), "1/10  ##\xe2\x94\x81  loss 0.5");
    cr_expect_str_eq(pieces(&plain, 18), "1/10  loss 0.5");
    cr_expect_str_eq(pieces(&plain, 13), "1/10");
    cr_expect_str_eq(pieces(&plain, 3), "1/1");
    cr_expect_str_eq(pieces(&full, 24),
                     "1/10  " COLOR_BAR "##\xe2\x94\x81" COLOR_NONE "  loss 0.5");
}

/* In a file a line of progress has words, not a bar. */
Test(terminal, progress_in_a_file)
{
    FILE *before = stdout;
    progress p = progress_start((terminal){0}, 8);
    p.shown -= 3600;
    p.epoch = 2;
    memset(text, 0, sizeof text);
    stdout = fmemopen(text, sizeof text - 1, "w");
    progress_step(&p, &(adj_fit_progress){
                          .epoch = 2, .epochs = 3, .step = 4, .steps = 10, .train.loss = 0.5});
    fclose(stdout);
    stdout = before;
    static const char line[] = "epoch  2/3  step 4/10  loss 0.5000  accuracy 0.00 %  ";
    cr_expect_eq(strncmp(text, line, strlen(line)), 0, "%s", text);
}

/* ---- the tool ---- */

/* Trains lenet5, or the model that more says, for so many epochs on the folder's data and a
 * terminal of so many columns; what it printed is in text. */
static void train_on(const folder *f, int columns, const char *epochs, const char *const more[])
{
    size_t n = 0;
    const char *words[ARGUMENTS] = {"train", "--data",  f->path, "--model",   "lenet5", "--epochs",
                                    epochs,  "--batch", "8",     "--threads", "1"};
    for (int i = 0; more[i] != NULL; i++)
        words[11 + i] = more[i];
    int outside = posix_openpt(O_RDWR | O_NOCTTY);
    if (outside < 0 || grantpt(outside) != 0 || unlockpt(outside) != 0)
        cr_skip_test("no pseudo terminals here");
    int inside = open(ptsname(outside), O_RDWR | O_NOCTTY);
    const struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};
    cr_assert_geq(inside, 0);
    cr_assert_eq(ioctl(inside, TIOCSWINSZ, &size), 0);
    child c = child_start(words, inside);
    close(inside);
    for (ssize_t got;
         n < sizeof text - 1 && (got = read(outside, text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    child_finish(&c);
    close(outside);
    cr_assert_eq(ran.status, 0, "%s", ran.err);
}

static void train_on_terminal(int columns, const char *epochs)
{
    scoped(folder_remove) folder f = small_data();
    train_on(&f, columns, epochs, (const char *[]){NULL});
}

/* The longest line in characters, escape sequences left out; \r begins one. */
static int longest_line(void)
{
    int longest = 0, width = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\033') {
            while (*c != 'm' && *c != 'K')
                c++;
        } else if (*c == '\r' || *c == '\n') {
            width = 0;
        } else {
            width += (*c & 0xc0) != 0x80;
        }
        longest = width > longest ? width : longest;
    }
    return longest;
}

static int has_other_than_ascii(void)
{
    for (const char *c = text; *c != '\0'; c++)
        if (*c & 0x80)
            return 1;
    return 0;
}

static void set_environment(const char *term, const char *no_color, const char *locale)
{
    setenv("TERM", term, 1);
    setenv("NO_COLOR", no_color, 1);
    setenv("LC_ALL", locale, 1);
}

Test(terminal, one_line_of_progress)
{
    scoped(folder_remove) folder f = small_data();
    set_environment("xterm", "", "C"); /* no curve at the end */
    train_on(&f, 200, "2", WORDS("--model", "lenet", "--backend", "naive"));
    expect_text(text, "\r\033[K1/2 ");
    expect_text(text, " left");
    const int lines = times_in(text, "\n") - times_in(text, "other processes keep ");
    cr_expect_eq(lines, 7, "note, data, model, settings, two epochs, best: %s", text);
}

Test(terminal, lines_fit, .timeout = 300)
{
    static const int widths[] = {20, 80, 200};
    setenv("TMPDIR", "/tmp", 1); /* the data's name, which is printed, is short */
    set_environment("xterm", "", "C.UTF-8");
    for (int i = 0; i < 3; i++) {
        train_on_terminal(widths[i], "60");
        cr_expect_leq(longest_line(), widths[i], "%d columns: %s", widths[i], text);
        cr_expect_gt(longest_line(), widths[i] < 100 ? widths[i] / 2 : 70, "%s", text);
        /* a line of progress comes each 0.1 s: in which epochs is the machine's matter, and of so
         * many one is seen within an epoch */
        cr_expect(times_in(text, "1/60") > 0 && times_in(text, "60/60") > 0, "%s", text);
        cr_expect(widths[i] < 80 || times_in(text, "\u2501\u2500") > 0, "no bar: %s", text);
        cr_expect((widths[i] < 80 || times_in(text, "\033[36m") > 0) &&
                      times_in(text, "\033[36m") + times_in(text, "\033[32m") +
                              times_in(text, "\033[2m") ==
                          times_in(text, "\033[0m"),
                  "%s", text);
    }
    cr_expect(times_in(text, "test accuracy") == 60 && times_in(text, "images/s") >= 60, "%s",
              text);
}

/* Notes on the data (no test split, another size) do not make a line longer. */
Test(terminal, lines_about_the_data_fit, .timeout = 300)
{
    setenv("TMPDIR", "/tmp", 1);
    set_environment("xterm", "", "C.UTF-8");
    scoped(folder_remove) folder f = small_data();
    unlink(in_folder(&f, "t10k-images-idx3-ubyte").s);
    unlink(in_folder(&f, "t10k-labels-idx1-ubyte").s);
    train_on(&f, 20, "20", (const char *[]){NULL});
    cr_expect_eq(times_in(text, "holding"), 1, "%s", text);
    cr_expect_eq(times_in(text, "to 32x32"), 1, "%s", text);
    cr_expect_leq(longest_line(), 20, "%s", text);
}

Test(terminal, without_colors_or_unicode, .timeout = 300)
{
    set_environment("xterm", "1", "C.UTF-8");
    train_on_terminal(80, "20");
    cr_expect_eq(times_in(text, "\033["), times_in(text, "\033[K"), "%s", text);
    cr_expect(has_other_than_ascii());

    set_environment("xterm", "", "C");
    train_on_terminal(80, "20");
    cr_expect(times_in(text, "\033[36m") > 0 && !has_other_than_ascii(), "%s", text);

    set_environment("dumb", "", "C.UTF-8");
    train_on_terminal(80, "20");
    cr_expect_eq(times_in(text, "\033"), 0, "%s", text);
    cr_expect_not(has_other_than_ascii());
    cr_expect_eq(times_in(text, "test accuracy"), 20);
}
