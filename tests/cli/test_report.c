/* test_report.c - report.html: statistics of predictions, hostile texts, and its pieces: pictures
 * and curves. */
#include <criterion/criterion.h>
#include <math.h>
#include <png.h>

#include "cli/page/page.h"
#include "cli/report_sample.h"
#include "tests/temporary.h"
#include "tests/plan.h"

/* Counted by hand; no image has or gets the fourth class. */
static int32_t truth[] = {0, 0, 0, 1, 1, 2, 1, 2}, guess[] = {0, 0, 1, 1, 0, 0, 0, 2};
static float probability[] = {0.9F, 0.8F, 0.5F, 0.9F, 0.7F, 0.9F, 0.7F, 0.3F};
static const answers few = {8, 4, truth, guess, probability};

Test(report, precision_and_recall)
{
    class_score s[4];
    score_classes(&few, s);
    cr_expect(s[0].images == 3 && s[0].guessed == 5 && s[0].right == 2);
    cr_expect_float_eq(s[0].precision, 2.0 / 5, 1e-12);
    cr_expect_float_eq(s[0].recall, 2.0 / 3, 1e-12);
    cr_expect_float_eq(s[0].f1, 0.5, 1e-12); /* 2 (2/5) (2/3) / (2/5 + 2/3) */
    cr_expect(s[1].images == 3 && s[1].guessed == 2 && s[1].right == 1);
    cr_expect_float_eq(s[1].precision, 0.5, 1e-12);
    cr_expect_float_eq(s[1].recall, 1.0 / 3, 1e-12);
    cr_expect_float_eq(s[1].f1, 0.4, 1e-12);
    cr_expect(s[2].images == 2 && s[2].guessed == 1 && s[2].right == 1);
    cr_expect(isnan(s[3].precision) && isnan(s[3].recall) && isnan(s[3].f1));
}

Test(report, confusion)
{
    static const int64_t expected[16] = {2, 1, 0, 0, 2, 1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0};
    int64_t count[16];
    confused_pair pair[4];
    count_confusion(&few, count);
    cr_expect_arr_eq(count, expected, sizeof expected);
    cr_assert_eq(list_confused(&few, 4, pair), 3);
    cr_expect(pair[0].truth == 1 && pair[0].guess == 0 && pair[0].count == 2);
    cr_expect(pair[1].truth == 0 && pair[1].guess == 1 && pair[1].count == 1);
    cr_expect(pair[2].truth == 2 && pair[2].guess == 0 && pair[2].count == 1);
    cr_assert_eq(list_confused(&few, 1, pair), 1);
    cr_expect(pair[0].truth == 1 && pair[0].count == 2);
}

Test(report, confident_mistakes)
{
    int64_t index[8];
    cr_assert_eq(list_confident_mistakes(&few, 8, index), 4);
    cr_expect_arr_eq(index, ((const int64_t[]){5, 4, 6, 2}), 4 * sizeof *index);
    cr_assert_eq(list_confident_mistakes(&few, 2, index), 2);
    cr_expect_arr_eq(index, ((const int64_t[]){5, 4}), 2 * sizeof *index);
    const answers right = {3, 4, truth, truth, probability};
    cr_expect_eq(list_confident_mistakes(&right, 8, index), 0);
}

/* ---- the page ---- */

static char *text;
static size_t size;

static void write_page(const report *r)
{
    FILE *f = open_memstream(&text, &size);
    cr_assert_not_null(f);
    cr_assert_eq(report_write(f, r), 0);
    cr_assert_eq(fclose(f), 0);
}

static void expect_harmless(void)
{
    static const char *const never[] = {"<script", "<img src=x", "onerror=\"", "</style><",
                                        "\xff",    "http",       "href=",      "url("};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        cr_expect_eq(times_in(text, never[i]), 0, "%s", never[i]);
    cr_expect_eq(times_in(text, "</title>"), times_in(text, "<title>"));
    cr_expect_eq(times_in(text, "<svg"), times_in(text, "</svg>"));
    cr_expect_eq(times_in(text, "<table"), times_in(text, "</table>"));
    cr_expect_eq(times_in(text, "<tr"), times_in(text, "</tr>"));
    cr_expect_eq(times_in(text, " src=\""),
                 times_in(text, " src=\"data:image/png;base64,iVBORw0KGgo"));
}

