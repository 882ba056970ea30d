/* run.c - adjoint op: one op, or its gradients, on tensors from a file, to check another
 * framework's numbers.
 *
 * Exit status: 0 done, 1 failed, 3 wrong usage. */
#include <stdlib.h>
#include <string.h>

#include "adjoint_io.h"
#include "base/backend_option.h"
#include "args.h"
#include "cli/standard.h"
#include "io/tensors/formats.h"

enum { MAX_VALUES = 32 };

typedef struct {
    op_args args;
    const char *in, *out, *backend;
    int64_t grad, threads;
} run_opts;

/* An operand read from the file. */
typedef struct {
    char name[OPERAND_NAME];
    adj_node *node;
    const adj_tensor *tensor; /* tensor in the file */
} operand;

typedef struct {
    const run_opts *o;
    adj_tensors *file;
    adj_graph *g;
    int n_operand;
    operand operand[MAX_VALUES]; /* with dy */
    int n_result;
    adj_node *result[MAX_VALUES];
    char name[MAX_VALUES][OPERAND_NAME + 1]; /* names of the results */
    void *data[MAX_VALUES];
    adj_exec *exec;
} run;

static int parse(run_opts *o, int argc, char **argv)
{
    const option options[] = {
        {"--in", "FILE", "operands, safetensors or .npz, named as in adjoint ops", .text = &o->in},
        {"--out", "FILE", "result y, as safetensors, or .npz by its name", .text = &o->out},
        {"--grad", "",
         "also writes the gradient dNAME of each operand NAME; reads dy from the file",
         .flag = &o->grad},
        {"--backend", "NAME", BACKEND_HELP, .text = &o->backend, .names = backend_name_at},
        {"--threads", "N", THREADS_HELP, .integer = &o->threads, .range = {1, 1024}},
        {0},
    };
    const remark examples[] = {
        {"adjoint op conv2d --in x.safetensors --out y.safetensors --attr padding=VALID",
         "Reads tensors input and filter, writes y."},
        {"adjoint op softmax --grad --in - --out - <x.safetensors >dx.safetensors",
         "Reads x0 and dy, writes y and dx0."},
        {NULL, NULL}};
    option all[OP_OPTIONS + 1] = {0};
    int n = 0;
    op_args_options(&o->args, all);
    const usage u = {.command = "op",
                     .summary =
                         "Runs one op on tensors from a file. Attributes that --attr leaves out "
                         "are the examples of adjoint ops, not the defaults of C.",
                     .options = options,
                     .more = all + OP_OPTIONS - 1, /* --attr */
                     .arguments = "NAME",
                     .argument = &o->args.op,
                     .max_arguments = 1,
                     .n_argument = &n,
                     .names = op_name_at,
                     .variables = PLAN_VARIABLES,
                     .examples = examples};
    int status = parse_options(&u, argc, argv);
    if (status == CONTINUE && o->args.op == NULL)
        return complain(EXIT_USAGE, "the op's NAME is missing (see adjoint ops)");
    adj_error error = {0};
    if (status == CONTINUE && op_check_name(o->args.op, &error) != ADJ_OK)
        return complain(EXIT_USAGE, "%s", error.message);
    if (status == CONTINUE && (o->in == NULL || o->out == NULL))
        return complain(EXIT_USAGE, "%s FILE is missing", o->in == NULL ? "--in" : "--out");
    if (status == CONTINUE && (ends_in(o->out, ".npy") || ends_in(o->out, ".h")))
        return complain(EXIT_USAGE, "--out: %s: expected .npz or a name for safetensors", o->out);
    return status;
}

/* ---- the graph ---- */

static const char *title(const run *r) { return is_stdout(r->o->in) ? "standard input" : r->o->in; }

/* Returns a given operand, for op_args_build_given. */
static adj_node *operand_given(void *user, const char *name)
{
    run *r = user;
    for (int i = 0; i < r->n_operand; i++)
        if (strcmp(r->operand[i].name, name) == 0)
            return r->operand[i].node;
    int at = adj_tensors_find(r->file, name);
    adj_type type;
    if (at < 0 || r->n_operand == MAX_VALUES)
        return NULL;
    const adj_tensor *t = &r->file->tensor[at];
    if (!adj_tensor_type(t, &type)) {
        complain(EXIT_FAILED, "%s: %s has type %s, which no op supports", title(r), name,
                 adj_elem_name(t->elem));
        return NULL;
    }
    operand *p = &r->operand[r->n_operand++];
    p->tensor = t;
    snprintf(p->name, sizeof p->name, "%s", name);
    p->node = adj_input(r->g, p->name, type.dtype, type.shape);
    return p->node;
}

