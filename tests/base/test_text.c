/* test_text.c - bytes that reach a terminal, as literals; suggestions for misspelled names. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/nearest.h"
#include "base/printable.h"

static const struct {
    const char *text, *printed;
} rows[] = {
    {"", ""},
    {"conv1/w ~", "conv1/w ~"},
    {"\\x1b", "\\x1b"}, /* letters stay letters */
    {"\x1b]0;title\x07", "\\x1b]0;title\\x07"},
    {"a\tb\rc\bd\x7f", "a\\x09b\\x0dc\\x08d\\x7f"},
    {"two\nlines", "two\\x0alines"},
    /* the letters of other scripts */
    {"Gr\xc3\xb6\xc3\x9f"
     "e \xce\xb1 \xe6\xbc\xa2 \xf0\x9f\x98\x80",
     "Gr\xc3\xb6\xc3\x9f"
     "e \xce\xb1 \xe6\xbc\xa2 \xf0\x9f\x98\x80"},
    {"\xc2\xa0\xd8\x9b\xd8\x9d", "\xc2\xa0\xd8\x9b\xd8\x9d"}, /* U+00A0, U+061B, U+061D */
    /* C1: as UTF-8 and as bytes */
    {"\xc2\x80 \xc2\x9b"
     "31m \xc2\x9f",
     "\\xc2\\x80 \\xc2\\x9b31m \\xc2\\x9f"},
    {"\x9b"
     "31m \x80",
     "\\x9b31m \\x80"},
    /* U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069 */
    {"\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f", "\\xd8\\x9c\\xe2\\x80\\x8e\\xe2\\x80\\x8f"},
    {"\xe2\x80\xaa\xe2\x80\xab\xe2\x80\xac\xe2\x80\xad\xe2\x80\xae",
     "\\xe2\\x80\\xaa\\xe2\\x80\\xab\\xe2\\x80\\xac\\xe2\\x80\\xad\\xe2\\x80\\xae"},
    {"\xe2\x81\xa6\xe2\x81\xa7\xe2\x81\xa8\xe2\x81\xa9",
     "\\xe2\\x81\\xa6\\xe2\\x81\\xa7\\xe2\\x81\\xa8\\xe2\\x81\\xa9"},
    /* their neighbors: U+200D, U+2010, U+202F, U+205F, U+2070 */
    {"\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xaf\xe2\x81\x9f\xe2\x81\xb0",
     "\xe2\x80\x8d\xe2\x80\x90\xe2\x80\xaf\xe2\x81\x9f\xe2\x81\xb0"},
    /* characters that cannot be seen: U+180E, U+200B, U+2060, U+206F, U+FEFF, U+FFF9, U+E0041 */
    {"\xe1\xa0\x8e\xe2\x80\x8b\xe2\x81\xa0\xe2\x81\xaf",
     "\\xe1\\xa0\\x8e\\xe2\\x80\\x8b\\xe2\\x81\\xa0\\xe2\\x81\\xaf"},
    {"\xef\xbb\xbf\xef\xbf\xb9\xf3\xa0\x81\x81",
     "\\xef\\xbb\\xbf\\xef\\xbf\\xb9\\xf3\\xa0\\x81\\x81"},
    /* U+2028, U+2029 */
    {"\xe2\x80\xa8\xe2\x80\xa9", "\\xe2\\x80\\xa8\\xe2\\x80\\xa9"},
    /* no UTF-8: cut off, stray, too long a form, a surrogate, beyond U+10FFFF */
    {"\xc3", "\\xc3"},
    {"\xe2\x82", "\\xe2\\x82"},
    {"\xf0\x9f\x98", "\\xf0\\x9f\\x98"},
    {"\xe2(", "\\xe2("},
    {"\xbf\xfe\xff", "\\xbf\\xfe\\xff"},
    {"\xc0\x9b \xc1\xbf", "\\xc0\\x9b \\xc1\\xbf"},
    {"\xe0\x80\x9b \xf0\x80\x82\x9b", "\\xe0\\x80\\x9b \\xf0\\x80\\x82\\x9b"},
    {"\xed\xa0\x80 \xed\xbf\xbf", "\\xed\\xa0\\x80 \\xed\\xbf\\xbf"},
    {"\xf4\x90\x80\x80 \xf7\xbf\xbf\xbf \xf8\x88\x80\x80\x80",
     "\\xf4\\x90\\x80\\x80 \\xf7\\xbf\\xbf\\xbf \\xf8\\x88\\x80\\x80\\x80"},
    {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"},
};

