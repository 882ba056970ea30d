/* test_machine.c - the description of a machine: values read from made-up system files. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/machine/machine.h"
#include "tests/temporary.h"

/* ---- a planted system ---- */

typedef struct {
    const char *path, *text;
} planted_file;

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(path);
}

/* With folders where they are missing; text NULL: not at all. */
static void put(const char *root, const planted_file *p)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, p->path);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = p->text != NULL ? fopen(path, "w") : NULL;
    if (f != NULL) {
        fputs(p->text, f);
        fclose(f);
    }
}

static machine_facts look_at(int n, const planted_file file[])
{
    const temporary root = temporary_folder();
    cr_assert_str_not_empty(root.s);
    for (int i = 0; i < n; i++)
        put(root.s, &file[i]);
    machine_facts m = machine_look(root.s);
    nftw(root.s, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return m;
}

#define CPU "/sys/devices/system/cpu/"
#define LOOK(files) look_at(sizeof(files) / sizeof *(files), files)

Test(machine, of_planted_files)
{
    static const planted_file files[] = {
        {"/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU 9000 @ 3 GHz\n"
                          "Features\t: fp asimd aes sha1 fphp asimdhp madeup sve bf16\n"},
        {CPU "cpu0/cache/index0/level", "1\n"},
        {CPU "cpu0/cache/index0/type", "Instruction\n"},
        {CPU "cpu0/cache/index0/size", "64K\n"},
        {CPU "cpu0/cache/index1/level", "1\n"},
        {CPU "cpu0/cache/index1/type", "Data\n"},
        {CPU "cpu0/cache/index1/size", "48K\n"},
        {CPU "cpu0/cache/index2/level", "3\n"},
        {CPU "cpu0/cache/index2/type", "Unified\n"},
        {CPU "cpu0/cache/index2/size", "24M\n"},
    };
    const machine_facts m = LOOK(files);
    cr_expect_str_eq(m.name, "Some CPU 9000 @ 3 GHz");
    cr_expect_str_eq(m.features, "asimd fphp asimdhp sve bf16");
    cr_assert_eq(m.n_cache, 3);
    const machine_cache *l1 = machine_data_cache(&m, 1), *l3 = machine_data_cache(&m, 3);
    cr_assert(l1 != NULL && l3 != NULL);
    cr_expect_eq(l1->bytes, 49152);
    cr_expect_eq(l3->bytes, 25165824);
    cr_expect_null(machine_data_cache(&m, 2));
    cr_expect_eq(machine_shared_cache(&m), 25165824);
    const machine_facts hidden = {.n_cache = 1, .cache = {{2, "Unified", 1 << 20}}};
    cr_expect_eq(machine_shared_cache(&hidden), 0);
}

Test(machine, of_x86)
{
    static const planted_file files[] = {
        {"/proc/cpuinfo", "model name\t: Another CPU\nflags\t\t: fpu sse sse4_2 avx avx2 madeup "
                          "avx512f amx_bf16\nvmx flags\t: vnmi fma\n"},
    };
    const machine_facts m = LOOK(files);
    cr_expect_str_eq(m.features, "sse4_2 avx avx2 avx512f amx_bf16");
}

/* Text that is not a number, and impossible numbers, count as unknown. */
Test(machine, of_nonsense)
{
    static const char *const sizes[] = {
        "-5K\n", "99999999999999999999K\n", "9999999999M\n", "K\n", "\n", ""};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const planted_file files[] = {
            {CPU "cpu0/cache/index0/level", "2\n"},
            {CPU "cpu0/cache/index0/type", "a type whose name is far too long for any cache\n"},
            {CPU "cpu0/cache/index0/size", sizes[i]}};
        const machine_facts m = LOOK(files);
        cr_expect_null(machine_data_cache(&m, 2), "%s", sizes[i]);
        cr_expect_str_eq(m.name, "unknown processor");
    }
}
