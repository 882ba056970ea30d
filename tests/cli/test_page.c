/* test_page.c - the pieces of the tool's HTML pages: numbers, pictures, curves, escaping. */
#include <criterion/criterion.h>
#include <math.h>
#include <zlib.h>

#include "cli/page/chart.h"
#include "cli/page/page.h"
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

static void expect_axis(const axis *a, int n, const double tick[])
{
    cr_assert_eq(a->n_tick, n, "%d ticks", a->n_tick);
    for (int i = 0; i < n; i++)
        cr_expect_float_eq(a->tick[i], tick[i], 1e-9 * fabs(tick[i]) + 1e-12, "tick %d: %g", i,
                           a->tick[i]);
    cr_expect_float_eq(a->low, tick[0], 1e-9);
    cr_expect_float_eq(a->high, tick[n - 1], 1e-9);
}

Test(page, axes)
{
    const axis even = axis_over(0.3, 9.7, 0, 0, 6);
    expect_axis(&even, 6, (const double[]){0, 2, 4, 6, 8, 10});
    cr_expect_float_eq(axis_place(&even, 2.5), 0.25, 1e-12);
    const axis small = axis_over(0.07, 0.19, 0, 0, 6);
    expect_axis(&small, 4, (const double[]){0.05, 0.1, 0.15, 0.2});
    cr_expect_eq(small.decimals, 2);
    const axis whole = axis_over(1, 2, 0, 1, 7);
    expect_axis(&whole, 2, (const double[]){1, 2});
    const axis log = axis_over(0.02, 3, 1, 0, 6);
    expect_axis(&log, 4, (const double[]){0.01, 0.1, 1, 10});
    cr_expect_float_eq(axis_place(&log, 0.1), 1.0 / 3, 1e-12);
    const axis flat = axis_over(2, 2, 0, 0, 6);
    cr_expect(flat.low < 2 && flat.high > 2);
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
               .unit = "",
               .n_curve = 1,
               .curve = {{"<b>", "one", 4, x, y}}};
    draw(&c);
    cr_expect_not_null(strstr(text, "points=\"58.0,208.0 181.3,109.0 428.0,10.0\""), "%s", text);
    cr_expect_eq(count("<circle"), 3);
    cr_expect_not_null(strstr(text, "a &lt;script&gt; &amp; &quot;b&quot;"));
    cr_expect_eq(count("<script"), 0);
    cr_expect_eq(count("<b>"), 0);
    cr_expect_eq(count("<svg"), count("</svg>"));

    c.log_y = 1; /* 0 has no place; 5 and 10 between 1 and 10 */
    draw(&c);
    cr_expect_not_null(strstr(text, "points=\"58.0,69.6 428.0,10.0\""), "%s", text);

    c.curve[0].y = (const double[]){NAN, NAN, INFINITY, -1};
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
    draw(&(chart){.title = "t",
                  .x_name = "x",
                  .unit = "",
                  .n_curve = 1,
                  .curve = {{"c", "one", 4000, x, y}}});
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

Test(page, numbers)
{
    char t[PAGE_NUMBER];
    cr_expect_str_eq(page_whole(t, 0), "0");
    cr_expect_str_eq(page_whole(t, 999), "999");
    cr_expect_str_eq(page_whole(t, 1234567), "1\u202f234\u202f567");
    cr_expect_str_eq(page_whole(t, -123456), "-123\u202f456");
    cr_expect_str_eq(page_bytes(t, 999), "999 B");
    cr_expect_str_eq(page_bytes(t, 1500), "1.5 kB");
    cr_expect_str_eq(page_bytes(t, 20900000), "20.9 MB");
    cr_expect_str_eq(page_bytes(t, 999960), "1.0 MB");
    cr_expect_str_eq(page_count(t, 627200), "627 k");
    cr_expect_str_eq(page_count(t, 12), "12");
    cr_expect_str_eq(page_seconds(t, 1.25), "1.2 s");
    cr_expect_str_eq(page_seconds(t, 59.4), "59 s");
    cr_expect_str_eq(page_seconds(t, 200), "3 min 20 s");
    cr_expect_str_eq(page_seconds(t, 7500), "2 h 5 min");
}

Test(page, skeleton)
{
    const page_fact facts[] = {{"a<", "\"b\"&"}, {"left out", NULL}};
    FILE *f = collect();
    page_begin(f, "k<", "</title><script>alert(1)</script>", "s<");
    page_tiles(f, 2, facts);
    page_section(f, "id", "<h>");
    page_facts(f, 2, facts);
    page_code(f, "a '<b>'");
    page_cell_name(f, "con<v_2", "");
    page_cell_number(f, "", "%.1f", NAN);
    page_cell_number(f, "", "%.1f", INFINITY);
    page_end(f);
    fclose(f);
    cr_expect_eq(strncmp(text, "<!DOCTYPE html>\n<html lang=\"en\">", 32), 0);
    cr_expect_eq(count("<script"), 0);
    cr_expect_eq(count("left out"), 0);
    cr_expect_eq(count("<section"), count("</section>"));
    cr_expect_eq(count("a&lt;</span><b>&quot;b&quot;&amp;</b>"), 1);
    cr_expect_eq(count("con&lt;v_<wbr>2"), 1);
    cr_expect_eq(count("&ndash;"), 1);
    cr_expect_eq(count("&infin;"), 1);
    static const char *const outside[] = {"http", "src=", "href=", "url(", "@import"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        cr_expect_eq(count(outside[i]), 0, "the page needs %s", outside[i]);
}
