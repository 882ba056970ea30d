/* data.c - see data.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "base/clock.h"
#include "cli/model.h"
#include "cli/onnx_model.h"
#include "cli/standard.h"
#include "cli/terminal.h"
#include "data.h"
#include "io/data/origin.h"

const data_opts data_defaults = {.size = "model", .resize = "auto"};

void list_data_options(data_opts *o, option items[SIZE_ITEMS], option list[DATA_OPTIONS])
{
    const option size[SIZE_ITEMS] = {
        {"", "N", "", .text = &o->size},
        {"channels", "N", "", .integer = &o->channels, .range = {1, 4}},
        {"resize", "R", "", .text = &o->resize, .words = RESIZE_WORDS},
        {0},
    };
    const option all[DATA_OPTIONS] = {
        {"--size", "LIST",
         "image size, N or HxW, default: the model's; channels=1, 3 or 4, default: the model's, or "
         "3 if half of the training images are in color; resize=error rejects images of another "
         "size",
         .items = items},
        {"--limit", "N",
         "maximum number of images per split, in proportion to the classes; default: all",
         .integer = &o->limit, .range = {1, 1e9}},
        {"--val-split", "X",
         "fraction of each class held out of the training split for validation, 0.001 to 0.9",
         .real = &o->val_split, .range = {0.001, 0.9}},
        {"--skip-broken", "", "skips unreadable image files and lists them",
         .flag = &o->skip_broken},
        {0},
    };
    memcpy(items, size, sizeof size);
    memcpy(list, all, sizeof all);
}

/* Sets the model's own size and channels; zeros for an unknown one. asked: the size of an ONNX net
 * without a height or width of its own. */
static int own_size(const char *model, adj_image_size asked, adj_model_opts *own)
{
    adj_error error = {0};
    *own = (adj_model_opts){.size = is_onnx_file(model) ? asked : (adj_image_size){0}};
    if (is_onnx_file(model))
        return onnx_sizes(model, own, &error) == ADJ_OK
                   ? CONTINUE
                   : complain(EXIT_FAILED, "%s", error.message);
    const adj_model *m = adj_model_find(model, own);
    if (m != NULL)
        own->size = size_or(own->size, m->defaults.size);
    return CONTINUE;
}

/* ---- opening ---- */

typedef struct {
    double next; /* seconds_now() of the next line */
    int can_show, is_shown;
} reading_line;

/* Shows on the terminal how many images are read: after the first second, four times a second. The
 * line goes to stderr, since mpirun gives each rank a terminal of its own as standard output. */
static void show_reading(void *user, int64_t done, int64_t n)
{
    reading_line *r = user;
    const double now = seconds_now();
    if (!r->can_show || now < r->next)
        return;
    r->next = now + 0.25;
    r->is_shown = 1;
    fprintf(stderr, "\r\033[Kreading images: %lld of %lld", (long long)done, (long long)n);
}

/* Prints a line for each of the first image files that cannot be read. */
static void list_broken(const char *prefix, const adj_dataset *d)
{
    enum { LISTED = 20 };
    const adj_dataset_origin *origin = origin_of(d);
    for (int64_t i = 0; i < origin->n_broken && i < LISTED; i++)
        complain(EXIT_OK, "%s%s", prefix, origin->broken[i]);
    if (origin->n_broken > LISTED)
        complain(EXIT_OK, "%sand %lld more", prefix, (long long)origin->n_broken - LISTED);
}

static int open_failed(const data_opts *o, const adj_dataset *d)
{
    const int is_refused_size = d != NULL && strcmp(o->resize, "error") == 0 &&
                                strstr(d->message, ": image size differs (got ") != NULL;
    const int64_t n = origin_of(d)->n_broken;
    if (d == NULL || n == 0 || o->skip_broken)
        return complain(EXIT_FAILED, "%s%s", d != NULL ? d->message : "out of memory",
                        is_refused_size
                            ? " (use --size resize=auto, or set the model's size with --size HxW)"
                            : "");
    list_broken("", d);
    return complain(EXIT_FAILED, "%s: %lld image file%s cannot be read (--skip-broken skips %s)",
                    data_name(o->path), (long long)n, n > 1 ? "s" : "", n > 1 ? "them" : "it");
}

