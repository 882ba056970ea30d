/* version.c - adjoint version: versions, backends and processor; --machine: measured capabilities.
 */
#include <omp.h>
#include <string.h>

#include "adjoint.h"
#include "base/machine/machine.h"
#include "base/limits.h"
#include "exec/report.h"
#include "command.h"
#include "json.h"
#include "environment.h"

/* Splits "2.6.3 avx2" in version and instruction set; "*" means none. */
static void split_description(const char *backend, char version[32], char isa[32])
{
    char text[64] = "* *";
    (void)adj_backend_describe(backend, text, sizeof text);
    size_t n = strcspn(text, " ");
    snprintf(version, 32, "%.*s", (int)n, text);
    snprintf(isa, 32, "%s", text[n] == ' ' ? text + n + 1 : "");
}

/* ---- what is not known is null ---- */

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

static json_t *machine_json(const machine_facts *m, const machine_speed *s)
{
    char spin[64];
    const int has_features = m->features[0] != '\0';
    return json_pack("{s:o, s:o, s:o, s:o, s:s?, s:i, s:f, s:{s:o, s:o, s:o}, s:{s:o, s:o, s:o}}",
                     "instruction_sets", has_features ? json_words(m->features) : json_null(),
                     "amx", has_features ? json_boolean(machine_has(m, "amx_tile")) : json_null(),
                     "cores", known_integer(m->cores), "processors", known_integer(m->processors),
                     "waiting_threads", spin_setting(spin, sizeof spin), "threads", s->threads,
                     "measured_ms", 1e3 * s->seconds, "multiply_add", "f32", peak_json(&s->f32),
                     "bf16", peak_json(&s->bf16), "f16", peak_json(&s->f16), "bytes_per_s", "l2",
                     known(s->l2), "l3", known(s->l3), "memory", known(s->memory));
}

/* measure: also what the machine reaches. */
static json_t *description_json(int measure)
{
    char onednn[32], onednn_isa[32], none[32], direct_isa[32];
    const int threads = adj_default_threads();
    const machine_facts machine = machine_look("");
    machine_speed speed;
    split_description("onednn", onednn, onednn_isa);
    split_description("direct", none, direct_isa);
    if (measure)
        speed = machine_measure(&machine, threads);
    return json_pack("{s:s, s:{s:s, s:s}, s:{s:s}, s:o, s:i, s:i, s:o*}", "cpu", machine.name,
                     "onednn", "version", onednn, "isa", onednn_isa, "direct", "isa", direct_isa,
                     "caches", caches_json(&machine), "threads", threads, "processors",
                     omp_get_num_procs(), "machine",
                     measure ? machine_json(&machine, &speed) : NULL);
}

int command_version(int argc, char **argv)
{
    const char *json = NULL;
    int64_t machine = 0;
    const option options[] = {
        {"--machine", "",
         "adds instruction sets, cores, and measured arithmetic and memory throughput (0.1 s)",
         .flag = &machine},
        {"--json", "FILE", JSON_HELP, .text = &json, .bare = "-"},
        {0}};
    const remark examples[] = {
        {"adjoint version", "For bug reports."},
        {"adjoint version --machine", "Measured throughput of this machine, on all threads."},
        {"adjoint version --json | jq .caches", "Cache sizes in bytes."},
        {NULL, NULL}};
    const usage u = {.command = "version",
                     .summary = "Prints the versions of adjoint and oneDNN, the instruction sets "
                                "in use, caches and threads.",
                     .options = options,
                     .variables = "ADJOINT_MAX_ISA ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS",
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    json_t *description = description_json(machine != 0);
    if (json == NULL) {
        printf("adjoint %s\n", adj_version_text());
        return json_print(description) == 0 ? EXIT_OK : EXIT_FAILED;
    }
    json_t *j = json_pack("{s:s}", "adjoint", adj_version_text());
    const int failed = json_object_update_new(j, description);
    return json_report(json, failed ? json_decref(j), NULL : j);
}
