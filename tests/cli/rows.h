/* rows.h - lines of the tool with what they print, from the file beside the test, test_x.txt for
 * test_x.c:
 *
 *   == SECTION
 *   STATUS LINE > WORDS 2> WORDS
 *
 * The line ends with that exit status and prints the words (\n: a new line). Standard output > and
 * standard error 2> may have several words, or * for any; one without words stays empty. After
 * " !> " or " !2> " are words that it does not print. "== SECTION: COMMAND": with these words every
 * line of the section begins. A line that begins with $ is one of a shell, to which the tool is
 * adjoint. A line that the tool refuses leaves no file. A row that ends with \ goes on in the next
 * line, and one that begins with # is a comment. */
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

/* Cuts a row behind its next " > ", " 2> ", " !> " or " !2> ", and sets of which stream and kind
 * that is. Returns what is behind it, or NULL. */
static inline char *next_words(char *row, int *is_err, int *is_absent)
{
    char *end = strstr(row, "> "), *mark = end;
    for (; end != NULL; end = mark = strstr(end + 1, "> ")) {
        *is_err = mark > row && mark[-1] == '2';
        mark -= *is_err;
        *is_absent = mark > row && mark[-1] == '!';
        mark -= *is_absent;
        if (mark > row && mark[-1] == ' ')
            break;
    }
    if (end == NULL)
        return NULL;
    mark[-1] = '\0';
    return end + 2;
}

/* Expects the words of a row of the line that has ended. */
static inline void expect_words(const char *line, char *words, int is_err, int is_absent)
{
    const char *const streams[] = {ran.out, ran.err};
    int has_words[2] = {0, 0};
    while (words != NULL) {
        const char *text = streams[is_err], *const expected = words;
        int is_absent_now = is_absent;
        has_words[is_err] = 1;
        words = next_words(words, &is_err, &is_absent);
        unescape((char *)expected);
        const int is_there = strcmp(expected, "*") == 0 || strstr(text, expected) != NULL;
        cr_expect_neq(is_there, is_absent_now, "%s: %s\"%s\" in: %s", line,
                      is_absent_now ? "" : "no ", expected, text);
    }
    for (int i = 0; i < 2; i++)
        cr_expect(has_words[i] || streams[i][0] == '\0', "%s: %s", line, streams[i]);
    cr_expect_null(strstr(ran.err, "adj_"), "%s names a function: %s", line, ran.err);
}

static inline void expect_row(const char *command, char *row)
{
    char line[ROW], *rest;
    int is_err = 0, is_absent = 0;
    const int status = (int)strtol(row, &rest, 10), before = files_in(&here);
    cr_assert(rest > row && *rest == ' ', "a row without a status: %s", row);
    char *words = next_words(rest, &is_err, &is_absent);
    snprintf(line, sizeof line, "%s%s", command, rest);
    if (rest[1] == '$')
        shell("%s", rest + 2);
    else
        run_line(line);
    cr_expect_eq(ran.status, status, "%s: status %d, %s", line, ran.status, ran.err);
    cr_expect(rest[1] == '$' || status == 0 || files_in(&here) == before, "%s: a file is left",
              line);
    expect_words(line, words, is_err, is_absent);
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

/* Runs the lines of a section and expects what their rows have. */
static inline void expect_rows(const char *section)
{
    char path[2 * PATH_MAX], row[ROW], command[ROW];
    const size_t length = strlen(section);
    int is_found = 0, n = 0;
    snprintf(path, sizeof path, "%s/%.*stxt", top, (int)strlen(__BASE_FILE__) - 1, __BASE_FILE__);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    while (read_row(f, row)) {
        if (strncmp(row, "== ", 3) == 0) {
            const char *end = row + 3 + length;
            is_found = strncmp(row + 3, section, length) == 0 && (*end == '\0' || *end == ':');
            snprintf(command, sizeof command, "%s", is_found && *end == ':' ? end + 2 : "");
        } else if (is_found && row[0] != '\0' && row[0] != '#') {
            expect_row(command, row);
            n++;
        }
    }
    fclose(f);
    cr_assert_gt(n, 0, "%s: no section %s", path, section);
}

#endif