static void add_result(run *r, adj_node *n, const char *prefix, const char *name)
{
    snprintf(r->name[r->n_result], sizeof r->name[0], "%s%s", prefix, name);
    r->result[r->n_result++] = n;
}

static int add_gradients(run *r, adj_node *y)
{
    adj_node *x[MAX_VALUES], *dx[MAX_VALUES] = {NULL};
    const char *name[MAX_VALUES];
    int n = 0;
    for (int i = 0; i < r->n_operand && n < MAX_VALUES - 1; i++)
        if (adj_is_float(adj_node_type(r->operand[i].node).dtype)) {
            x[n] = r->operand[i].node;
            name[n++] = r->operand[i].name;
        }
    adj_node *dy = operand_given(r, "dy");
    if (dy == NULL && adj_node_type(y).shape.rank > 0)
        return complain(EXIT_FAILED, "%s: tensor dy is missing (--grad expects one of shape %s)",
                        title(r), adj_shape_text(adj_node_type(y).shape).s);
    if (adj_grad(y, dy, n, x, dx) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", adj_graph_message(r->g));
    for (int i = 0; i < n; i++)
        add_result(r, dx[i], "d", name[i]);
    return CONTINUE;
}

static int build_op(run *r)
{
    adj_error error = {0};
    adj_node *y = op_args_build_given(&r->o->args, r->g, operand_given, r, &error);
    if (y == NULL && strncmp(error.message, "--", 2) == 0)
        return complain(EXIT_USAGE, "%s", error.message);
    if (y == NULL)
        return complain(EXIT_FAILED, "%s: %s", title(r), error.message);
    add_result(r, y, "", "y");
    return r->o->grad ? add_gradients(r, y) : CONTINUE;
}

/* ---- running it ---- */

static int compute(run *r)
{
    const adj_exec_opts o = {.n_fetch = r->n_result,
                             .fetch = r->result,
                             .backend = r->o->backend,
                             .threads = (int)r->o->threads};
    adj_status status = adj_exec_new(r->g, &o, &r->exec);
    for (int i = 0; i < r->n_operand && status == ADJ_OK; i++) {
        const adj_tensor *t = r->operand[i].tensor;
        status = adj_set(r->exec, r->operand[i].node, t->data, (size_t)adj_tensor_bytes(t));
    }
    if (status == ADJ_OK)
        status = adj_run(r->exec);
    for (int i = 0; i < r->n_result && status == ADJ_OK; i++) {
        size_t bytes = adj_type_bytes(adj_node_type(r->result[i]));
        r->data[i] = allocate((int64_t)bytes, 1);
        status = adj_get(r->exec, r->result[i], r->data[i], bytes);
    }
    return status == ADJ_OK ? CONTINUE : complain(EXIT_FAILED, "%s", adj_exec_message(r->exec));
}

static adj_status write_results(const char *path, const void *source, adj_error *error)
{
    const run *r = source;
    adj_tensor t[MAX_VALUES];
    for (int i = 0; i < r->n_result; i++)
        t[i] = adj_tensor_of(r->name[i], adj_node_type(r->result[i]), r->data[i]);
    const adj_metadata op = {"op", r->o->args.op};
    if (ends_in(r->o->out, ".npz"))
        return adj_tensors_write_npz(path, r->n_result, t, error);
    return adj_tensors_write(path, r->n_result, t, 1, &op, error);
}

static int run_file(run *r, const input_file *in, const output_file *out)
{
    int status = read_tensors(in, &r->file);
    r->g = or_exit(adj_graph_new());
    if (status == CONTINUE)
        status = build_op(r);
    if (status == CONTINUE)
        status = compute(r);
    return status == CONTINUE ? replace_output(out, stdout, write_results, r) : status;
}

int command_op(int argc, char **argv)
{
    run_opts o = {0};
    adj_error error = {0};
    int status = parse(&o, argc, argv);
    if (status != CONTINUE)
        return status;
    if (check_backend_option(o.backend, adj_backends, "--backend: ", &error) != ADJ_OK)
        return complain(EXIT_USAGE, "%s", error.message);
    const output_file out = {"--out", o.out, OUTPUT_REPLACED_OR_STDOUT};
    status = check_outputs(1, &out);
    input_file in = {.option = "--in", .path = o.in};
    if (status == CONTINUE)
        status = open_inputs(1, &in);
    if (status != CONTINUE)
        return status;
    run r = {.o = &o};
    status = run_file(&r, &in, &out);
    for (int i = 0; i < r.n_result; i++)
        free(r.data[i]);
    adj_exec_free(r.exec);
    adj_graph_free(r.g);
    adj_tensors_free(r.file);
    return status;
}
