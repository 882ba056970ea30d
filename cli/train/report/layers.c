/* layers.c - the report's first layer, model and plan. */
#include <math.h>
#include <stdlib.h>

#include "graph/printable.h"
#include "report.h"

/* ---- filters ---- */

static double largest(const report_filters *l)
{
    double max = 0;
    for (int64_t i = 0; i < l->h * l->w * l->c * l->n; i++)
        if (isfinite(l->values[i]))
            max = fmax(max, fabs((double)l->values[i]));
    return max;
}

/* Filter k: 0 is middle grey, the layer's largest magnitude white or black; of three channels the
 * colours, of other numbers the mean. */
static void draw_filter(const report_filters *l, int64_t k, double max, uint8_t *pixels)
{
    int64_t colours = l->c == 3 ? 3 : 1, each = l->c / colours;
    for (int64_t i = 0; i < l->h * l->w; i++)
        for (int64_t j = 0; j < colours; j++) {
            double sum = 0;
            for (int64_t c = j * each; c < (j + 1) * each; c++)
                sum += l->values[(i * l->c + c) * l->n + k];
            double part = max > 0 && isfinite(sum) ? sum / (double)each / max : 0;
            pixels[i * colours + j] = (uint8_t)lround(127.5 + 127.5 * part);
        }
}

int report_first_layer(FILE *f, const report_filters *l)
{
    if (l == NULL || l->values == NULL || l->h < 1 || l->w < 1 || l->c < 1 || l->n < 1)
        return 0;
    int64_t shown = l->n < REPORT_FILTERS ? l->n : REPORT_FILTERS;
    uint8_t *pixels = malloc((size_t)(l->h * l->w * 3));
    if (pixels == NULL)
        return -1;
    double max = largest(l);
    page_section(f, "filters", "First layer");
    page_note(f,
              "%lld of the %lld filters of %s, %lld x %lld%s. Grey is 0, white or black the "
              "largest weight, %.3g.",
              (long long)shown, (long long)l->n, l->name, (long long)l->h, (long long)l->w,
              l->c == 1   ? ""
              : l->c == 3 ? ", in colours"
                          : ", the mean over their channels",
              max);
    fputs("<ul class=\"filters\">\n", f);
    for (int64_t k = 0; k < shown; k++) {
        const picture p = {l->w, l->h, l->c == 3 ? 3 : 1, pixels};
        draw_filter(l, k, max, pixels);
        fputs("<li><img src=\"", f);
        (void)png_put_uri(f, &p);
        fprintf(f, "\" alt=\"filter %lld\"></li>\n", (long long)k);
    }
    fputs("</ul>\n", f);
    free(pixels);
    return 0;
}

/* ---- the model ---- */

static void put_layer(FILE *f, const report_plan *p, const report_layer *l)
{
    char text[PAGE_NUMBER];
    double seconds = l->forward + l->backward;
    fputs("<tr>", f);
    page_cell_name(f, l->name, l->ops);
    page_cell_text(f, "l more", l->shape);
    page_cell_text(f, "", page_whole(text, l->params));
    page_cell_text(f, "", page_count(text, l->macs / (double)p->batch));
    page_cell_text(f, "more", page_bytes(text, (double)l->bytes));
    page_cell_number(f, "more", "%.0f", 1e6 * l->forward);
    page_cell_number(f, "more", "%.0f", 1e6 * l->backward);
    page_cell_number(f, "", "%.1f %%", p->seconds > 0 ? 100 * seconds / p->seconds : NAN);
    fputs("</tr>\n", f);
}

static void put_sums(FILE *f, const report_plan *p)
{
    report_layer all = {.name = "all"};
    char text[PAGE_NUMBER];
    for (int i = 0; i < p->n_layer; i++) {
        all.params += p->layer[i].params;
        all.macs += p->layer[i].macs;
        all.bytes += p->layer[i].bytes;
        all.forward += p->layer[i].forward;
        all.backward += p->layer[i].backward;
    }
    fputs("</tbody><tfoot><tr><td class=\"l\">together</td><td class=\"more\"></td>", f);
    page_cell_text(f, "", page_whole(text, all.params));
    page_cell_text(f, "", page_count(text, all.macs / (double)p->batch));
    page_cell_text(f, "more", page_bytes(text, (double)all.bytes));
    page_cell_number(f, "more", "%.0f", 1e6 * all.forward);
    page_cell_number(f, "more", "%.0f", 1e6 * all.backward);
    page_cell_number(f, "", "%.1f %%",
                     p->seconds > 0 ? 100 * (all.forward + all.backward) / p->seconds : NAN);
    fputs("</tr></tfoot></table>\n", f);
}

