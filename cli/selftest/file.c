/* file.c - the quarantine file as adjoint selftest writes it: rows for oneDNN's backend,
 * and in a comment how far the sweep is, so that --resume can go on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adjoint_io.h"
#include "cli/command.h"
#include "selftest.h"

int selftest_add_row(selftest *s, const char *text)
{
    if (s->n_row == s->room) {
        int room = 2 * s->room + 16;
        void *more = realloc(s->row, (size_t)room * sizeof *s->row);
        if (more == NULL)
            return complain("selftest", EXIT_FAILED, "out of memory");
        s->row = more;
        s->room = room;
    }
    snprintf(s->row[s->n_row++], ROW, "%s", text);
    return CONTINUE;
}

static int write_rows(FILE *f, void *user)
{
    const selftest *s = user;
    char part[SWEEP_TEXT];
    sweep_write(&s->sweep, part);
    fprintf(f, "# implementations that adjoint selftest found to be wrong\n");
    for (int i = 0; i < s->n_row; i++)
        fprintf(f, "%s\n", s->row[i]);
    fprintf(f, "# tried %lld of %s%s\n", (long long)s->next, part, s->bare ? " only" : "");
    return ferror(f);
}

int selftest_write(const selftest *s)
{
    adj_error error;
    return adj_file_replace(s->out, write_rows, (void *)s, &error) == ADJ_OK
               ? CONTINUE
               : complain("selftest", EXIT_FAILED, "--out: %s", error.message);
}

/* "# tried N of SWEEP", and "only" if the known rows were left out. 0: it is another line. */
static int read_position(selftest *s, char *line)
{
    static const char begin[] = "# tried ", between[] = " of ", bare[] = " only";
    char *end;
    if (strncmp(line, begin, strlen(begin)) != 0)
        return 0;
    errno = 0;
    s->next = strtoll(line + strlen(begin), &end, 10);
    if (errno != 0 || strncmp(end, between, strlen(between)) != 0)
        return 0;
    char *word = end + strlen(between), *space = strchr(word, ' ');
    s->bare = space != NULL && strcmp(space, bare) == 0;
    if (space != NULL)
        *space = '\0';
    return (space == NULL || s->bare) && sweep_read(&s->sweep, word) && s->next >= 0 &&
           s->next <= sweep_size(&s->sweep);
}

int selftest_read(selftest *s)
{
    char line[ROW];
    struct stat info;
    int found = 0, status = CONTINUE;
    int fd = open(s->out, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a pipe must not hang */
    FILE *f = NULL;
    errno = fd >= 0 ? 0 : errno;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
        f = fdopen(fd, "r");
    if (f == NULL) {
        if (fd >= 0)
            close(fd);
        return complain("selftest", EXIT_FAILED, "--resume: %s: %s", s->out,
                        errno != 0 ? strerror(errno) : "is not a regular file");
    }
    while (status == CONTINUE && fgets(line, sizeof line, f) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] != '#' && line[0] != '\0')
            status = selftest_add_row(s, line);
        else
            found |= read_position(s, line);
    }
    fclose(f);
    if (status == CONTINUE && !found)
        return complain("selftest", EXIT_FAILED,
                        "--resume: %s does not say how far it is (expected \"# tried N of ...\")",
                        s->out);
    s->started = s->next;
    return status;
}
