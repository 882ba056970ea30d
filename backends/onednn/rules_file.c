/* rules_file.c - which rules hold on this machine, from a text file:
 *   adjoint rules 1 onednn 2.6.3 avx2 AuthenticAMD-25-1
 *   on forward_from_8_f32
 *   off input_1x1_f32
 *   end 2
 * The first line is this machine's, or the file is ignored; # begins a comment. It is taken whole
 * or not at all, and only changes which candidate is first: the worst that a forged file does is to
 * select slow kernels. */
#include <string.h>

#include "conv_rules.h"

enum { MAX_LINES = 1000 };

/* ---- the machine ---- */

void rules_describe(char *text, size_t size)
{
    char version[ISA_NAME + 16];
    const cpu_id cpu = this_cpu();
    machine_describe(version, sizeof version);
    snprintf(text, size, "adjoint rules 1 onednn %s %s", version,
             cpu.vendor[0] == '\0' ? "unknown" : cpu.vendor);
    if (cpu.vendor[0] != '\0')
        snprintf(text + strlen(text), size - strlen(text), "-%d-%d", cpu.family, cpu.model);
}

/* ---- rules by name ---- */

/* The row's bit; 0: there is no such row. */
static uint64_t bit_of(const char *name)
{
    for (int i = 0; i < conv_rule_count(); i++)
        if (strcmp(conv_rule_at(i)->name, name) == 0)
            return UINT64_C(1) << i;
    return 0;
}

/* "on NAME" or "off NAME". What is wrong with it; NULL: nothing. */
static const char *read_rule(const char *line, forced_rules *rules)
{
    int is_on = strncmp(line, "on ", 3) == 0;
    if (!is_on && strncmp(line, "off ", 4) != 0)
        return "expected on, off or end";
    const uint64_t bit = bit_of(line + (is_on ? 3 : 4));
    if (bit == 0)
        return "there is no such rule";
    if ((rules->on | rules->off) & bit)
        return "the rule is there twice";
    *(is_on ? &rules->on : &rules->off) |= bit;
    return NULL;
}

/* Without comment and blanks at the end; what begins a line is left. */
static void trim(char *line)
{
    size_t n = strcspn(line, "#");
    while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
        n--;
    line[n] = '\0';
}

/* ---- the file ---- */

/* The last line says how many rules there were. */
static const char *read_end(FILE *f, const char *count, int n)
{
    char expected[16], line[LINE];
    snprintf(expected, sizeof expected, "%d", n);
    if (strcmp(count, expected) != 0)
        return "the count is wrong";
    return next_line(f, line) == 0 ? NULL : "something follows the end";
}

/* Reads what is behind the first line. What is wrong in line *number; NULL: nothing. */
static const char *read_lines(FILE *f, forced_rules *rules, int *number)
{
    char line[LINE];
    int more, n = 0;
    for (*number = 2; (more = next_line(f, line)) > 0 && *number < MAX_LINES; ++*number) {
        trim(line);
        if (line[0] == '\0')
            continue;
        if (strncmp(line, "end ", 4) == 0)
            return read_end(f, line + 4, n);
        const char *wrong = read_rule(line, rules);
        if (wrong != NULL)
            return wrong;
        n++;
    }
    return more < 0    ? "is too long, not text, or cut off in the middle"
           : more == 0 ? "the end is missing"
                       : "there are too many lines";
}

static void read_file(onednn *o, const char *path, char *message)
{
    char head[LINE], line[LINE];
    forced_rules rules = {0, 0};
    const char *wrong = NULL;
    int number = 0;
    FILE *f = open_regular(path, &wrong);
    if (f != NULL) {
        rules_describe(head, sizeof head);
        if (next_line(f, line) <= 0 || strncmp(line, "adjoint rules ", 14) != 0)
            wrong = "is no file of rules";
        else if (strcmp(line, head) != 0)
            wrong = "was made for another CPU or another version of oneDNN or adjoint";
        else
            wrong = read_lines(f, &rules, &number);
        fclose(f);
    }
    if (wrong == NULL)
        o->rules = rules;
    else if (number > 0)
        snprintf(message, ADJ_WHY, "rules file %.60s is ignored: line %d: %s", path, number, wrong);
    else
        snprintf(message, ADJ_WHY, "rules file %.60s is ignored: %s", path, wrong);
}

void rules_read(onednn *o, const char *choice, char *message)
{
    const char *name = strchr(choice, ':');
    if (strncmp(choice, "with:", 5) == 0)
        o->rules.on = bit_of(name + 1);
    else if (strncmp(choice, "without:", 8) == 0)
        o->rules.off = bit_of(name + 1);
    else
        read_file(o, choice, message);
}
