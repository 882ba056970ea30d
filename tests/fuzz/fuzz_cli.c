/* fuzz_cli.c - command lines: the words of one, each on a line, go to the command that the first
 * one names, which is run up to where the work begins (below); "names" is for what takes
 * names: models, optimizers, backends. */
#include <stdint.h>
#include <string.h>

#include "adjoint_io.h"
#include "adjoint_nn.h"
#include "check/inspect.h"
#include "cli/command.h"
#include "cli/train/train.h"
#include "fuzz/must.h"
#include "graph/op.h"
#include "io/tensors/formats.h"
#include "ops/nn/model_list.h"

/* ---- the calls that take long ----
 *
 * They are linked in place of the library's (--wrap), look at what they are given, and fail. */

static void must_be_sound(adj_node *y)
{
    must(y != NULL && adj_graph_status(adj_node_graph(y)) == ADJ_OK);
    must(adj_shape_elems(adj_node_type(y).shape) >= 0);
}

/* The names are the linker's. */
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
adj_status __real_adj_gradcheck(adj_node *y, const adj_gradcheck_opts *o,
                                const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck(adj_node *y, const adj_gradcheck_opts *o,
                                const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck(adj_node *y, const adj_gradcheck_opts *o,
                                const adj_gradcheck_report **out)
{
    must_be_sound(y);
    must(o->order >= 0 && o->order <= 2 && o->draws >= 0 && o->draws <= 1000);
    must(o->exec.threads >= 0 && o->exec.threads <= 1024 && o->rtol >= 0 && o->atol >= 0);
    return __real_adj_gradcheck(NULL, NULL, out);
}

adj_status __wrap_adj_gradcheck_nodes(int n, adj_node *const node[], const adj_gradcheck_opts *o,
                                      const adj_gradcheck_report **out);
adj_status __wrap_adj_gradcheck_nodes(int n, adj_node *const node[], const adj_gradcheck_opts *o,
                                      const adj_gradcheck_report **out)
{
    must(n > 0);
    for (int i = 1; i < n; i++)
        must_be_sound(node[i]);
    return __wrap_adj_gradcheck(node[0], o, out);
}

adj_status __real_adj_compare_with(adj_graph *g, const adj_compare_opts *o, const adj_trial_opts *t,
                                   const adj_comparison **out);
adj_status __wrap_adj_compare_with(adj_graph *g, const adj_compare_opts *o, const adj_trial_opts *t,
                                   const adj_comparison **out);
adj_status __wrap_adj_compare_with(adj_graph *g, const adj_compare_opts *o, const adj_trial_opts *t,
                                   const adj_comparison **out)
{
    adj_error error;
    adj_compare_config config;
    must(adj_graph_status(g) == ADJ_OK && o->exec.n_fetch > 0 && o->n_config != 1);
    for (int i = 0; i < o->exec.n_fetch; i++)
        must_be_sound(o->exec.fetch[i]);
    for (int i = 0; i < o->n_config; i++)
        must(adj_compare_config_parse(o->config[i], o->exec.backends, &config, &error) == ADJ_OK);
    must(o->runs >= 1 && o->runs <= 1000 && o->exec.threads >= 0 && o->exec.threads <= 1024);
    must(t != NULL && t->elsewhere != NULL);
    return __real_adj_compare_with(NULL, NULL, NULL, out);
}

adj_status __wrap_adj_tensors_read(const char *path, adj_tensors **t);
adj_status __wrap_adj_tensors_read(const char *path, adj_tensors **t)
{
    must(path != NULL);
    return adj_tensors_from_memory("", 0, t); /* fails: there is no header */
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)

/* ---- command lines ---- */

enum { WORDS = 48, ROOM = 4096 };

/* Numbers are in the ranges that --help promises, or unset. */
static void check(const train_opts *o)
{
    must(o->epochs == UNSET || (o->epochs >= 1 && o->epochs <= 100000));
    must(o->batch == UNSET || (o->batch >= 1 && o->batch <= 100000));
    must(o->shift >= UNSET && o->shift <= 8);
    must(o->threads == UNSET || (o->threads >= 1 && o->threads <= 1024));
    must(o->lr < 0 || (o->lr >= 1e-12 && o->lr <= 1e6));
    must(o->warmup <= 100000 && o->weight_decay <= 1 && o->clip <= 1e6 && o->smoothing < 1);
    must(o->flip == UNSET || o->flip == 1);
    must(o->cutout >= UNSET && o->jitter <= 100 && o->mixup <= 1000 && o->patience >= UNSET);
    must(!(o->mixup > 0 && o->mixup < 0.001) && o->begun_warmup == UNSET);
    must(!o->resume || o->checkpoint != NULL);
}

static void try_names(const char *word)
{
    adj_optimizer_opts optimizer;
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_fill(g, ADJ_F64, (adj_shape){0}, 1);
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &y,
                       .backend = word,
                       .debug = &(adj_exec_debug){.impl = word},
                       .threads = 1};
    adj_exec *e = NULL;

    const adj_model *near = adj_model_nearest(word);
    must(near == NULL || adj_model_find(near->name, NULL) == near);
    if (adj_model_find(word, NULL) == NULL)
        must(adj_optimizer_from_name(word, &optimizer) != ADJ_OK || word[0] != '\0');
    must((adj_exec_new(g, &o, &e) == ADJ_OK) == (adj_exec_message(e)[0] == '\0'));
    adj_exec_free(e);
    adj_graph_free(g);
}

static void try_train(int argc, char **argv)
{
    train_opts o;
    int status = parse_train(&o, argc, argv);
    must(status == CONTINUE || status == EXIT_OK || status == EXIT_USAGE);
    if (status == CONTINUE) {
        check(&o);
        set_train_defaults(&o);
        must(o.epochs > 0 && o.batch > 0 && o.lr > 0 && o.model != NULL && o.backend != NULL);
        must(o.warmup >= 0 && o.weight_decay >= 0 && o.clip >= 0 && o.smoothing >= 0);
        must(o.flip >= 0 && o.cutout >= 0 && o.jitter >= 0 && o.mixup >= 0 && o.patience >= 0);
        must(o.class_weights != NULL && o.optimizer != NULL && o.schedule != NULL &&
             recipe_of(&o).lr == o.lr);
    }
}

/* Up to the calls that are replaced. */
static void try_command(int argc, char **argv)
{
    static const command commands[] = {{.name = "gradcheck", .run = command_gradcheck},
                                       {.name = "compare", .run = command_compare},
                                       {.name = "eval", .run = command_eval}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[0], commands[i].name) != 0)
            continue;
        int status = commands[i].run(argc, argv);
        must(status >= EXIT_OK && status <= EXIT_USAGE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[ROOM], *argv[WORDS + 1] = {NULL};
    int argc = 0;

    if (size >= ROOM)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *word = text; word != NULL && argc < WORDS; argc++) {
        char *end = strchr(word, '\n');
        argv[argc] = word;
        word = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
    }
    if (strcmp(argv[0], "train") == 0)
        try_train(argc, argv);
    else if (strcmp(argv[0], "names") == 0)
        try_names(argv[argc - 1]);
    else
        try_command(argc, argv);
    return 0;
}
