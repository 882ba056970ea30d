/* completion.c - see help.h: completion scripts for bash and zsh. Names of models, ops and
 * optimizers are written into the scripts, which are installed with the tool. */
#include <string.h>

#include "help.h"

static int is_file(const option *o)
{
    return strcmp(o->value, "FILE") == 0 || strcmp(o->value, "PATH") == 0;
}

/* Prints the valid words of the option's value. */
static void print_values(const option *o)
{
    const char *name = NULL;
    if (o->words != NULL)
        fputs(o->words, stdout);
    for (int i = 0; o->names != NULL && (name = o->names(i)) != NULL; i++)
        printf("%s%s", i > 0 || o->words != NULL ? " " : "", name);
}

/* ---- bash ---- */

void print_bash_head(void)
{
    fputs("# bash completion of adjoint, made by the tool itself\n"
          "_adjoint()\n"
          "{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    local words='' kind=words\n"
          "    local commands='",
          stdout);
    for (const command *c = commands; c->name != NULL; c++)
        printf("%s ", c->name);
    puts("help'\n"
         "    if [ \"$word\" = = ]; then # --model=x is three words\n"
         "        word=''\n"
         "    elif [ \"$before\" = = ] && [ \"$COMP_CWORD\" -gt 2 ]; then\n"
         "        before=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    fi\n"
         "    case $COMP_CWORD:${COMP_WORDS[1]} in\n"
         "    1:* | 2:help)\n"
         "        words=$commands\n"
         "        ;;");
}

static void print_bash_value(const option *o)
{
    printf("        %s) ", o->name);
    if (o->words != NULL || o->names != NULL) {
        fputs("words='", stdout);
        print_values(o);
        puts("' ;;");
    } else {
        printf("kind=%s ;;\n", is_file(o) ? "file" : "none");
    }
}

void print_bash(const usage *u)
{
    const option *o = NULL;
    printf("    *:%s)\n        case $before in\n", u->command);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        if (o->instead == NULL && o->flag == NULL)
            print_bash_value(o);
    fputs("        *) words='", stdout);
    const char *name = NULL;
    for (int i = 0; u->names != NULL && (name = u->names(i)) != NULL; i++)
        printf("%s ", name);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        if (o->instead == NULL)
            printf("%s ", o->name);
    puts("--help' ;;\n        esac\n        ;;");
}

const char bash_end[] =
    "    esac\n"
    "    case $kind in\n"
    "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;\n"
    "    file) mapfile -t COMPREPLY < <(compgen -f -- \"$word\") ;;\n"
    "    esac\n"
    "}\n"
    "complete -o filenames -F _adjoint adjoint\n";

/* ---- zsh ---- */

/* Prints text within single quotes and square brackets. */
static void put_zsh(const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '\'': fputs("'\\''", stdout); break;
        case '[':
        case ']':
        case ':':
        case '\\': putchar('\\'); // fall through
        default: putchar(*text);
        }
}

void print_zsh_head(void)
{
    puts("#compdef adjoint\n"
         "# zsh completion of adjoint, made by the tool itself\n"
         "_adjoint() {\n"
         "    local -a commands=(");
    for (const command *c = commands; c->name != NULL; c++) {
        printf("        '%s:", c->name);
        put_zsh(c->summary);
        puts("'");
    }
    puts("        'help:the options of a command'\n"
         "    )\n"
         "    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $words[1] in");
}

static void print_zsh_option(const option *o)
{
    printf(" \\\n            '%s%s[", o->name, o->flag == NULL ? "=" : "");
    put_zsh(o->help);
    putchar(']');
    if (o->flag == NULL) {
        printf(":%s", o->bare != NULL ? ":" : "");
        put_zsh(o->value);
        putchar(':');
        if (o->words != NULL || o->names != NULL) {
            putchar('(');
            print_values(o);
            putchar(')');
        } else {
            fputs(is_file(o) ? "_files" : " ", stdout);
        }
    }
    putchar('\'');
}

void print_zsh(const usage *u)
{
    const option *o = NULL;
    printf("    %s)\n        _arguments '--help[prints this help]'", u->command);
    for (int i = 0; (o = option_at(u, i)) != NULL; i++)
        if (o->instead == NULL)
            print_zsh_option(o);
    const char *name = NULL;
    for (int i = 0; u->names != NULL && (name = u->names(i)) != NULL; i++)
        printf("%s%s", i == 0 ? " \\\n            '1:NAME:(" : " ", name);
    puts(u->names != NULL ? ")' ;;" : " ;;");
}

const char zsh_end[] = "    esac\n"
                       "}\n"
                       "_adjoint \"$@\"\n";
