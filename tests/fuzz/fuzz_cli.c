/* fuzz_cli.c - command lines are read, not run: the words of one, each on a line, go to a command's
 * parser, and to what takes names: models, optimisers, backends. */
#include <string.h>

#include "adjoint_nn.h"
#include "cli/command.h"
#include "cli/train.h"
#include "fuzz/must.h"

enum { WORDS = 20, ROOM = 4096 };

/* Numbers are in the ranges that --help promises, or unset. */
static void check(const train_opts *o)
{
    must(o->epochs == UNSET || (o->epochs >= 1 && o->epochs <= 100000));
    must(o->batch == UNSET || (o->batch >= 1 && o->batch <= 100000));
    must(o->shift >= UNSET && o->shift <= 8);
    must(o->threads == UNSET || (o->threads >= 1 && o->threads <= 1024));
    must(o->lr < 0 || (o->lr >= 1e-12 && o->lr <= 1e6));
    must(!o->resume || o->checkpoint != NULL);
}

static void try_names(const char *word)
{
    adj_optimiser_opts optimiser;
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_fill(g, ADJ_F64, (adj_shape){0}, 1);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = word, .impl = word, .threads = 1};
    adj_exec *e = NULL;

    must(adj_model_nearest(word) != NULL);
    if (adj_model_find(word, NULL) == NULL)
        must(adj_optimiser_from_name(word, &optimiser) != ADJ_OK || word[0] != '\0');
    must((adj_exec_new(g, &o, &e) == ADJ_OK) == (adj_exec_message(e)[0] == '\0'));
    adj_exec_free(e);
    adj_graph_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[ROOM], *argv[WORDS + 2] = {"train"};
    train_opts o;
    int argc = 1;

    if (size >= ROOM)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *word = text; word != NULL && argc <= WORDS; argc++) {
        char *end = strchr(word, '\n');
        argv[argc] = word;
        word = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
    }
    try_names(argv[argc - 1]);
    int status = parse_train(&o, argc, argv);
    must(status == CONTINUE || status == EXIT_OK || status == EXIT_USAGE);
    if (status == CONTINUE) {
        check(&o);
        set_train_defaults(&o);
        must(o.epochs > 0 && o.batch > 0 && o.lr > 0 && o.model != NULL && o.backend != NULL);
    }
    return 0;
}
