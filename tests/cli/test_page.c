/* test_page.c - pieces of report.html: pictures and curves. */
#include <criterion/criterion.h>
#include <math.h>
#include <zlib.h>

#include "cli/page/chart.h"
#include "cli/page/png.h"

static char text[1 << 16];

/* What is written to the stream from here on is in text once it is closed. */
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

/* Two pixels, red and blue; the checksums are Python's zlib.crc32. */
Test(page, png)
{
    static const uint8_t pixels[] = {255, 0, 0, 0, 0, 255};
    static const uint8_t head[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0,    0,
                                   13,   'I', 'H', 'D', 'R',  0,    0,    0,    2,    0,    0,
                                   0,    1,   8,   2,   0,    0,    0,    0x7b, 0x40, 0xe8, 0xdd};
    static const uint8_t end[] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
    static const uint8_t expected[] = {0, 255, 0, 0, 0, 0, 255}; /* not filtered, the row */
    uint8_t rows[16];
    uLongf n_rows = sizeof rows;
    size_t n = 0;
    uint8_t *file = png_encode(&(picture){2, 1, 3, pixels}, &n);
    cr_assert_not_null(file);
    cr_assert_gt(n, sizeof head + sizeof end + 12);
    cr_expect_arr_eq(file, head, sizeof head);
    cr_expect_arr_eq(file + n - sizeof end, end, sizeof end);
    const uint8_t *data = file + sizeof head;
    uLong packed = (uLong)data[2] << 8 | data[3];
    cr_expect_arr_eq(data, ((const uint8_t[]){0, 0}), 2);
    cr_expect_arr_eq(data + 4, "IDAT", 4);
    cr_expect_eq(sizeof head + 12 + packed + sizeof end, n);
    cr_expect_eq(uncompress(rows, &n_rows, data + 8, packed), Z_OK);
    cr_expect_eq(n_rows, sizeof expected);
    cr_expect_arr_eq(rows, expected, sizeof expected);
    free(file);
    cr_expect_null(png_encode(&(picture){0, 1, 1, pixels}, &n));
    cr_expect_null(png_encode(&(picture){1, 1, 2, pixels}, &n));
    cr_expect_null(png_encode(&(picture){PICTURE_SIDE + 1, 1, 1, pixels}, &n));
}

static void draw(const chart *c)
{
    FILE *f = collect();
    chart_draw(f, c);
    fclose(f);
}

/* 370 x 198 pixels from (58, 208) to the right and up. */
Test(page, curves)
{
    static const double x[] = {0, 1, 2, 3}, y[] = {0, 5, NAN, 10};
    chart c = {.title = "a <script> & \"b\"",
               .x_name = "x<",
               .n_curve = 1,
               .curve = {{"<b>", "one", 4, x, y}}};
    draw(&c);
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

    c.curve[0].y = (const double[]){0.07, 0.12, NAN, 0.19}; /* an axis from 0.05 to 0.2 */
    draw(&c);
    cr_expect_not_null(strstr(text, "points=\"58.0,181.6 181.3,115.6 428.0,23.2 \""), "%s", text);
    cr_expect_eq(count("\"end\">0.15</text>"), 1);

    c.curve[0].y = (const double[]){NAN, NAN, INFINITY, NAN};
    draw(&c);
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
    draw(&(chart){.title = "t", .x_name = "x", .n_curve = 1, .curve = {{"c", "one", 4000, x, y}}});
    const char *points = strstr(text, "points=\"");
    cr_assert_not_null(points);
    int n = 0;
    for (const char *p = points; *p != '>'; p++)
        n += *p == ',';
    cr_expect_eq(n, CHART_POINTS);
    /* all means are 4.5, on an axis from 0 to 10 */
    cr_expect_eq(strncmp(strchr(points, ','), ",118.9", 6), 0, "%.40s", points);
    cr_expect_eq(count("<circle"), 0);
}
