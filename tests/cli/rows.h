/* rows.h - lines of the tool with what they print, from lines.txt; a section of test_bench.c:
 *
 *   == bench/SECTION
 *   STATUS LINE > WORDS 2> WORDS
 *
 * The line ends with that exit status and prints the words (\n: a new line). Standard output > and
 * standard error 2> may have several words, or * for any; one without words stays empty. Behind
 * => or 2=> is all that is printed, behind !> or !2> what is not. "== bench/SECTION: COMMAND": with
 * these words every line of the section begins. A line that begins with $ is one of bash, to
 * which the tool is adjoint, and fails where a command of a pipe does. A line that the tool refuses
 * leaves no file. A row that ends with \ goes on in the next line, and one that begins with # is a
 * comment. */
#ifndef TESTS_CLI_ROWS_H
#define TESTS_CLI_ROWS_H

#include "cli/child.h"

enum { ROW = 1 << 10 };

/* Replaces \n in the text by a new line. */
static inline void unescape(char *text)
{
    for (char *at; (at = strstr(text, "\\n")) != NULL;) {
        *at = '\n';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
}

/* A mark in front of words. */
typedef struct {
    const char *text;
    int is_err;
    enum { THERE, ABSENT, ALONE } kind;
} row_mark;

/* Ends a row at its next mark. Returns what is behind it, or NULL. */
static inline char *next_words(char *row, const row_mark **mark)
{
    static const row_mark marks[] = {{" > ", 0, THERE},    {" 2> ", 1, THERE}, {" !> ", 0, ABSENT},
                                     {" !2> ", 1, ABSENT}, {" => ", 0, ALONE}, {" 2=> ", 1, ALONE}};
    char *first = NULL;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char *at = strstr(row, marks[i].text);
        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            *mark = &marks[i];
        }
    }
    if (first == NULL)
        return NULL;
    *first = '\0';
    return first + strlen((*mark)->text);
}

/* Expects the words of a row of the line that has ended. */
static inline void expect_words(const char *line, char *words, const row_mark *mark)
{
    const char *const streams[] = {ran.out, ran.err};
    int has_words[2] = {0, 0};
    while (words != NULL) {
        const char *text = streams[mark->is_err];
        const row_mark *next = NULL;
        char *rest = next_words(words, &next);
        unescape(words);
        has_words[mark->is_err] = 1;
        const int is_there = strcmp(words, "*") == 0 || strstr(text, words) != NULL;
        const int is_right = mark->kind == ALONE    ? strcmp(text, words) == 0
                             : mark->kind == ABSENT ? !is_there
                                                    : is_there;
        cr_expect(is_right, "%s: expected%s%s, got %s", line, mark->text, words, text);
        words = rest;
        mark = next;
    }
    for (int i = 0; i < 2; i++)
        cr_expect(has_words[i] || streams[i][0] == '\0', "%s: %s", line, streams[i]);
    cr_expect_null(strstr(ran.err, "adj_"), "%s names a function: %s", line, ran.err);
}

static inline void expect_row(const char *command, char *row)
{
    char line[ROW], *rest;
    const row_mark *mark = NULL;
    const int status = (int)strtol(row, &rest, 10), before = files_in(&here);
    cr_assert(rest > row && *rest == ' ', "a row without a status: %s", row);
    char *words = next_words(rest, &mark);
    snprintf(line, sizeof line, "%s%s", command, rest);
    if (rest[1] == '$')
        shell("%s", rest + 2);
    else
        run_line(line);
    cr_expect_eq(ran.status, status, "%s: status %d, %s", line, ran.status, ran.err);
    cr_expect(rest[1] == '$' || status == 0 || files_in(&here) == before, "%s: a file is left",
              line);
    expect_words(line, words, mark);
}

/* Reads a row, which may be several lines. Returns 0 at the end of the file. */
static inline int read_row(FILE *f, char row[ROW])
{
    size_t n = 0;
    while (fgets(row + n, (int)(ROW - n), f) != NULL) {
        n = strlen(row);
        cr_assert(n > 0 && row[n - 1] == '\n', "a row that is too long: %s", row);
        row[--n] = '\0';
        if (n == 0 || row[n - 1] != '\\')
            return 1;
        row[--n] = '\0';
    }
    return 0;
}

/* Runs the lines of a section of the test that includes this, and expects what their rows have. */
static inline void expect_rows(const char *section)
{
    static const char prefix[] = "tests/cli/test_";
    char path[2 * PATH_MAX], name[ROW], row[ROW], command[ROW];
    const char *test = __BASE_FILE__ + sizeof prefix - 1;
    const size_t length =
        (size_t)snprintf(name, sizeof name, "%.*s/%s", (int)strcspn(test, "."), test, section);
    int is_found = 0, n = 0;
    snprintf(path, sizeof path, "%s/tests/cli/lines.txt", top);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    while (read_row(f, row)) {
        if (strncmp(row, "== ", 3) == 0) {
            const char *end = row + 3 + length;
            is_found = strncmp(row + 3, name, length) == 0 && (*end == '\0' || *end == ':');
            snprintf(command, sizeof command, "%s", is_found && *end == ':' ? end + 2 : "");
        } else if (is_found && row[0] != '\0' && row[0] != '#') {
            expect_row(command, row);
            n++;
        }
    }
    fclose(f);
    cr_assert_gt(n, 0, "%s: no section %s", path, name);
}

#endif
