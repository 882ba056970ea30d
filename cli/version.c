/* version.c - adjoint version: versions, backends and processor. */
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

static json_t *caches_json(const machine_facts *m)
{
    json_t *caches = json_array();
    for (int i = 0; i < m->n_cache; i++) {
        const machine_cache *c = &m->cache[i];
        (void)json_array_append_new(caches, json_pack("{s:i, s:s, s:I}", "level", c->level, "type",
                                                      c->type, "bytes", (json_int_t)c->bytes));
    }
    return caches;
}

static json_t *description_json(void)
{
    char onednn[32], onednn_isa[32], none[32], direct_isa[32], spin[64];
    const machine_facts machine = machine_look("");
    split_description("onednn", onednn, onednn_isa);
    split_description("direct", none, direct_isa);
    return json_pack("{s:s, s:o, s:{s:s, s:s}, s:{s:s}, s:o, s:i, s:i, s:s?}", "cpu", machine.name,
                     "instruction_sets", json_words(machine.features), "onednn", "version", onednn,
                     "isa", onednn_isa, "direct", "isa", direct_isa, "caches",
                     caches_json(&machine), "threads", adj_default_threads(), "processors",
                     omp_get_num_procs(), "waiting_threads", spin_setting(spin, sizeof spin));
}

int command_version(int argc, char **argv)
{
    const char *json = NULL;
    const option options[] = {{"--json", "FILE", JSON_HELP, .text = &json, .bare = "-"}, {0}};
    const remark examples[] = {{"adjoint version", "For bug reports."},
                               {"adjoint version --json | jq .caches", "Cache sizes in bytes."},
                               {NULL, NULL}};
    const usage u = {.command = "version",
                     .summary = "Prints the versions of adjoint and oneDNN, the processor's "
                                "instruction sets and those in use, caches and threads.",
                     .options = options,
                     .variables = "ADJOINT_MAX_ISA ONEDNN_MAX_CPU_ISA OMP_NUM_THREADS",
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status != CONTINUE)
        return status;
    json_t *description = description_json();
    if (json == NULL) {
        printf("adjoint %s\n", adj_version_text());
        return json_print(description) == 0 ? EXIT_OK : EXIT_FAILED;
    }
    json_t *j = json_pack("{s:s}", "adjoint", adj_version_text());
    const int failed = json_object_update_new(j, description);
    return json_report(json, failed ? json_decref(j), NULL : j);
}