Test(printable, characters)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[256] = "", piece[PIECE];
        for (const char *c = rows[i].text; *c != '\0';) {
            int n = printable(c, piece);
            cr_assert(n >= 1 && n <= 4 && strlen(c) >= (size_t)n);
            strcat(got, piece);
            c += n;
        }
        cr_expect_str_eq(got, rows[i].printed, "%zu: %s", i, got);
    }
}

/* Only the format ends lines, whatever bytes an argument has. */
Test(printable, forged_lines)
{
    char text[80] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    put_text(f, "\n%s\n\n  %s %d\n", "\n\r\x01", "a\r\n", 7);
    put_text(f, "%s", "\n");
    fclose(f);
    cr_expect_str_eq(text, "\n\\x0a\\x0d\\x01\n\n  a\\x0d\\x0a 7\n\\x0a");
}

static void expect_escaped(const char *from, const char *to)
{
    char text[80] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    put_escaped(f, FOR_XML, "%s", from);
    fclose(f);
    cr_expect_str_eq(text, to);
}

/* U+007E, DEL, U+0080, U+009F, U+00A0, U+FFFD, U+FFFE, U+FFFF, U+10000. */
Test(printable, xml)
{
    expect_escaped("~\x7f<", "~\\x7f&lt;");
    expect_escaped("\xc2\x80\xc2\x9f\xc2\xa0", "\\xc2\\x80\\xc2\\x9f\xc2\xa0");
    expect_escaped("\xef\xbf\xbd\xef\xbf\xbe\xef\xbf\xbf\xf0\x90\x80\x80",
                   "\xef\xbf\xbd\\xef\\xbf\\xbe\\xef\\xbf\\xbf\xf0\x90\x80\x80");
    expect_escaped("a\xe2\x80\xae"
                   "b",
                   "a\\xe2\\x80\\xae"
                   "b"); /* U+202E */
}

/* Characters of the format itself do not change. */
Test(printable, formats)
{
    char text[120] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    put_text(f, "%s %d\n", "a\x1b\nb", 7);
    put_escaped(f, FOR_XML, "<b title=\"%s\">&micro;%-4s%.1f</b>\n", "\"<a>&\n\"", "<", 0.5);
    fclose(f);
    cr_expect_str_eq(text, "a\\x1b\\x0ab 7\n"
                           "<b title=\"&quot;&lt;a&gt;&amp; &quot;\">&micro;&lt;   0.5</b>\n");
}

Test(nearest, names)
{
    static const char *const names[] = {"train", "eval", "models"};
    static const struct {
        const char *name, *nearest;
    } cases[] = {{"train", "train"}, {"trian", "train"},  {"rain", "train"},
                 {"evil", "eval"},   {"model", "models"}, {"", NULL},
                 {"xyzzy", NULL},    {"t", NULL},         {"mdoels", "models"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *got = nearest_name(cases[i].name, names, 3, sizeof names[0]);
        cr_expect(got == cases[i].nearest || (got != NULL && cases[i].nearest != NULL &&
                                              strcmp(got, cases[i].nearest) == 0),
                  "%s: %s", cases[i].name, got != NULL ? got : "none");
    }
    char endless[10001];
    memset(endless, 'x', 10000);
    endless[10000] = '\0';
    cr_expect_null(nearest_name(endless, names, 3, sizeof names[0]));
}
