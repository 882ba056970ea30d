/* manual.c - see help.h: manual pages in roff's man macros. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adjoint.h"
#include "help.h"

enum { SOURCE_COLUMNS = 72 };

/* Up to end as roff reads it: a dash is a minus, no line begins with a command. */
static void put_word(const char *text, const char *end)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; text != end; text++)
        switch (*text) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '~': fputs("\\(ti", stdout); break;
        case '^': fputs("\\(ha", stdout); break;
        case '"': fputs("\\(dq", stdout); break;
        default: putchar(*text);
        }
}

static void put_roff(const char *text) { put_word(text, text + strlen(text)); }

static void put_line(const char *text)
{
    put_roff(text);
    putchar('\n');
}

/* A paragraph in lines that are not too long; roff fills them again. */
static void put_paragraph(const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, " ");
        if (column > 0) {
            int fits = column + n <= SOURCE_COLUMNS;
            putchar(fits ? ' ' : '\n');
            column = fits ? column : 0;
        }
        put_word(text, text + n);
        column += n + 1;
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

/* The date, of the sources where a packager says what it is. */
static void print_head(const char *command)
{
    char date[16] = "";
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    time_t t = epoch != NULL ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
    struct tm day;
    if (gmtime_r(&t, &day) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d", &day);
    fputs(".TH ADJOINT", stdout);
    if (command[0] != '\0')
        putchar('-');
    for (const char *c = command; *c != '\0'; c++)
        putchar(toupper((unsigned char)*c));
    printf(" 1 %s \"adjoint %s\" \"User Commands\"\n.nh\n.ad l\n", date, adj_version_text());
}

static void print_name(const char *command, const char *summary)
{
    printf(".SH NAME\nadjoint%s%s \\- ", command[0] != '\0' ? "\\-" : "", command);
    put_line(summary);
}

static void print_remark(const char *term, const char *text)
{
    fputs(".TP\n.B ", stdout);
    put_line(term);
    put_paragraph(text);
}

static void print_option(const option *o)
{
    fputs(".TP\n\\fB", stdout);
    put_roff(o->name);
    fputs("\\fR", stdout);
    if (o->value[0] != '\0') {
        fputs(o->bare != NULL ? " [\\fI" : " \\fI", stdout);
        put_roff(o->value);
        fputs(o->bare != NULL ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    put_paragraph(o->help);
}

static void print_surroundings(const usage *u)
{
    const remark *r = NULL;
    puts(".SH EXIT STATUS");
    for (int i = 0; (r = status_at(u, i)) != NULL; i++)
        print_remark(r->term, r->text);
    for (int i = 0; (r = variable_at(u, i)) != NULL; i++) {
        if (i == 0)
            puts(".SH ENVIRONMENT");
        print_remark(r->term, r->text);
    }
    if (u->examples == NULL)
        return;
    puts(".SH EXAMPLES");
    for (r = u->examples; r->term != NULL; r++)
        print_remark(r->term, r->text);
}

/* The line that "adjoint help" has for it. */
static const char *summary_of(const char *name)
{
    const command *c = commands;
    while (c->name != NULL && strcmp(c->name, name) != 0)
        c++;
    return c->name != NULL ? c->summary : "";
}

void print_page(const usage *u)
{
    const option *o = NULL;
    print_head(u->command);
    print_name(u->command, summary_of(u->command));
    printf(".SH SYNOPSIS\n.B adjoint %s\n", u->command);
    if (u->arguments != NULL)
        printf(".I %s\n", u->arguments);
    if (option_at(u, 0) != NULL)
        puts("[\\fIOPTION\\fR]...");
    puts(".SH DESCRIPTION");
    put_paragraph(u->summary);
    puts(".SH OPTIONS");
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        if (o->instead == NULL)
            print_option(o);
    puts(".TP\n\\fB\\-\\-help\\fR\nprints the same and ends");
    print_surroundings(u);
    puts(".SH SEE ALSO\n.BR adjoint (1)");
}

void print_overview_page(void)
{
    print_head("");
    print_name("", "small convolutional networks on a CPU");
    puts(".SH SYNOPSIS\n.B adjoint\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION");
    put_paragraph(
        "Trains small convolutional networks, checks their gradients and compares backends. "
        "The names of options may be shortened as long as they are clear; - for a FILE is "
        "standard input or output.");
    puts(".SH COMMANDS");
    for (const command *c = commands; c->name != NULL; c++)
        print_remark(c->name, c->summary);
    print_surroundings(&whole_tool);
    puts(".SH SEE ALSO");
    for (const command *c = commands; c->name != NULL; c++)
        printf(".BR adjoint\\-%s (1)%s\n", c->name, c[1].name != NULL ? "," : "");
}
