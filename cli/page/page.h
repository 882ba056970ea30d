/* page.h - what the tool's HTML pages share: the skeleton, the style and small pieces.
 *
 * A page is one file that needs no other, no script and no network, in light and dark, from a phone
 * to a desktop. Texts are escaped here; attributes stand in double quotes. Sections are closed by
 * the next one or by the end. */
#ifndef CLI_PAGE_H
#define CLI_PAGE_H

#include <stdio.h>

typedef struct {
    const char *name, *value; /* value == NULL: left out */
} page_fact;

/* kind: of page, "training"; summary: a sentence, or NULL. */
void page_begin(FILE *f, const char *kind, const char *title, const char *summary);
/* id: of letters and '-'. */
void page_section(FILE *f, const char *id, const char *title);
/* A paragraph in the colour of notes. */
void page_note(FILE *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void page_end(FILE *f);

/* Figures side by side, the value large. */
void page_tiles(FILE *f, int n, const page_fact tile[]);
/* Names and values, one pair a line. */
void page_facts(FILE *f, int n, const page_fact fact[]);
/* A command line, wrapped where it must be. */
void page_code(FILE *f, const char *line);

/* What is wider than the page is moved within its own frame, which label names for those who do not
 * see it. */
void page_frame_begin(FILE *f, const char *label);
void page_frame_end(FILE *f);

/* ---- cells of a table; class: CSS's, "" for none ("l": to the left, "more": not on a phone) ----
 */

void page_cell_text(FILE *f, const char *class, const char *text);
/* A name and a line below it, "" for none; both may be broken behind '_', '+' and '/'. */
void page_cell_name(FILE *f, const char *name, const char *below);
/* NaN: a dash; an infinite one is drawn as such. */
void page_cell_number(FILE *f, const char *class, const char *format, double v)
    __attribute__((format(printf, 3, 0)));

/* ---- numbers as people read them ---- */

enum { PAGE_NUMBER = 40 };
/* "1 234 567" with thin spaces (in UTF-8); returns text. */
const char *page_whole(char text[PAGE_NUMBER], long long v);
/* "512 B", "1.2 MB" (of 1000 kB). */
const char *page_bytes(char text[PAGE_NUMBER], double bytes);
/* "812", "1.2 M" for large counts. */
const char *page_count(char text[PAGE_NUMBER], double v);
/* "41 s", "3 min 20 s", "2 h 5 min". */
const char *page_seconds(char text[PAGE_NUMBER], double seconds);

#endif
