/* left_out.c - the line about files and folders that are not read. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "folder.h"

/* Copies a name's ending in lower case, or "" if there is none or it is too long. */
static void take_ending(const char *name, char text[LEFT_OUT_ENDING])
{
    const char *dot = strrchr(name, '.');
    size_t n = dot != NULL && dot != name ? strlen(dot) : 0;

    n = n < LEFT_OUT_ENDING ? n : 0;
    for (size_t i = 0; i < n; i++)
        text[i] = (char)tolower((unsigned char)dot[i]);
    text[n] = '\0';
}

void left_out_file(left_out *l, const char *name)
{
    char ending[LEFT_OUT_ENDING];
    int i = 0;

    l->files++;
    take_ending(name, ending);
    while (i < l->n_ending && strcmp(l->ending[i].text, ending) != 0)
        i++;
    if (i == LEFT_OUT_ENDINGS)
        return;
    if (i == l->n_ending)
        memcpy(l->ending[l->n_ending++].text, ending, sizeof ending);
    l->ending[i].n++;
}

void left_out_folder(left_out *l, left_out_reason reason, const char *name)
{
    static const char more[] = ", ...";
    char *names = l->folder[reason].names;
    const int is_first = l->folder[reason].n++ == 0;

    if (l->folder[reason].is_cut)
        return;
    l->folder[reason].is_cut = strlen(names) + strlen(name) + 2 + sizeof more > LEFT_OUT_NAMES;
    if (l->folder[reason].is_cut)
        c_append(names, LEFT_OUT_NAMES, "%s", more + (is_first ? 2 : 0));
    else
        c_append(names, LEFT_OUT_NAMES, "%s%s", is_first ? "" : ", ", name);
}

/* ---- the line ---- */

static const char *comma(const char *text) { return text[0] != '\0' ? ", " : ""; }

/* Orders endings by falling frequency, and equally frequent ones by name. */
static int by_frequency(const void *a, const void *b)
{
    const left_out_ending *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp(x->text, y->text);
}

static void append_endings(const left_out *l, char text[ADJ_MESSAGE])
{
    enum { SHOWN = 4 };
    left_out sorted = *l;
    int64_t rest = l->files;

    qsort(sorted.ending, (size_t)sorted.n_ending, sizeof *sorted.ending, by_frequency);
    c_append(text, ADJ_MESSAGE, "%lld file%s with other endings (", (long long)l->files,
             l->files > 1 ? "s" : "");
    for (int k = 0; k < SHOWN && k < sorted.n_ending; k++) {
        const left_out_ending *e = &sorted.ending[k];
        rest -= e->n;
        c_append(text, ADJ_MESSAGE, "%s%s %lld", k > 0 ? ", " : "",
                 e->text[0] != '\0' ? e->text : "none", (long long)e->n);
    }
    if (rest > 0)
        c_append(text, ADJ_MESSAGE, ", others %lld", (long long)rest);
    c_append(text, ADJ_MESSAGE, ")");
}

static void append_count(char text[ADJ_MESSAGE], int64_t n, const char *one, const char *many)
{
    if (n > 0)
        c_append(text, ADJ_MESSAGE, "%s%lld %s", comma(text), (long long)n, n > 1 ? many : one);
}

void left_out_text(const left_out *l, char text[ADJ_MESSAGE])
{
    static const char *const reasons[FOLDER_REASONS] = {"without images", "without class folders",
                                                        "beside the folders of the parts"};

    text[0] = '\0';
    if (l->files > 0)
        append_endings(l, text);
    append_count(text, l->ignored, "hidden or system name", "hidden or system names");
    append_count(text, l->outside, "file outside class folders", "files outside class folders");
    append_count(text, l->inside, "folder inside class folders", "folders inside class folders");
    for (int i = 0; i < FOLDER_REASONS; i++)
        if (l->folder[i].n == 1)
            c_append(text, ADJ_MESSAGE, "%sfolder %s %s", comma(text), l->folder[i].names,
                     reasons[i]);
        else if (l->folder[i].n > 1)
            c_append(text, ADJ_MESSAGE, "%s%lld folders %s (%s)", comma(text),
                     (long long)l->folder[i].n, reasons[i], l->folder[i].names);
}