static void put_model(FILE *f, const report_plan *p)
{
    page_section(f, "model", "Model");
    page_note(f,
              "Multiply-accumulates are of one image's forward pass; times are of the steps of a "
              "training step with %lld images, medians of %d; memory is that of a layer's results "
              "for the batch, before the plan lets them share it.",
              (long long)p->batch, p->runs);
    page_frame_begin(f, "The model's layers");
    fputs("<table>\n<thead><tr><th class=\"l\">layer</th><th class=\"l more\">result</th>"
          "<th>parameters</th><th>MACs</th><th class=\"more\">memory</th>"
          "<th class=\"more\">forward &micro;s</th><th class=\"more\">backward &micro;s</th>"
          "<th>time</th></tr></thead>\n<tbody>\n",
          f);
    for (int i = 0; i < p->n_layer; i++)
        if (p->layer[i].params > 0 || p->layer[i].forward + p->layer[i].backward > 0)
            put_layer(f, p, &p->layer[i]);
    put_sums(f, p);
    page_frame_end(f);
}

/* ---- the plan ---- */

static void put_kernels(FILE *f, const report_plan *p)
{
    page_frame_begin(f, "Kernels of a training step");
    fputs("<table>\n<thead><tr><th class=\"l\">op</th><th>steps</th><th>&micro;s</th><th>time</th>"
          "<th class=\"l more\">kernel</th></tr></thead>\n<tbody>\n",
          f);
    for (int i = 0; i < p->n_kernel; i++) {
        const report_kernel *k = &p->kernel[i];
        fputs("<tr>", f);
        page_cell_name(f, k->op, "");
        page_cell_number(f, "", "%.0f", k->steps);
        page_cell_number(f, "", "%.0f", 1e6 * k->seconds);
        page_cell_number(f, "", "%.1f %%", p->seconds > 0 ? 100 * k->seconds / p->seconds : NAN);
        put_escaped(f, FOR_XML, "<td class=\"l more\">%s%s%s</td></tr>\n", k->backend,
                    k->impl[0] != '\0' ? " " : "", k->impl);
    }
    fputs("</tbody></table>\n", f);
    page_frame_end(f);
}

static void put_fallbacks(FILE *f, const report_plan *p)
{
    if (p->n_fallback == 0) {
        page_note(f, "No step fell back to another backend.");
        return;
    }
    fputs("<h3>Not on the preferred backend</h3>\n", f);
    page_frame_begin(f, "Steps not on the preferred backend");
    fputs("<table>\n<thead><tr><th class=\"l\">op</th><th>steps</th><th class=\"l\">runs on</th>"
          "<th class=\"more\">&micro;s</th><th class=\"l\">because</th></tr></thead>\n<tbody>\n",
          f);
    for (int i = 0; i < p->n_fallback; i++) {
        const report_fallback *s = &p->fallback[i];
        fputs("<tr>", f);
        page_cell_name(f, s->op, s->names);
        page_cell_number(f, "", "%.0f", s->steps);
        page_cell_text(f, "l", s->backend);
        page_cell_number(f, "more", "%.0f", 1e6 * s->seconds);
        page_cell_text(f, "l text", s->why);
        fputs("</tr>\n", f);
    }
    fputs("</tbody></table>\n", f);
    page_frame_end(f);
}

void report_model(FILE *f, const report_plan *p)
{
    char arena[PAGE_NUMBER], storage[PAGE_NUMBER];
    if (p == NULL || p->batch < 1)
        return;
    put_model(f, p);
    page_section(f, "plan", "Plan of a training step");
    page_note(f,
              "%d steps, %d of them on naive, the reference kernels; %d changes of layout. "
              "Values share %s of memory; parameters and what is kept between steps take %s.",
              p->steps, p->naive_steps, p->reorders, page_bytes(arena, (double)p->arena_bytes),
              page_bytes(storage, (double)p->storage_bytes));
    put_kernels(f, p);
    put_fallbacks(f, p);
}
