/* test_machine.c - the description of a machine: values read from made-up system files, and
 * invariants of the machine that runs the test. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <omp.h>
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

Test(machine, of_two_cores_with_two_threads_each)
{
    static const planted_file files[] = {
        {"/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU 9000 @ 3 GHz\n"
                          "Features\t: fp asimd aes sha1 fphp asimdhp madeup sve bf16\n"},
        {CPU "online", "0-3\n"},
        {CPU "cpu0/topology/thread_siblings_list", "0,2\n"},
        {CPU "cpu1/topology/thread_siblings_list", "1,3\n"},
        {CPU "cpu2/topology/thread_siblings_list", "0,2\n"},
        {CPU "cpu3/topology/thread_siblings_list", "1,3\n"},
        {CPU "cpu0/cache/index0/level", "1\n"},
        {CPU "cpu0/cache/index0/type", "Instruction\n"},
        {CPU "cpu0/cache/index0/size", "64K\n"},
        {CPU "cpu0/cache/index0/shared_cpu_list", "0,2\n"},
        {CPU "cpu0/cache/index1/level", "1\n"},
        {CPU "cpu0/cache/index1/type", "Data\n"},
        {CPU "cpu0/cache/index1/size", "48K\n"},
        {CPU "cpu0/cache/index2/level", "3\n"},
        {CPU "cpu0/cache/index2/type", "Unified\n"},
        {CPU "cpu0/cache/index2/size", "24M\n"},
        {CPU "cpu0/cache/index2/shared_cpu_list", "0-3\n"},
    };
    const machine_facts m = LOOK(files);
    cr_expect_str_eq(m.name, "Some CPU 9000 @ 3 GHz");
    cr_expect_str_eq(m.features, "asimd fphp asimdhp sve bf16");
    cr_expect(machine_has(&m, "asimdhp") && machine_has(&m, "asimd") && machine_has(&m, "bf16"));
    cr_expect(!machine_has(&m, "avx2") && !machine_has(&m, "hp") && !machine_has(&m, ""));
    cr_expect_eq(m.processors, 4);
    cr_expect_eq(m.cores, 2);
    cr_assert_eq(m.n_cache, 3);
    cr_expect_eq(m.cache[0].shared, 2);
    cr_expect_eq(m.cache[1].shared, 0);
    const machine_cache *l1 = machine_data_cache(&m, 1), *l3 = machine_data_cache(&m, 3);
    cr_assert(l1 != NULL && l3 != NULL);
    cr_expect_eq(l1->bytes, 49152);
    cr_expect_eq(l3->bytes, 25165824);
    cr_expect_eq(l3->shared, 4);
    cr_expect_null(machine_data_cache(&m, 2));
    cr_expect_eq(machine_shared_cache(&m), 25165824);
    const machine_facts hidden = {.n_cache = 1, .cache = {{2, "Unified", 1 << 20, 1}}};
    cr_expect_eq(machine_shared_cache(&hidden), 0);
}

/* Text that is not a number, and impossible numbers, count as unknown. */
Test(machine, of_nonsense)
{
    static const planted_file lists[] = {
        {CPU "online", "3-0\n"}, {CPU "online", "-1\n"},         {CPU "online", "all\n"},
        {CPU "online", "0-\n"},  {CPU "online", "0-3;4\n"},      {CPU "online", "\n"},
        {CPU "online", ""},      {CPU "online", "0-999999999\n"}};
    static const char *const sizes[] = {
        "-5K\n", "99999999999999999999K\n", "9999999999M\n", "K\n", "\n", ""};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const machine_facts m = look_at(1, &lists[i]);
        cr_expect(m.processors == 0 && m.cores == 0, "%s", lists[i].text);
        cr_expect_str_eq(m.name, "unknown processor");
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const planted_file files[] = {
            {CPU "cpu0/cache/index0/level", "2\n"},
            {CPU "cpu0/cache/index0/type", "a type whose name is far too long for any cache\n"},
            {CPU "cpu0/cache/index0/size", sizes[i]},
            {CPU "cpu0/cache/index0/shared_cpu_list", "0-\n"}};
        const machine_facts m = LOOK(files);
        cr_expect_null(machine_data_cache(&m, 2), "%s", sizes[i]);
        cr_expect(m.n_cache == 0 || m.cache[0].shared == 0);
    }
}

