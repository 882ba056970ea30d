/* test_process.c - reasons for which no compiled program can run. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "emit/process.h"

/* The limit of descriptors lets the program be written, but not opened again to run it. */
Test(emit_process, program_cannot_be_opened_again)
{
    static const char source[] = "int main(void) { return 0; }\n";
    const struct rlimit limit = {100, 100};
    char why[ADJ_WHY] = "";
    streams s;
    cr_assert(streams_open(&s) && write_all(s.in, source, strlen(source)));
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int last = -1;
    for (int fd; (fd = fcntl(s.in, F_DUPFD_CLOEXEC, 0)) >= 0;)
        last = fd;
    close(last);
    cr_expect_eq(compile_input(&s, why), -1);
    cr_expect_str_eq(why, "cannot open the compiled program in /proc/self/fd: Too many open files");
}
