/* version.c - adjoint version: what runs here, and on what. */
#include <omp.h>
#include <string.h>

#include "adjoint.h"
#include "cpu.h"
#include "command.h"
#include "json.h"
#include "output.h"

enum { MAX_CACHES = 16 };

typedef struct {
    char cpu[CPU_NAME];
    char onednn[32], onednn_isa[32], direct_isa[32];
    int n_cache;
    cpu_cache cache[MAX_CACHES];
    int threads, processors;
} machine;

/* "2.6.3 avx2" in two; "*" is none. */
static void describe(const char *backend, char version[32], char isa[32])
{
    char text[64] = "* *";
    (void)adj_backend_describe(backend, text, sizeof text);
    size_t n = strcspn(text, " ");
    snprintf(version, 32, "%.*s", (int)n, text);
    snprintf(isa, 32, "%s", text[n] == ' ' ? text + n + 1 : "");
}

static machine look(void)
{
    char none[32];
    machine m = {.threads = adj_default_threads(), .processors = omp_get_num_procs()};
    (void)cpu_name(m.cpu);
    describe("onednn", m.onednn, m.onednn_isa);
    describe("direct", none, m.direct_isa);
    while (m.n_cache < MAX_CACHES && cpu_cache_at(m.n_cache, &m.cache[m.n_cache]))
        m.n_cache++;
    return m;
}

static void print_machine(const machine *m)
{
    printf("adjoint %s\n", adj_version_text());
    say("%s", m->cpu);
    say("oneDNN %s, up to %s", m->onednn, m->onednn_isa);
    say("adjoint's own kernels: %s", m->direct_isa);
    for (int i = 0; i < m->n_cache; i++)
        say("%sL%d %s %zu KiB", i == 0 ? "caches: " : "        ", m->cache[i].level,
            m->cache[i].type, m->cache[i].bytes >> 10);
    printf("threads: %d, of %d processors\n", m->threads, m->processors);
}

static int write_json(FILE *f, const void *source)
{
    const machine *m = source;
    json_t *caches = json_array();
    for (int i = 0; i < m->n_cache; i++)
        (void)json_array_append_new(caches, json_pack("{s:i, s:s, s:I}", "level", m->cache[i].level,
                                                      "type", m->cache[i].type, "bytes",
                                                      (json_int_t)m->cache[i].bytes));
    return json_write(f,
                      json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}, s:o, s:i, s:i}", "adjoint",
                                adj_version_text(), "cpu", m->cpu, "onednn", "version", m->onednn,
                                "isa", m->onednn_isa, "direct", "isa", m->direct_isa, "caches",
                                caches, "threads", m->threads, "processors", m->processors),
                      JSON_PAGE, 0);
}

int command_version(int argc, char **argv)
{
    const char *json = NULL;
    const option options[] = {{"--json", "FILE", JSON_HELP, .text = &json, .bare = "-"}, {0}};
    const remark examples[] = {
        {"adjoint version", "What to say when a fault is told."},
        {"adjoint version --json | jq .caches", "The caches' sizes in bytes."},
        {NULL, NULL}};
    const usage u = {.command = "version",
                     .summary = "Tells the versions of adjoint and oneDNN, the instruction sets in "
                                "use, caches and threads.",
                     .options = options,
                     .variables = "ADJOINT_MAX_ISA ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS",
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    const machine m = look();
    if (json == NULL)
        return print_machine(&m), EXIT_OK;
    return write_only("version", &(output_file){"--json", json, OUTPUT_OR_STDOUT}, write_json, &m);
}