/* Many classes have a list of pairs, few a matrix. */
Test(report, hostile_texts)
{
    static const int classes[] = {SAMPLE_CLASSES, REPORT_MATRIX};
    for (int i = 0; i < 2; i++) {
        report_sample *s = sample_report(classes[i]);
        cr_assert_not_null(s);
        write_page(&s->report);
        expect_harmless();
        cr_expect_eq(times_in(text, "class=\"matrix\""), i);
        if (i == 0)
            cr_expect_eq(times_in(text, "<tr>"), 1 + REPORT_PAIRS + 1 + SAMPLE_CLASSES);
        else
            cr_expect_eq(times_in(text, " taken for "),
                         REPORT_MATRIX * REPORT_MATRIX + 3); /* cells, pictures */
        cr_expect_eq(times_in(text, " src=\""), 3);
        free(text);
        sample_free(s);
    }
}

/* A part of 2 of 3: its root is 0.816, times 0.6. */
Test(report, matrix_and_tables_of_few)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    const report r = {.held_out_name = "test",
                      .events = json_pack("[{s:s}]", "event", "start"),
                      .answers = few,
                      .class_name = names};
    write_page(&r);
    expect_harmless();
    cr_expect_eq(times_in(text, "16,0.490)\" title=\"b taken for a: 2 of 3\">2</td>"), 1);
    cr_expect_eq(times_in(text, "(var(--cell),0.400)\" title=\"a taken for a: 2 of 3\">2</td>"), 1);
    cr_expect_eq(times_in(text, "title=\"3 taken for 3: 0 of 0\"></td>"), 1);
    cr_expect_eq(times_in(text, "<td>3</td><td>40.0 %</td><td>66.7 %</td><td>50.0 %</td>"), 1);
    cr_expect_eq(times_in(text, "<td>0</td><td>&ndash;</td><td>&ndash;</td><td>&ndash;</td>"), 1);
    json_decref(r.events);
    free(text);
}

Test(report, of_nothing)
{
    const report r = {.held_out_name = "test", .events = json_pack("[{s:s}]", "event", "start")};
    write_page(&r);
    expect_harmless();
    cr_expect_eq(times_in(text, "<svg"), 0);
    cr_expect_eq(times_in(text, "<h2"), 1);
    json_decref(r.events);
    free(text);
}

/* ---- events ---- */

static double number(const json_t *events, size_t i, const char *key)
{
    return json_number_value(json_object_get(json_array_get(events, i), key));
}

/* A run to epoch 2.5 that went on from 1: what it did again counts once. */
Test(report, events_of_a_log)
{
    static const char log[] =
        "{\"event\":\"start\"}\nnonsense\n[]\n{\"event\":\"step\"}\n"
        "{\"event\":\"step\",\"at\":0.5,\"loss\":4,\"lr\":0.1}\n"
        "{\"event\":\"epoch\",\"epoch\":1,\"loss\":3,\"held_out_accuracy\":50}\n"
        "{\"event\":\"step\",\"at\":1.5,\"loss\":2,\"lr\":0.1}\n"
        "{\"event\":\"epoch\",\"epoch\":2,\"loss\":2}\n"
        "{\"event\":\"step\",\"at\":2.5,\"loss\":7,\"lr\":0.1}\n"
        "{\"event\":\"resume\",\"epoch\":1,\"step\":0,\"at\":1}\n"
        "{\"event\":\"step\",\"at\":1.5,\"loss\":1,\"lr\":0.1}\n"
        "{\"event\":\"step\",\"at\":2.5,\"loss\":1,\"lr\":0.1}\n"
        "{\"event\":\"epoch\",\"epoch\":2,\"loss\":1.5}\n"
        "{\"event\":\"epoch\",\"epoch\":3,\"loss\":9}\n{\"event\":\"st";
    const temporary file = temporary_file();
    FILE *f = fopen(file.s, "w");
    fputs(log, f);
    fclose(f);
    json_t *e = report_events(file.s);
    unlink(file.s);
    cr_assert_eq(json_array_size(e), 9);
    cr_expect_eq(number(e, 2, "loss"), 4);
    cr_expect_eq(number(e, 3, "held_out_accuracy"), 50);
    cr_expect_eq(number(e, 4, "at"), 1);
    cr_expect_eq(number(e, 5, "loss"), 1);
    cr_expect_eq(number(e, 6, "at"), 2.5);
    cr_expect_eq(number(e, 6, "loss"), 1);
    cr_expect_eq(number(e, 7, "loss"), 1.5);
    cr_expect_eq(number(e, 8, "loss"), 9);
    json_decref(e);
    e = report_events("/nowhere/log");
    cr_expect_eq(json_array_size(e), 0);
    json_decref(e);
}

