/* finetune.c - transfer learning: trains a net on ten digits and saves it, then loads its layers
 * into a net with a new head. The head learns to tell odd digits from even ones, while all other
 * layers are frozen. Checks that the frozen parameters keep every bit.
 *
 *   cc finetune.c $(pkg-config --cflags --libs adjoint_io) && ./a.out [FILE [RESULT]] */
#include <string.h>

#include "adjoint_fit.h"

enum { TRAIN = 3000, FEW = 500, TEST = 500 };
static const char trunk[] = "conv*,bn*"; /* names: conv1/w, bn1/gamma, ... */

/* images -> logits. user is not NULL if all layers but the head are frozen: batch norms then use
 * their running statistics. adj_net.options.freeze does the rest. */
static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer c1 = {.filters = 16, .stride = {2}, .no_bias = 1};
    const adj_conv_layer c2 = {.filters = 32, .stride = {2}, .no_bias = 1};
    const adj_norm_layer norm = {.training = training && user == NULL};
    x = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv1", &c1), "bn1", &norm));
    x = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv2", &c2), "bn2", &norm));
    return adj_layer_dense(x, "logits", classes, NULL);
}

static int failed(const char *why) { return fprintf(stderr, "finetune: %s\n", why), 1; }

static void print_weight(void *user, const adj_weight_report *r)
{
    static const char *const fates[] = {"loaded", "fresh", "missing", "unfit", "reset", "unused"};
    (void)user;
    if (r->name != NULL) /* NULL: an unused tensor of the file, the other net's head */
        printf("  %-17s %s\n", r->name, fates[r->fate]);
}

/* Trains and saves the net of ten digits. */
static int train_other(const adj_dataset *digits, const char *file, adj_error *error)
{
    const adj_net ten = {.name = "ten digits", .build = build};
    const adj_fit_opts options = {.epochs = 2, .optimizer.lr = 0.02};
    adj_predictor *p;
    if (adj_fit(&ten, digits, NULL, &options, &p, error) ||
        adj_predictor_save(p, file, 0, NULL, error))
        return 1;
    adj_predictor_free(p);
    return 0;
}

/* Returns the number of tensors below the head that have the same bits in both files. */
static int same_bits(const char *file, const char *other)
{
    adj_tensors *a, *b;
    int same = 0;
    if (adj_tensors_read(file, &a) == ADJ_OK && adj_tensors_read(other, &b) == ADJ_OK) {
        for (int i = 0; i < a->n; i++)
            for (int k = 0; k < b->n; k++) {
                const adj_tensor *was = &a->tensor[i], *is = &b->tensor[k];
                same += strcmp(was->name, is->name) == 0 && strncmp(was->name, "logits/", 7) != 0 &&
                        memcmp(was->data, is->data, (size_t)adj_tensor_bytes(was)) == 0;
            }
        adj_tensors_free(b);
    }
    adj_tensors_free(a);
    return same;
}

/* Even digits are class 0, odd ones class 1. */
static adj_dataset *odd_or_even(const adj_dataset *digits)
{
    static int32_t parity[TRAIN];
    adj_dataset *d;
    for (int64_t i = 0; i < digits->n; i++)
        parity[i] = digits->labels[i] % 2;
    return adj_dataset_new(digits->n, 28, 28, 1, 2, digits->images, parity, 1, &d) ? NULL : d;
}

int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : "ten_digits.safetensors";
    const char *result = argc > 2 ? argv[2] : "odd_or_even.safetensors";
    const adj_net two = {
        .name = "odd or even", .build = build, .user = (void *)trunk, .options.freeze = trunk};
    const adj_fit_opts options = {.epochs = 5, .optimizer.lr = 0.01};
    const adj_weights_opts all_but_head = {.fresh = "logits/*", .report = print_weight};
    adj_dataset *digits, *few, *test;
    adj_trainer *t;
    adj_error error;

    if (adj_dataset_digits(ADJ_TRAIN, TRAIN, 1, &digits) ||
        adj_dataset_digits(ADJ_TRAIN, FEW, 2, &few) || adj_dataset_digits(ADJ_TEST, TEST, 1, &test))
        return failed("the digits cannot be drawn");
    adj_dataset *few_two = odd_or_even(few), *test_two = odd_or_even(test);
    if (few_two == NULL || test_two == NULL)
        return failed("out of memory");

    if (train_other(digits, file, &error) ||
        adj_trainer_new(&two, few_two, test_two, &options, &t, &error) ||
        adj_trainer_load(t, file, &all_but_head, &error) || adj_trainer_run(t, &error))
        return failed(error.message);
    if (adj_predictor_save(adj_trainer_predictor(t, &error), result, 0, NULL, &error))
        return failed(error.message);
    const int same = same_bits(file, result);
    const double accuracy = adj_trainer_progress(t).held_out.accuracy;
    printf("odd or even after %d images: %.1f %%; %d tensors unchanged\n", FEW, 100 * accuracy,
           same);

    adj_trainer_free(t);
    adj_dataset_free(test_two);
    adj_dataset_free(few_two);
    adj_dataset_free(test);
    adj_dataset_free(few);
    adj_dataset_free(digits);
    return same == 8 && accuracy > 0.75 ? 0 : 1;
}
