/* test_page.c - pieces of report.html: pictures and curves. */
#include <criterion/criterion.h>
#include <math.h>
#include <png.h>

#include "cli/page/chart.h"
#include "cli/page/png.h"

static char text[1 << 16];

/* Returns a stream whose output is in text once it is closed. */
static FILE *collect(void)
{
    memset(text, 0, sizeof text);
    return fmemopen(text, sizeof text - 1, "w");
}

static int count(const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
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
        cr_expect_str_eq(text, vectors[i][1]);
    }
}

/* Two pixels, red and blue, read back. */
Test(page, png)
{
    static const uint8_t pixels[] = {255, 0, 0, 0, 0, 255};
    uint8_t read[sizeof pixels];
    size_t n = 0;
    uint8_t *file = png_encode(&(picture){2, 1, 3, pixels}, &n);
    cr_assert_not_null(file);
    png_image image = {.version = PNG_IMAGE_VERSION};
    cr_assert(png_image_begin_read_from_memory(&image, file, n));
    cr_expect(image.width == 2 && image.height == 1);
    image.format = PNG_FORMAT_RGB;
    cr_assert(png_image_finish_read(&image, NULL, read, 0, NULL));
    cr_expect_arr_eq(read, pixels, sizeof pixels);
    free(file);
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
    cr_expect_not_null(strstr(text, "points=\"58.0,208.0 181.3,109.0 428.0,10.0 \""), "%s", text);
    cr_expect_eq(count("<circle"), 3);
    cr_expect_not_null(strstr(text, "a &lt;script&gt; &amp; &quot;b&quot;"));
    cr_expect_eq(count("<script"), 0);
    cr_expect_eq(count("<b>"), 0);
    cr_expect_eq(count("<svg"), count("</svg>"));

    for (int i = 0; i <= 10; i += 2) {
        char tick[24];
        snprintf(tick, sizeof tick, "\"end\">%d</text>", i);
        cr_expect_eq(count(tick), 1, "%s", tick);
    }

    draw(4, x, (const double[]){0.07, 0.12, NAN, 0.19}, "c"); /* an axis from 0.05 to 0.2 */
    cr_expect_not_null(strstr(text, "points=\"58.0,181.6 181.3,115.6 428.0,23.2 \""), "%s", text);
    cr_expect_eq(count("\"end\">0.15</text>"), 1);

    draw(4, x, (const double[]){NAN, NAN, INFINITY, NAN}, "c");
    cr_expect_str_empty(text);
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
    const char *points = strstr(text, "points=\"");
    cr_assert_not_null(points);
    int n = 0;
    for (const char *p = points; *p != '>'; p++)
        n += *p == ',';
    cr_expect_eq(n, CHART_POINTS);
    /* all means are 4.5, the middle of their axis */
    cr_expect_eq(strncmp(strchr(points, ','), ",109.0", 6), 0, "%.40s", points);
    cr_expect_eq(count("<circle"), 0);
}
