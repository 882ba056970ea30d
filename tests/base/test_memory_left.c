/* test_memory_left.c - a plan that does not fit into the remaining memory is refused, with the
 * remaining size, before kernels are prepared or memory is allocated; a plan that fits is not. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "adjoint.h"
#include "base/limits.h"
#include "system_root.h"
#include "graph/op.h"
#include "tests/plan.h"
#include "tests/reference.h"

static const int64_t mega = INT64_C(1) << 20;

#if defined(__SANITIZE_ADDRESS__)
static const int sanitized = 1; /* its shadow memory takes the address space */
#else
static const int sanitized = 0;
#endif

/* ---- a backend that computes relu, and counts its calls ---- */

static int prepared;
static size_t scratch; /* that it asks for */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_relu || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    prepared++;
    p->in[0] = p->out[0] = NULL;
    p->scratch = scratch;
    snprintf(p->impl, sizeof p->impl, "counted");
    return ADJ_OK;
}
static adj_status run(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    for (int64_t i = 0; i < adj_shape_elems(c->group->node[0]->type.shape); i++)
        y[i] = x[i] > 0 ? x[i] : 0;
    return ADJ_OK;
}
static const adj_kernel kernel = {.name = "relu", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend counted = {.version = ADJ_VERSION,
                                    .name = "counted",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels};
static const adj_backend *const backends[] = {&counted, NULL};

/* Plans relu of a tensor of so many bytes. */
static adj_status plan(int64_t bytes, const adj_allocator *allocator, char message[300])
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {bytes / 4}}));
    adj_exec_opts o = {
        .n_fetch = 1, .fetch = &y, .threads = 1, .backends = backends, .allocator = allocator};
    scoped(release_exec) adj_exec *e = NULL;
    prepared = 0;
    adj_status status = adj_exec_new(g, &o, &e);
    snprintf(message, 300, "%s", adj_exec_message(e));
    return status;
}

/* From now on so many bytes can be had, not more. */
static void limit(int resource, const char *key, int64_t bytes)
{
    char line[256];
    long long kilo = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kilo = strtoll(line + strlen(key), NULL, 10);
    cr_assert_geq(kilo, 0);
    fclose(f);
    rlim_t max = (rlim_t)(kilo * 1024 + bytes);
    cr_assert_eq(setrlimit(resource, &(struct rlimit){max, max}), 0);
}

/* x and y are 40 MB each: x alone fits into 60. */
static void expect_refusal(int resource, const char *key, const char *name)
{
    char message[300], words[80];
    unsigned long long needs = 0, left = 0;
    cr_assert_eq(plan(40 * mega, NULL, message), ADJ_OK, "%s", message);
    limit(resource, key, 60 * mega);
    cr_expect_eq(plan(40 * mega, NULL, message), ADJ_ENOMEM);
    cr_expect_eq(prepared, 0, "a kernel was prepared");
    snprintf(words, sizeof words, "bytes at least, %s leaves ", name);
    const char *at = strstr(message, "(needs "), *then = strstr(message, words);
    cr_assert(at != NULL && then != NULL, "%s", message);
    needs = strtoull(at + strlen("(needs "), NULL, 10);
    left = strtoull(then + strlen(words), NULL, 10);
    cr_expect(needs >= 80ULL * mega && needs < 81ULL * mega, "%s", message);
    cr_expect(left > 40ULL * mega && left <= 60ULL * mega, "%s", message);
    cr_expect_eq(plan(20 * mega, NULL, message), ADJ_OK, "%s", message);
}

Test(memory_left, address_space)
{
    if (!sanitized)
        expect_refusal(RLIMIT_AS, "VmSize:", "RLIMIT_AS");
}

Test(memory_left, data)
{
    if (!sanitized)
        expect_refusal(RLIMIT_DATA, "VmData:", "RLIMIT_DATA");
}

/* Scratch is known once kernels are prepared. */
Test(memory_left, scratch)
{
    char message[300];
    if (sanitized)
        return;
    limit(RLIMIT_AS, "VmSize:", 60 * mega);
    scratch = (size_t)(40 * mega);
    cr_expect_eq(plan(20 * mega, NULL, message), ADJ_ENOMEM);
    expect_text(message, "RLIMIT_AS leaves");
    cr_expect_gt(prepared, 0);
}

/* ---- what is not refused ---- */

static void *alloc_from(void *user, size_t bytes)
{
    char **at = user, *p = *at;
    *at += (bytes + 63) / 64 * 64;
    return p;
}
static void free_to(void *user, void *p) { (void)user, (void)p; }

Test(memory_left, own_allocators_know_what_they_have)
{
    char message[300], *memory = malloc((size_t)(100 * mega)), *at = memory;
    const adj_allocator allocator = {alloc_from, free_to, &at};
    if (!sanitized)
        limit(RLIMIT_AS, "VmSize:", 10 * mega);
    cr_expect_eq(plan(40 * mega, &allocator, message), ADJ_OK, "%s", message);
    free(memory);
}

