/* fuzz_cli.c - command lines: the words of one, each on a line, go to the command that the first
 * one names, which is run up to where the work begins (cli_stubs.c); "names" is for what takes
 * names: models, optimizers, backends. */
#include <stdint.h>
#include <string.h>

#include "adjoint_nn.h"
#include "cli/command.h"
#include "cli/train/settings.h"
#include "fuzz/must.h"
#include "graph/op.h"
#include "ops/nn/model_list.h"

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

/* Up to what cli_stubs.c replaces. */
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