int open_data(const data_opts *o, const adj_dataset_opts *takes, adj_dataset_part part,
              const adj_dataset *like, adj_dataset **d)
{
    reading_line line = {.next = seconds_now() + 1,
                         .can_show = terminal_open().lines && isatty(STDERR_FILENO)};
    adj_dataset_opts options = *takes;
    options.limit = o->limit;
    options.val_split = o->val_split;
    options.seed =
        1; /* the same for every --seed, so that runs and eval use the same validation images */
    options.like = like;
    options.skip_broken = (int)o->skip_broken;
    options.progress = show_reading;
    options.user = &line;

    if (is_stdout(o->path))
        return complain(EXIT_USAGE, "--data: expected a file or folder (got standard input)");
    const adj_status opened = adj_dataset_open(o->path, part, &options, d);
    if (line.is_shown)
        fputs("\r\033[K", stderr);
    if (opened != ADJ_OK)
        return open_failed(o, *d);
    list_broken("note: ", *d);
    const int64_t n = origin_of(*d)->n_broken;
    if (n > 0)
        complain(EXIT_OK, "note: %s: left out %lld unreadable image file%s", data_name(o->path),
                 (long long)n, n > 1 ? "s" : "");
    return CONTINUE;
}

int images_for_model(const data_opts *o, const char *model, adj_dataset_opts *takes,
                     adj_model_opts *own)
{
    *takes =
        (adj_dataset_opts){.image.size.c = o->channels,
                           .image.resize = (adj_resize_rule)word_index(RESIZE_WORDS, o->resize)};
    if (o->channels == 2)
        return complain(EXIT_USAGE, "--size channels: got 2, expected 1, 3 or 4");
    const int is_own = strcmp(o->size, "model") == 0;
    if (!is_own && !parse_size(o->size, ADJ_MAX_SIDE, &takes->image.size.h, &takes->image.size.w))
        return complain(EXIT_USAGE,
                        "--size: expected N or HxW, 1 to %d, channels=N or resize=R (got %s)",
                        ADJ_MAX_SIDE, o->size);
    const int status = own_size(model, takes->image.size, own);
    if (status != CONTINUE)
        return status;
    if (is_own) {
        takes->image.size.h = own->size.h;
        takes->image.size.w = own->size.w;
    }
    const adj_image_size *asked = &takes->image.size;
    if (is_onnx_file(model) &&
        ((asked->c != 0 && asked->c != own->size.c) || (asked->h != 0 && asked->h != own->size.h) ||
         (asked->w != 0 && asked->w != own->size.w)))
        return complain(EXIT_USAGE,
                        "--size: %s takes images of %s, to which all are resized "
                        "(leave --size out)",
                        model, full_text(own->size).s);
    /* All images get the channels of an ONNX net, those of a folder also those of a color model. A
     * gray model of the library gets the channels of most images. */
    const int is_folder = adj_dataset_layout(o->path) == ADJ_DATA_FOLDER;
    if (takes->image.size.c == 0 && (is_onnx_file(model) || (own->size.c > 1 && is_folder)))
        takes->image.size.c = own->size.c;
    return CONTINUE;
}

adj_model_opts model_for_images(const data_opts *o, const adj_model_opts *own, const adj_dataset *d)
{
    adj_model_opts options = {0};

    if (strcmp(o->size, "model") != 0) {
        options.size.h = d->size.h;
        options.size.w = d->size.w;
    }
    options.size.c = o->channels > 0 || d->size.c > 1 ? d->size.c : own->size.c;
    return options;
}

void say_prepared(int n_part, const adj_dataset *const part[], int64_t channels, int can_choose)
{
    const adj_dataset *d = part[0];
    long long n = 0, resized = 0, recolored = 0;
    for (int i = 0; i < n_part; i++) {
        n += part[i]->n;
        resized += origin_of(part[i])->resized;
        recolored += origin_of(part[i])->recolored;
    }
    const long long changed = channels != d->size.c ? n : recolored;
    if (d->normalized)
        say_wrapped(
            "note: values below 0 are taken as normalized; predict will reject image files");
    else if (origin_of(d)->high > 0 && origin_of(d)->high <= 1)
        say_wrapped("note: %s: values from 0 to 1 are taken as pixels divided by 255",
                    origin_of(d)->values_of);
    if (resized > 0)
        say_wrapped("note: %lld of %lld images are resized to %s", resized, n,
                    sides_text(d->size).s);
    if (changed > 0)
        say_wrapped("note: %lld of %lld images%s are %s%s", changed, n,
                    n_part > 1 ? " in all splits" : "",
                    channels == 1 ? "in color and become gray" : "gray and become color",
                    !can_choose     ? ""
                    : channels == 1 ? " (--size channels=3 keeps colors)"
                                    : " (--size channels=1 makes all gray)");
}

adj_dataset_part part_to_judge(data_opts *o)
{
    const double default_split = 0.2;
    if (o->val_split > 0 || adj_dataset_has_part(o->path, ADJ_VALIDATION))
        return ADJ_VALIDATION;
    if (adj_dataset_has_part(o->path, ADJ_TEST) ||
        adj_dataset_layout(o->path) == ADJ_DATA_NONE) /* adj_dataset_open reports it */
        return ADJ_TEST;
    o->val_split = default_split;
    say_wrapped("note: %s has no validation or test split; holding out %.0f %% of each class (in "
                "eval, use --val-split %g)",
                data_name(o->path), 100 * default_split, default_split);
    return ADJ_VALIDATION;
}