/* ---- pictures and curves ---- */

static char drawn[1 << 16];

/* Returns a stream whose output is in drawn once it is closed. */
static FILE *collect(void)
{
    memset(drawn, 0, sizeof drawn);
    return fmemopen(drawn, sizeof drawn - 1, "w");
}

Test(page, base64)
{
    /* RFC 4648, section 10 */
    static const char *const vectors[][2] = {{"", ""},
                                             {"f", "Zg=="},
                                             {"fo", "Zm8="},
                                             {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="},
                                             {"fooba", "Zm9vYmE="},
                                             {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        FILE *f = collect();
        put_base64(f, strlen(vectors[i][0]), (const uint8_t *)vectors[i][0]);
        fclose(f);
        cr_expect_str_eq(drawn, vectors[i][1]);
    }
}

/* Two pixels, red and blue, read back. */
Test(page, png)
{
    static const uint8_t pixels[] = {255, 0, 0, 0, 0, 255};
    uint8_t read[sizeof pixels];
    size_t n = 0;
    scoped(release) uint8_t *file = png_encode(&(picture){2, 1, 3, pixels}, &n);
    cr_assert_not_null(file);
    png_image image = {.version = PNG_IMAGE_VERSION};
    cr_assert(png_image_begin_read_from_memory(&image, file, n));
    cr_expect(image.width == 2 && image.height == 1);
    image.format = PNG_FORMAT_RGB;
    cr_assert(png_image_finish_read(&image, NULL, read, 0, NULL));
    cr_expect_arr_eq(read, pixels, sizeof pixels);
}

/* One event for each point; null for what is not finite. */
static void draw(int n, const double x[], const double y[], const char *name)
{
    const chart c = {.title = "a <script> & \"b\"",
                     .x_name = "x<",
                     .n_curve = 1,
                     .curve = {{name, "one", "step", "at", "loss"}}};
    json_t *events = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(events,
                              json_pack("{s:s, s:f, s:o}", "event", "step", "at", x[i], "loss",
                                        isfinite(y[i]) ? json_real(y[i]) : json_null()));
    FILE *f = collect();
    chart_draw(f, &c, events);
    fclose(f);
    json_decref(events);
}

/* 370 x 198 pixels from (58, 208) to the right and up. */
Test(page, curves)
{
    static const double x[] = {0, 1, 2, 3}, y[] = {0, 5, NAN, 10};
    draw(4, x, y, "<b>");
    expect_text(drawn, "points=\"58.0,208.0 181.3,109.0 428.0,10.0 \"");
    cr_expect_eq(times_in(drawn, "<circle"), 3);
    expect_text(drawn, "a &lt;script&gt; &amp; &quot;b&quot;");
    cr_expect_eq(times_in(drawn, "<script"), 0);
    cr_expect_eq(times_in(drawn, "<b>"), 0);
    cr_expect_eq(times_in(drawn, "<svg"), times_in(drawn, "</svg>"));

    for (int i = 0; i <= 10; i += 2) {
        char tick[24];
        snprintf(tick, sizeof tick, "\"end\">%d</text>", i);
        cr_expect_eq(times_in(drawn, tick), 1, "%s", tick);
    }

    draw(4, x, (const double[]){0.07, 0.12, NAN, 0.19}, "c"); /* an axis from 0.05 to 0.2 */
    expect_text(drawn, "points=\"58.0,181.6 181.3,115.6 428.0,23.2 \"");
    cr_expect_eq(times_in(drawn, "\"end\">0.15</text>"), 1);

    draw(4, x, (const double[]){NAN, NAN, INFINITY, NAN}, "c");
    cr_expect_str_empty(drawn);
}

/* 4000 points as 400 means of ten. */
Test(page, many_points)
{
    static double x[4000], y[4000];
    for (int i = 0; i < 4000; i++) {
        x[i] = i;
        y[i] = i % 10;
    }
    draw(4000, x, y, "c");
    const char *points = strstr(drawn, "points=\"");
    cr_assert_not_null(points);
    int n = 0;
    for (const char *p = points; *p != '>'; p++)
        n += *p == ',';
    cr_expect_eq(n, CHART_POINTS);
    /* all means are 4.5, the middle of their axis */
    cr_expect_eq(strncmp(strchr(points, ','), ",109.0", 6), 0, "%.40s", points);
    cr_expect_eq(times_in(drawn, "<circle"), 0);
}
