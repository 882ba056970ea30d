/* fail_malloc.c - preloaded by tests/test_out_of_memory.sh: makes allocation number FAIL_AT, from
 * 1, of a library fail. FAIL_IN is part of the library's file name; allocations by functions that
 * it calls count, too. The file FAIL_DONE is made when the allocation fails. */
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the C library's own names
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nmemb, size_t size);
void *__libc_realloc(void *ptr, size_t size);
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

static uintptr_t from, to;
static long wanted;
static atomic_long count;
static _Thread_local int inside; /* unwinding allocates, too */

static int find_library(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    for (int i = 0; strstr(info->dlpi_name, name) != NULL && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
            from = info->dlpi_addr + p->p_vaddr;
            to = from + p->p_memsz;
        }
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    const char *library = getenv("FAIL_IN"), *at = getenv("FAIL_AT");
    void *frame[2];
    if (library == NULL || at == NULL)
        return;
    inside = 1;
    (void)backtrace(frame, 2); /* loads the unwinder */
    inside = 0;
    dl_iterate_phdr(find_library, (void *)library);
    wanted = strtol(at, NULL, 10);
}

static int fails(void)
{
    enum { DEPTH = 8 };
    void *frame[DEPTH];
    int is_theirs = 0;
    if (wanted == 0 || to == 0 || inside)
        return 0;
    inside = 1;
    const int n = backtrace(frame, DEPTH);
    inside = 0;
    for (int i = 0; i < n; i++)
        is_theirs |= (uintptr_t)frame[i] >= from && (uintptr_t)frame[i] < to;
    if (!is_theirs || atomic_fetch_add(&count, 1) + 1 != wanted)
        return 0;
    const int fd = open(getenv("FAIL_DONE"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
    return 1;
}

void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t nmemb, size_t size) { return fails() ? NULL : __libc_calloc(nmemb, size); }
void *realloc(void *ptr, size_t size) { return fails() ? NULL : __libc_realloc(ptr, size); }