/* Memory that was freed may be free inside the process alone. */
Test(memory_left, what_malloc_keeps)
{
    char message[300];
    if (sanitized)
        return;
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    void *volatile p = malloc((size_t)(200 * mega));
    free(p);
    limit(RLIMIT_AS, "VmSize:", 10 * mega);
    cr_expect_eq(plan(40 * mega, NULL, message), ADJ_OK, "%s", message);
}

/* ---- what the system says ---- */

static const struct {
    const char *meminfo, *cgroup, *inner, *outer; /* memory.max and memory.current */
    const char *stat;                             /* memory.stat of the inner group */
    size_t bytes;
    const char *limit;
} systems[] = {
    {NULL, NULL, NULL, NULL, NULL, SIZE_MAX, ""},
    {"MemTotal: 8 kB\nMemAvailable:   5000 kB\nSwapFree:  24 kB\n", NULL, NULL, NULL, NULL,
     5024 * 1024, "the machine"},
    {"MemTotal: 8 kB\nMemFree: 7 kB\n", "0::/a/b\n", NULL, NULL, NULL, SIZE_MAX, ""},
    {"MemAvailable: 5000 kB\nSwapFree: 0 kB\n", "1:cpu:/x\n0::/a/b\n", "max 900", "max 900", NULL,
     5000 * 1024, "the machine"},
    {"MemAvailable: 5000 kB\nSwapFree: 0 kB\n", "0::/a/b\n", "1000000 900000", "max 1", NULL,
     100000, "the control group's memory.max"},
    {"MemAvailable: 5000 kB\nSwapFree: 1 kB\n", "0::/a/b\n", "1000000 900000", "max 1",
     "anon 5\nfile 700000\ninactive_file 200000\nactive_file 100000\nslab_reclaimable 50000\n",
     450000 + 1024, "the control group's memory.max"},
    {"MemAvailable: 5000 kB\n", "0::/a/b\n", "max 900000", "2000000 1900000", NULL, 100000,
     "the control group's memory.max"},
    {"MemAvailable: 5000 kB\n", "0::/a/b\n", "1000 2000", "max 1", NULL, 0,
     "the control group's memory.max"},
    {"MemAvailable: 5000 kB\n", "0::/../../x\n", "1000 2000", NULL, NULL, 5000 * 1024,
     "the machine"},
    {"MemAvailable: lots\n", "nonsense\n", "1000 2000", NULL, NULL, SIZE_MAX, ""},
};

/* "max current" */
static void put_group(const folder *root, const char *name, const char *numbers)
{
    char path[100], max[32] = "";
    if (numbers == NULL)
        return;
    size_t n = strcspn(numbers, " ");
    memcpy(max, numbers, n);
    strcat(max, "\n");
    snprintf(path, sizeof path, "%s/memory.max", name);
    put_text(root, path, max);
    snprintf(path, sizeof path, "%s/memory.current", name);
    put_text(root, path, numbers + n + 1);
}

Test(memory_left, of_the_machine_and_of_control_groups)
{
    for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
        scoped(system_root_remove) folder root = system_root();
        put_text(&root, "proc/meminfo", systems[i].meminfo);
        put_text(&root, "proc/self/cgroup", systems[i].cgroup);
        put_group(&root, "sys/fs/cgroup/a/b", systems[i].inner);
        put_group(&root, "sys/fs/cgroup/a", systems[i].outer);
        put_text(&root, "sys/fs/cgroup/a/b/memory.stat", systems[i].stat);
        memory_left m = physical_memory_left(root.path);
        cr_expect_eq(m.bytes, systems[i].bytes, "%zu: %zu", i, m.bytes);
        cr_expect_str_eq(m.limit, systems[i].limit, "%zu", i);
    }
}

/* Version 1, whose groups count the caches of those within. */
Test(memory_left, of_version_1)
{
    static const char *const max = "the control group's memory.limit_in_bytes";
    scoped(system_root_remove) folder root = system_root();
    put_text(&root, "proc/meminfo", "MemAvailable: 5000 kB\nSwapFree: 0 kB\n");
    put_text(&root, "proc/self/cgroup", "9:memory:/a\n0::/\n");
    put_text(&root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put_text(&root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    put_text(&root, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000\n");
    put_text(&root, "sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900000\n");
    put_text(&root, "sys/fs/cgroup/memory/a/memory.stat",
             "inactive_file 1\ntotal_inactive_file 200000\ntotal_active_file 100000\n");
    memory_left m = physical_memory_left(root.path);
    cr_expect_eq(m.bytes, 400000, "%zu", m.bytes);
    cr_expect_str_eq(m.limit, max);
}