const char *part_name(adj_dataset_part part)
{
    static const char *const names[] = {"train", "test", "validation"};
    return names[part];
}

const char *data_name(const char *path)
{
    return path != NULL && strcmp(path, "digits") != 0 ? path : "embedded digits";
}

/* ---- what a data set holds ---- */

enum { LINE = 600, NAMED_CLASSES = 10, MAX_NAMES = 200, MAX_EMPTY = 5 };

int64_t *count_classes(const adj_dataset *d)
{
    int64_t *count = allocate(d->classes, sizeof *count);
    for (int64_t i = 0; i < d->n; i++)
        count[d->labels[i]]++;
    return count;
}

static int count_present(const adj_dataset *d, const int64_t count[])
{
    int n = 0;
    for (int k = 0; k < d->classes; k++)
        n += count[k] > 0;
    return n;
}

/* True if the names of the classes are few and short enough for a line. */
static int can_name(const adj_dataset *d)
{
    size_t bytes = 0;
    for (int k = 0; d->class_names != NULL && d->classes <= NAMED_CLASSES && k < d->classes; k++)
        bytes += strlen(d->class_names[k]);
    return bytes > 0 && bytes <= MAX_NAMES;
}

/* Appends the number of images of each class, or the least and greatest number. */
static void append_counts(char line[LINE], const adj_dataset *d, const int64_t count[])
{
    int64_t least = INT64_MAX, most = 0;
    const char *before = " (";

    for (int k = 0; k < d->classes; k++) {
        if (count[k] == 0)
            continue;
        least = count[k] < least ? count[k] : least;
        most = count[k] > most ? count[k] : most;
        if (can_name(d)) {
            c_append(line, LINE, "%s%s %lld", before, d->class_names[k], (long long)count[k]);
            before = ", ";
        }
    }
    if (can_name(d))
        c_append(line, LINE, ")");
    else if (least == most)
        c_append(line, LINE, " (%lld each)", (long long)least);
    else
        c_append(line, LINE, " (%lld to %lld each)", (long long)least, (long long)most);
}

static void append_part(char line[LINE], const adj_dataset *d, const char *word, int is_first)
{
    int64_t *count = count_classes(d);
    const int present = count_present(d, count);

    c_append(line, LINE, "%s%s %lld", is_first ? "" : ", ", word, (long long)d->n);
    if (is_first)
        c_append(line, LINE, d->n > 1 ? " images" : " image");
    if (present < d->classes)
        c_append(line, LINE, " in %d of %d classes", present, d->classes);
    else if (is_first)
        c_append(line, LINE, " in %d classes", d->classes);
    if (is_first)
        append_counts(line, d, count);
    free(count);
}

void say_empty_classes(const adj_dataset *d)
{
    char line[LINE] = "";
    int64_t *count = count_classes(d);
    const int missing = d->classes - count_present(d, count);

    for (int k = 0, n = 0; missing > 0 && n < MAX_EMPTY && k < d->classes; k++) {
        if (count[k] > 0)
            continue;
        if (d->class_names != NULL)
            c_append(line, LINE, "%s%.80s", n++ > 0 ? ", " : "", d->class_names[k]);
        else
            c_append(line, LINE, "%s%d", n++ > 0 ? ", " : "", k);
    }
    if (missing == 1 && count[0] == 0 && d->class_names == NULL)
        say_wrapped("note: class 0 of %d has no images; if the labels count from 1, subtract 1 for "
                    "%d classes",
                    d->classes, d->classes - 1);
    else if (missing > 0)
        say_wrapped("note: class%s %s%s %s no images to train on", missing > 1 ? "es" : "", line,
                    missing > MAX_EMPTY ? ", ..." : "", missing > 1 ? "have" : "has");
    free(count);
}

/* Prints the files that the splits leave out: one line if it is the same for all, else one per
 * split. */
static void say_left_out(int n, const adj_dataset *const part[], const char *const word[])
{
    int is_same = 1;
    for (int i = 1; i < n; i++)
        is_same &= strcmp(part[i]->left_out, part[0]->left_out) == 0;
    if (is_same && part[0]->left_out[0] != '\0')
        say_wrapped("left out: %s", part[0]->left_out);
    for (int i = 0; i < n && !is_same; i++)
        if (part[i]->left_out[0] != '\0')
            say_wrapped("left out of %s: %s", word[i], part[i]->left_out);
}

void say_found(const char *path, int n, const adj_dataset *const part[], const char *const word[])
{
    char line[LINE] = "";
    for (int i = 0; i < n; i++)
        append_part(line, part[i], word[i], i == 0);
    say_wrapped("%s: %s", data_name(path), line);
    say_left_out(n, part, word);
}
