/* version.c - adjoint version: what runs here, and on what; --machine: what that can do. */
#include <omp.h>
#include <string.h>

#include "adjoint.h"
#include "base/machine/machine.h"
#include "command.h"
#include "json.h"
#include "output.h"
#include "spin.h"

typedef struct {
    char onednn[32], onednn_isa[32], direct_isa[32];
    int threads, processors; /* that are used, and may be */
    machine_facts machine;
    int is_measured;
    machine_speed speed;
} description;

/* "2.6.3 avx2" in two; "*" is none. */
static void describe(const char *backend, char version[32], char isa[32])
{
    char text[64] = "* *";
    (void)adj_backend_describe(backend, text, sizeof text);
    size_t n = strcspn(text, " ");
    snprintf(version, 32, "%.*s", (int)n, text);
    snprintf(isa, 32, "%s", text[n] == ' ' ? text + n + 1 : "");
}

static description look(int measure)
{
    char none[32];
    description d = {.threads = adj_default_threads(),
                     .processors = omp_get_num_procs(),
                     .machine = machine_look(""),
                     .is_measured = measure};
    describe("onednn", d.onednn, d.onednn_isa);
    describe("direct", none, d.direct_isa);
    if (measure)
        d.speed = machine_measure(&d.machine, d.threads);
    return d;
}

/* ---- text ---- */

static void print_peak(const char *type, const machine_peak *p)
{
    if (p->flops > 0)
        say("%s multiply-add: %.0f GFLOP/s by %s", type, 1e-9 * p->flops, p->unit);
    else if (p->is_native == 0)
        say("%s multiply-add: none; converted to f32", type);
    else
        say("%s multiply-add: %s", type, p->is_native > 0 ? "native, not measured" : "unknown");
}

static void print_bandwidth(const char *of, double bytes)
{
    if (bytes > 0)
        say("%s read: %.1f GB/s", of, 1e-9 * bytes);
    else
        say("%s read: unknown", of);
}

static void print_number(const char *label, int n)
{
    if (n > 0)
        say("%s: %d", label, n);
    else
        say("%s: unknown", label);
}

static void print_machine(const machine_facts *m, const machine_speed *s)
{
    say("instruction sets: %s", m->features[0] != '\0' ? m->features : "unknown");
    if (m->features[0] != '\0')
        say("AMX: %s", machine_has(m, "amx_tile") ? "yes" : "no");
    print_number("cores of the machine", m->cores);
    print_number("processors of the machine", m->processors);
    char spin[64];
    const char *setting = spin_setting(spin, sizeof spin);
    say("waiting threads: %s", setting != NULL ? setting : "as OpenMP has them");
    printf("measured with %d threads in %.0f ms:\n", s->threads, 1e3 * s->seconds);
    print_peak("f32", &s->f32);
    print_peak("bf16", &s->bf16);
    print_peak("f16", &s->f16);
    print_bandwidth("L2", s->l2);
    print_bandwidth("L3", s->l3);
    print_bandwidth("memory", s->memory);
}

static void print(const description *d)
{
    const machine_facts *m = &d->machine;
    printf("adjoint %s\n", adj_version_text());
    say("%s", m->name);
    say("oneDNN %s, up to %s", d->onednn, d->onednn_isa);
    say("adjoint's own kernels: %s", d->direct_isa);
    for (int i = 0; i < m->n_cache; i++)
        say("%sL%d %s %zu KiB", i == 0 ? "caches: " : "        ", m->cache[i].level,
            m->cache[i].type, m->cache[i].bytes >> 10);
    printf("threads: %d, of %d processors\n", d->threads, d->processors);
    if (d->is_measured)
        print_machine(m, &d->speed);
}

/* ---- JSON; what is not known is null ---- */

static json_t *known(double v) { return v > 0 ? json_real(v) : json_null(); }
static json_t *known_integer(json_int_t v) { return v > 0 ? json_integer(v) : json_null(); }

static json_t *caches_json(const machine_facts *m)
{
    json_t *caches = json_array();
    for (int i = 0; i < m->n_cache; i++) {
        const machine_cache *c = &m->cache[i];
        (void)json_array_append_new(
            caches, json_pack("{s:i, s:s, s:I, s:o}", "level", c->level, "type", c->type, "bytes",
                              (json_int_t)c->bytes, "processors", known_integer(c->shared)));
    }
    return caches;
}

static json_t *peak_json(const machine_peak *p)
{
    return json_pack("{s:o, s:o, s:o}", "native",
                     p->is_native < 0 ? json_null() : json_boolean(p->is_native), "flops",
                     known(p->flops), "by", p->flops > 0 ? json_text(p->unit) : json_null());
}

/* The words; null where there are none. */
static json_t *words_json(const char *words)
{
    json_t *list = words[0] != '\0' ? json_array() : json_null();
    while (*words != '\0') {
        size_t n = strcspn(words, " ");
        (void)json_array_append_new(list, json_stringn(words, n));
        words += n + strspn(words + n, " ");
    }
    return list;
}

static json_t *machine_json(const machine_facts *m, const machine_speed *s)
{
    char spin[64];
    return json_pack("{s:o, s:o, s:o, s:o, s:s?, s:i, s:f, s:{s:o, s:o, s:o}, s:{s:o, s:o, s:o}}",
                     "instruction_sets", words_json(m->features), "amx",
                     m->features[0] != '\0' ? json_boolean(machine_has(m, "amx_tile"))
                                            : json_null(),
                     "cores", known_integer(m->cores), "processors", known_integer(m->processors),
                     "waiting_threads", spin_setting(spin, sizeof spin), "threads", s->threads,
                     "measured_ms", 1e3 * s->seconds, "multiply_add", "f32", peak_json(&s->f32),
                     "bf16", peak_json(&s->bf16), "f16", peak_json(&s->f16), "bytes_per_s", "l2",
                     known(s->l2), "l3", known(s->l3), "memory", known(s->memory));
}

static int write_json(FILE *f, const void *source)
{
    const description *d = source;
    json_t *j =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}, s:o, s:i, s:i, s:o*}", "adjoint",
                  adj_version_text(), "cpu", d->machine.name, "onednn", "version", d->onednn, "isa",
                  d->onednn_isa, "direct", "isa", d->direct_isa, "caches", caches_json(&d->machine),
                  "threads", d->threads, "processors", d->processors, "machine",
                  d->is_measured ? machine_json(&d->machine, &d->speed) : NULL);
    return json_write(f, j, JSON_PAGE, 0);
}

int command_version(int argc, char **argv)
{
    const char *json = NULL;
    int64_t machine = 0;
    const option options[] = {
        {"--machine", "",
         "also instruction sets and cores, and what arithmetic and memory reach, measured in a "
         "tenth of a second",
         .flag = &machine},
        {"--json", "FILE", JSON_HELP, .text = &json, .bare = "-"},
        {0}};
    const remark examples[] = {
        {"adjoint version", "What to say when a fault is reported."},
        {"adjoint version --machine", "What this machine can reach, by all threads."},
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
    const description d = look(machine != 0);
    if (json == NULL)
        return print(&d), EXIT_OK;
    return write_only("version", &(output_file){"--json", json, OUTPUT_REPORT}, write_json, &d);
}