/* ---- this machine ---- */

/* Linux tells the same in other words: the flags in /proc/cpuinfo. */
Test(machine, features_are_those_that_the_system_tells)
{
    static const char *const known[] = {"sse4_2",   "avx",      "f16c",        "fma",
                                        "avx2",     "avx_vnni", "avx512f",     "avx512dq",
                                        "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
                                        "amx_tile", "amx_int8", "avx512_fp16", "amx_bf16"};
    static char line[16384];
    const machine_facts m = machine_look("");
    FILE *f = fopen("/proc/cpuinfo", "r");
    int found = 0;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = strncmp(line, "flags", 5) == 0;
    if (f != NULL)
        fclose(f);
    if (!found)
        cr_skip_test("machine: /proc/cpuinfo has no flags here");
    line[strcspn(line, "\n")] = ' ';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", known[i]);
        cr_expect_eq(machine_has(&m, known[i]), strstr(line, word) != NULL, "%s", known[i]);
    }
}

/* Two multiply-adds of the widest vectors in each of two units are 64 operations of f32 a cycle;
 * AMX makes 2,048 of bf16. */
static void check_speed(const machine_speed *s, int threads)
{
    const double cycles = 8e9 * threads;
    cr_expect_eq(s->threads, threads);
    cr_expect(s->f32.flops > 0 && s->f32.flops < 64 * 2 * cycles, "%g", s->f32.flops);
    cr_expect_str_not_empty(s->f32.unit);
    const machine_peak *const halves[] = {&s->bf16, &s->f16};
    for (int i = 0; i < 2; i++) {
        cr_expect(halves[i]->flops >= 0 && halves[i]->flops < 2048 * 2 * cycles);
        cr_expect_eq(halves[i]->unit[0] != '\0', halves[i]->flops > 0);
        cr_expect(halves[i]->flops == 0 || halves[i]->is_native == 1);
    }
    const double rates[] = {s->l2, s->l3, s->memory};
    for (int i = 0; i < 3; i++) /* at most three loads of 64 bytes a cycle */
        cr_expect(rates[i] >= 0 && rates[i] < 3 * 64 * cycles, "%d: %g", i, rates[i]);
    cr_expect_gt(s->seconds, 0);
}

Test(machine, speeds_are_possible)
{
    const machine_facts m = machine_look("");
    for (int threads = 1; threads <= 2 && threads <= omp_get_max_threads(); threads++) {
        const machine_speed s = machine_measure(&m, threads);
        check_speed(&s, threads);
        cr_expect_eq(s.bf16.is_native > 0, machine_has(&m, "amx_bf16") ||
                                               machine_has(&m, "avx512_bf16") ||
                                               machine_has(&m, "bf16"));
        const machine_cache *l2 = machine_data_cache(&m, 2);
        cr_expect(l2 == NULL || s.l2 >= 0);
    }
}

/* A machine without any description, even of its instruction sets, is measured as well. */
Test(machine, of_nothing)
{
    const machine_facts m = {.name = "unknown processor"};
    const machine_speed s = machine_measure(&m, 0);
    check_speed(&s, 1);
    cr_expect(s.bf16.is_native < 0 && s.f16.is_native < 0);
    cr_expect(s.l2 == 0 && s.l3 == 0);
}

/* Tiny, huge and odd caches. */
Test(machine, of_odd_caches)
{
    static const size_t sizes[][2] = {
        {1, 2}, {1 << 20, 1 << 10}, {(size_t)1 << 40, (size_t)1 << 50}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        machine_facts m = {.n_cache = 2};
        for (int k = 0; k < 2; k++)
            m.cache[k] = (machine_cache){k + 2, "Unified", sizes[i][k], 64 * k};
        const machine_speed s = machine_measure(&m, 1);
        check_speed(&s, 1);
        cr_expect_eq(s.l3, 0);
    }
}
