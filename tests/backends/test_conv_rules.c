/* test_conv_rules.c - rules that were measured on some machines hold on machines like them, and for
 * the convolutions that they were measured for. The machines are literal: none of them is at hand.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "backends/onednn/conv_rules.h"
#include "tools/cases.h"

/* Versions and instruction sets as oneDNN 2.6.3's and 3.7.2's headers number them. */
static const machine zen5 = {20603, 0xe7, {"AuthenticAMD", 26, 2}},
                     zen5_3 = {30702, 0xe7, {"AuthenticAMD", 26, 2}},
                     zen4 = {20603, 0xe7, {"AuthenticAMD", 25, 17}},
                     zen4_3 = {30702, 0xe7, {"AuthenticAMD", 25, 17}},
                     zen3 = {20603, 0x7, {"AuthenticAMD", 25, 1}},
                     cascade_lake = {20603, 0x67, {"GenuineIntel", 6, 85}},
                     avx2 = {20603, 0x7, {"GenuineIntel", 6, 60}},
                     avx2_3 = {30702, 0x7, {"GenuineIntel", 6, 60}},
                     avx = {20603, 0x3, {"GenuineIntel", 6, 42}},
                     amx = {20603, 0x3e7, {"GenuineIntel", 6, 143}},
                     amx_3 = {30702, 0xfef, {"GenuineIntel", 6, 143}},
                     fp16_3 = {30702, 0x1ef, {"", 0, 0}};

/* The versions' headers number AMX and what came later differently, and rows hold for the version
 * that they were compiled with. */
static int is_numbered_here(const machine *m)
{
    return m->isa <= zen5.isa || m->version / 10000 == DNNL_VERSION_MAJOR;
}

static const conv_rule *named(const char *name)
{
    for (int i = 0; i < conv_rule_count(); i++)
        if (strcmp(conv_rule_at(i)->name, name) == 0)
            return conv_rule_at(i);
    cr_assert_fail("there is no rule %s", name);
    return NULL;
}

#define BF16 "forward_from_16_bf16 input_1x1_bf16 filter_16_to_16_bf16"
#define NO_AMX "winograd_of_more"                         /* on all without AMX */
#define ZEN4 "filter_of_direct_1x1 forward_of_direct_1x1" /* there alone */
#define WINOGRAD "winograd winograd_filter"
/* where vectors of 8 are the largest; all but the first only in version 2 */
#define AVX2 "filter_of_direct_avx2 " AVX2_2
#define AVX2_2                                                                                     \
    "forward_of_direct_avx2 input_of_direct_avx2 filter_of_many_1x1_of_direct_avx2 "               \
    "filter_panels_of_direct_avx2 filter_5x5_of_direct_avx2"
/* where vectors of 16 differ from those of 8 */
#define WIDE "input_1x1_towards_4_f32 depthwise_below_8 forward_1x1_from_8_f32"
#define NARROW "depthwise_up_to_4"
/* only with AMX */
#define TILES "forward_of_direct_amx input_of_direct_amx image_by_parts filter_by_parts"
#define HELD "forward_of_direct_alone input_of_direct_alone" /* avx512_bf16 without AMX */
#define NO_BF16 TILES " " HELD " filter_of_direct_bf16"

static int is_among(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0'))
            return 1;
    return 0;
}

Test(conv_rules, hold_on_machines_like_those_they_were_measured_on)
{
    static const struct {
        const char *label;
        const machine *m;
        const char *without; /* all others hold */
    } cases[] = {
        {"Zen 5, where they were measured", &zen5, TILES " " NARROW " " ZEN4 " " AVX2},
        {"Zen 5, oneDNN 3: it has no Winograd", &zen5_3,
         TILES " " NARROW " " WINOGRAD " " ZEN4 " " AVX2},
        {"AMX: other kernels for bf16", &amx,
         HELD " " NARROW " " BF16 " " NO_AMX " " ZEN4 " " AVX2},
        {"AMX, oneDNN 3", &amx_3,
         HELD " " NARROW " " BF16 " " NO_AMX " " WINOGRAD " " ZEN4 " " AVX2},
        {"AVX-512 with f16 and without AMX, oneDNN 3", &fp16_3,
         TILES " " NARROW " " WINOGRAD " " ZEN4 " " AVX2},
        {"AVX-512 without bf16", &cascade_lake, NO_BF16 " " NARROW " " BF16 " " ZEN4 " " AVX2},
        {"AVX2", &avx2, NO_BF16 " " WIDE " " BF16 " " WINOGRAD " " ZEN4},
        {"AVX2, oneDNN 3: it has other kernels", &avx2_3,
         NO_BF16 " " WIDE " " BF16 " " WINOGRAD " " ZEN4 " " AVX2_2},
        {"AVX alone", &avx, NO_BF16 " " WIDE " " BF16 " " WINOGRAD " " ZEN4 " " AVX2},
        {"Zen 3: of Zen 4's family, with AVX2", &zen3,
         NO_BF16 " " WIDE " " BF16 " " WINOGRAD " " ZEN4},
        {"Zen 4: vectors of 16 in two halves", &zen4,
         TILES " " NARROW
               " filter_from_few_f32 input_1x1_towards_4_f32 depthwise_input_bf16 " AVX2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int i = 0; i < conv_rule_count() && is_numbered_here(cases[k].m); i++) {
            const conv_rule *r = conv_rule_at(i);
            cr_expect_eq(rule_holds(r, *cases[k].m), !is_among(cases[k].without, r->name), "%s: %s",
                         cases[k].label, r->name);
        }
}

/* Versions and instruction sets are bounds, both versions included. */
Test(conv_rules, bounds)
{
    const conv_rule r = {.first = 20603, .last = 30702, .isa = 0x27, .below = 0x3e7};
    static const struct {
        machine m;
        int holds;
    } cases[] = {{{20603, 0x27, {"", 0, 0}}, 1},  {{20602, 0x27, {"", 0, 0}}, 0},
                 {{30702, 0x27, {"", 0, 0}}, 1},  {{30703, 0x27, {"", 0, 0}}, 0},
                 {{20603, 0x2f, {"", 0, 0}}, 1},  {{20603, 0x7, {"", 0, 0}}, 0},
                 {{20603, 0, {"", 0, 0}}, 0},     {{20603, 0xe7, {"", 0, 0}}, 1},
                 {{20603, 0x3e7, {"", 0, 0}}, 0}, {{20603, 0x1e7, {"", 0, 0}}, 1},
                 {{30000, 0xfef, {"", 0, 0}}, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_eq(rule_holds(&r, cases[i].m), cases[i].holds, "%zu", i);
    cr_expect(rule_holds(&(conv_rule){0}, (machine){1, 0, {"", 0, 0}}), "everything is open");
}

Test(conv_rules, have_names_of_their_own_of_one_word)
{
    for (int i = 0; i < conv_rule_count(); i++) {
        const conv_rule *r = conv_rule_at(i);
        cr_expect_eq(named(r->name), r, "%s is there twice", r->name);
        cr_expect_null(strpbrk(r->name, " \t#"), "%s is more than a word", r->name);
        cr_expect_eq(r->impl != NULL, r->prefers == NAMED_FIRST, "%s", r->name);
    }
}

/* ---- which convolutions ---- */

typedef struct {
    sweep_direction direction;
    adj_dtype dtype;
    int depthwise;
    int64_t n, size, k, stride, dilation, ic, oc;
    conv_preference preference;
    const char *zen5, *amx, *avx2; /* the row; NULL: none */
} convolution;

static const convolution cases[] = {
    /* LeNet's first convolution: one channel, 5x5, batch 64 */
    {FORWARD, ADJ_F32, 0, 64, 28, 5, 1, 1, 1, 32, NAMED_FIRST, "forward_from_8_f32",
     "forward_from_8_f32", "forward_from_8_f32"},
    /* MobileNet's first 1x1 */
    {FORWARD, ADJ_F32, 0, 32, 48, 1, 1, 1, 8, 16, NAMED_FIRST, "forward_1x1_from_8_f32",
     "forward_1x1_from_8_f32", NULL},
    {FORWARD, ADJ_BF16, 0, 64, 28, 5, 1, 1, 1, 32, NAMED_FIRST, "forward_from_16_bf16", NULL, NULL},
    {FORWARD, ADJ_F16, 0, 64, 28, 5, 1, 1, 1, 32, NAMED_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 28, 5, 1, 1, 1, 32, DIRECT_FIRST, "filter_from_few_f32",
     "filter_from_few_f32", "filter_from_few_f32"},
    {BACKWARD_WEIGHTS, ADJ_BF16, 0, 64, 28, 5, 1, 1, 1, 32, DIRECT_FIRST, NULL, NULL, NULL},
    /* ResNet-20's stages, batch 128 */
    {FORWARD, ADJ_BF16, 0, 128, 32, 3, 1, 1, 16, 16, NAMED_FIRST, "forward_from_16_bf16", NULL,
     NULL},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 1, 1, 16, 16, NAMED_FIRST, NULL, NULL, NULL},
    {FORWARD, ADJ_BF16, 0, 128, 32, 3, 1, 1, 16, 16, DIRECT_COMPETES, "forward_of_direct_alone",
     "forward_of_direct_amx", NULL},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 1, 1, 16, 16, DIRECT_COMPETES, NULL, NULL,
     "forward_of_direct_avx2"},
    {FORWARD, ADJ_BF16, 0, 128, 8, 3, 1, 1, 64, 64, DIRECT_COMPETES, "forward_of_direct_alone",
     NULL, NULL},
    {FORWARD, ADJ_BF16, 0, 128, 32, 1, 2, 1, 16, 32, DIRECT_COMPETES, "forward_of_direct_alone",
     NULL, NULL},
    {FORWARD, ADJ_BF16, 0, 3, 16, 3, 1, 1, 16, 16, DIRECT_COMPETES, "forward_of_direct_alone", NULL,
     NULL},
    {BACKWARD_DATA, ADJ_BF16, 0, 128, 8, 3, 1, 1, 64, 64, DIRECT_COMPETES, "input_of_direct_alone",
     "input_of_direct_amx", NULL},
    {BACKWARD_DATA, ADJ_BF16, 0, 128, 8, 3, 1, 1, 65, 64, DIRECT_COMPETES, "input_of_direct_alone",
     NULL, NULL},
    {BACKWARD_DATA, ADJ_BF16, 0, 128, 16, 3, 2, 1, 32, 64, DIRECT_COMPETES, "input_of_direct_alone",
     "input_of_direct_amx", NULL},
    {BACKWARD_DATA, ADJ_BF16, 0, 128, 32, 3, 1, 1, 3, 16, DIRECT_COMPETES, NULL, NULL, NULL},
    {FORWARD, ADJ_BF16, 0, 128, 16, 3, 1, 1, 32, 32, NAMED_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_BF16, 0, 128, 32, 3, 1, 1, 16, 16, BLOCKS_FIRST, "filter_16_to_16_bf16",
     NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_BF16, 0, 128, 32, 3, 2, 1, 16, 32, BLOCKS_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 128, 32, 3, 1, 1, 3, 16, DIRECT_FIRST, NULL, NULL, NULL},
    {FORWARD, ADJ_F32, 0, 128, 16, 3, 1, 1, 32, 32, FAST_DIRECT_COMPETES, "winograd_of_direct",
     "winograd_of_direct", "winograd_of_direct"},
    {FORWARD, ADJ_F32, 0, 128, 16, 3, 1, 1, 32, 32, WINOGRAD_FIRST, "winograd", "winograd", NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 128, 16, 3, 1, 1, 32, 32, WINOGRAD_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 128, 8, 3, 1, 1, 64, 64, WINOGRAD_FIRST, "winograd_filter",
     "winograd_filter", NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 63, 8, 3, 1, 1, 64, 64, WINOGRAD_FIRST, NULL, NULL, NULL},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 2, 1, 32, 32, FAST_DIRECT_COMPETES, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 14, 7, 1, 1, 32, 64, FAST_DIRECT_COMPETES, NULL,
     "filter_by_parts", NULL},
    {BACKWARD_DATA, ADJ_F32, 0, 64, 14, 5, 1, 1, 32, 64, FAST_DIRECT_COMPETES, "winograd_of_more",
     "image_by_parts", "winograd_of_more"},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 1, 1, 16, 16, FAST_DIRECT_COMPETES, "winograd_of_more",
     "image_by_parts", "winograd_of_more"},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 1, 2, 16, 16, FAST_DIRECT_COMPETES, NULL, NULL, NULL},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 1, 1, 15, 16, FAST_DIRECT_COMPETES, NULL, NULL, NULL},
    {FORWARD, ADJ_F32, 0, 128, 32, 3, 1, 1, 24, 16, FAST_DIRECT_COMPETES, NULL, "image_by_parts",
     NULL},
    {FORWARD, ADJ_F32, 0, 1, 31, 3, 1, 1, 16, 16, FAST_DIRECT_COMPETES, NULL, NULL, NULL},
    /* towards an image */
    {BACKWARD_DATA, ADJ_F32, 0, 8, 32, 3, 1, 1, 8, 64, DIRECT_FIRST, "input_towards_few_f32",
     "input_towards_few_f32", "input_towards_few_f32"},
    {BACKWARD_DATA, ADJ_F32, 0, 8, 32, 3, 1, 1, 9, 64, DIRECT_FIRST, NULL, NULL, NULL},
    {BACKWARD_DATA, ADJ_F32, 0, 8, 32, 3, 1, 2, 8, 64, DIRECT_FIRST, NULL, NULL, NULL},
    {BACKWARD_DATA, ADJ_F32, 0, 8, 32, 1, 1, 1, 4, 64, DIRECT_FIRST, "input_1x1_towards_4_f32",
     "input_1x1_towards_4_f32", NULL},
    {BACKWARD_DATA, ADJ_F32, 0, 8, 32, 1, 1, 1, 5, 64, DIRECT_FIRST, NULL, NULL, NULL},
    {BACKWARD_DATA, ADJ_F32, 0, 8, 32, 1, 1, 1, 8, 64, NAMED_FIRST, "input_1x1_f32",
     "input_1x1_f32", "input_1x1_f32"},
    {BACKWARD_DATA, ADJ_BF16, 0, 8, 32, 1, 1, 1, 8, 64, NAMED_FIRST, "input_1x1_bf16", NULL, NULL},
    {BACKWARD_DATA, ADJ_BF16, 0, 8, 32, 3, 1, 1, 5, 64, DIRECT_FIRST, NULL, NULL, NULL},
    {BACKWARD_DATA, ADJ_BF16, 0, 8, 32, 1, 1, 1, 4, 64, DIRECT_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 8, 32, 3, 1, 1, 16, 8, NAMED_FIRST, "filter_to_8_f32",
     "filter_to_8_f32", "filter_to_8_f32"},
    {BACKWARD_WEIGHTS, ADJ_F32, 0, 8, 32, 3, 1, 1, 16, 9, NAMED_FIRST, NULL, NULL, NULL},
    /* MobileNetV1's depthwise ones, and such with multipliers, few channels, dilation */
    {FORWARD, ADJ_F32, 1, 32, 48, 3, 1, 1, 8, 8, NAMED_FIRST, "depthwise_up_to_8_f32",
     "depthwise_up_to_8_f32", "depthwise_up_to_8_f32"},
    {FORWARD, ADJ_F32, 1, 32, 48, 3, 1, 1, 8, 8, DIRECT_FIRST, NULL, NULL, NULL},
    {FORWARD, ADJ_BF16, 1, 32, 48, 3, 1, 1, 8, 8, DIRECT_FIRST, "depthwise_of_8_bf16",
     "depthwise_of_8_bf16", "depthwise_of_8_bf16"},
    {BACKWARD_WEIGHTS, ADJ_BF16, 1, 32, 48, 3, 2, 1, 8, 8, DIRECT_FIRST, "depthwise_of_8_bf16",
     "depthwise_of_8_bf16", "depthwise_of_8_bf16"},
    {FORWARD, ADJ_BF16, 1, 32, 24, 3, 1, 1, 32, 32, NAMED_FIRST, "depthwise_forward",
     "depthwise_forward", "depthwise_forward"},
    {BACKWARD_DATA, ADJ_F32, 1, 32, 24, 3, 1, 1, 32, 32, DIRECT_FIRST, "depthwise_input",
     "depthwise_input", "depthwise_input"},
    {BACKWARD_DATA, ADJ_BF16, 1, 32, 24, 3, 1, 1, 32, 32, DIRECT_FIRST, "depthwise_input_bf16",
     "depthwise_input_bf16", "depthwise_input_bf16"},
    {BACKWARD_DATA, ADJ_BF16, 1, 32, 24, 3, 2, 1, 32, 32, NAMED_FIRST, "depthwise_input_strided",
     "depthwise_input_strided", "depthwise_input_strided"},
    {BACKWARD_DATA, ADJ_BF16, 1, 32, 24, 3, 1, 1, 32, 32, NAMED_FIRST, NULL, NULL, NULL},
    {BACKWARD_DATA, ADJ_F32, 1, 32, 24, 3, 2, 1, 32, 32, NAMED_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 1, 32, 24, 3, 1, 1, 32, 32, DIRECT_FIRST, NULL, NULL, NULL},
    {BACKWARD_WEIGHTS, ADJ_F32, 1, 32, 24, 3, 1, 2, 32, 32, DIRECT_FIRST, "depthwise_filter_large",
     "depthwise_filter_large", "depthwise_filter_large"},
    {BACKWARD_WEIGHTS, ADJ_F32, 1, 32, 24, 5, 1, 1, 32, 32, DIRECT_FIRST, "depthwise_filter_large",
     "depthwise_filter_large", "depthwise_filter_large"},
    {FORWARD, ADJ_F32, 1, 32, 24, 3, 1, 1, 16, 32, DIRECT_FIRST, "depthwise_multiplier",
     "depthwise_multiplier", "depthwise_multiplier"},
    {FORWARD, ADJ_F32, 1, 32, 24, 3, 1, 1, 7, 7, DIRECT_FIRST, "depthwise_below_8",
     "depthwise_below_8", NULL},
    {FORWARD, ADJ_F32, 1, 32, 24, 3, 1, 1, 4, 4, DIRECT_FIRST, "depthwise_below_8",
     "depthwise_below_8", "depthwise_up_to_4"},
};

static const char *name_of(const conv_rule *r) { return r != NULL ? r->name : "none"; }

/* The convolution's node in g. */
static const adj_node *node_in(adj_graph *g, const convolution *of)
{
    const int64_t s = of->stride, d = of->dilation;
    const sweep_case c = {
        .direction = of->direction,
        .dtype = of->dtype,
        .depthwise = of->depthwise,
        .n = of->n,
        .h = of->size,
        .w = of->size,
        .k = of->k,
        .ic = of->ic,
        .oc = of->oc,
        .groups = of->depthwise ? of->ic : 1,
        .conv = {.stride = {1, s, s, 1}, .dilation = {1, d, d, 1}, .padding = ADJ_SAME}};
    const adj_node *n = sweep_node(g, &c);
    cr_assert_not_null(n, "%s", adj_graph_message(g));
    return n;
}

static const adj_node *node_of(adj_graph *g, size_t k) { return node_in(g, &cases[k]); }

Test(conv_rules, are_for_the_convolutions_that_they_were_measured_for)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        adj_graph *g = adj_graph_new();
        const adj_node *n = node_of(g, k);
        const struct {
            machine m;
            const char *row;
        } expected[] = {{zen5, cases[k].zen5}, {amx, cases[k].amx}, {avx2, cases[k].avx2}};
        for (int i = 0; i < 3; i++)
            if (is_numbered_here(&expected[i].m))
                cr_expect_str_eq(name_of(rule_for(n, cases[k].preference, expected[i].m)),
                                 expected[i].row != NULL ? expected[i].row : "none",
                                 "case %zu, machine %d", k, i);
        adj_graph_free(g);
    }
}

/* MobileNet's pixels, which only Zen 4 has a row for. */
Test(conv_rules, are_for_pixels)
{
    static const char dw[] = "filter_of_direct_1x1", y[] = "forward_of_direct_1x1", none[] = "none";
    static const struct {
        convolution c;
        const char *row;
    } list[] = {{{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 6, 1, 1, 1, 128, 128, 0, 0, 0, 0}, dw},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 3, 1, 1, 1, 128, 256, 0, 0, 0, 0}, dw},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 3, 1, 1, 1, 144, 144, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 1, 1, 1, 16, 32, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 1, 1, 1, 40, 32, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 1, 1, 1, 32, 40, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 1, 1, 1, 32, 16, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 1, 2, 1, 32, 32, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 3, 1, 1, 32, 32, 0, 0, 0, 0}, none},
                {{BACKWARD_WEIGHTS, ADJ_F32, 0, 1, 12, 1, 1, 1, 64, 64, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 6, 1, 1, 1, 128, 128, 0, 0, 0, 0}, y},
                {{FORWARD, ADJ_F32, 0, 32, 12, 1, 1, 1, 64, 64, 0, 0, 0, 0}, y},
                {{FORWARD, ADJ_F32, 0, 32, 6, 1, 1, 1, 64, 128, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 12, 1, 1, 1, 64, 48, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 12, 1, 1, 1, 144, 64, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 12, 1, 1, 1, 72, 64, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 12, 1, 1, 1, 128, 72, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 12, 1, 2, 1, 64, 64, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 32, 12, 3, 1, 1, 64, 64, 0, 0, 0, 0}, none},
                {{FORWARD, ADJ_F32, 0, 1, 12, 1, 1, 1, 64, 64, 0, 0, 0, 0}, none},
                {{BACKWARD_DATA, ADJ_F32, 0, 32, 12, 1, 1, 1, 64, 64, 0, 0, 0, 0}, none}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        adj_graph *g = adj_graph_new();
        const adj_node *n = node_in(g, &list[i].c);
        const conv_rule *here = rule_for(n, DIRECT_COMPETES, zen4);
        cr_expect_str_eq(name_of(here), list[i].row, "%zu", i);
        cr_expect_null(rule_for(n, DIRECT_COMPETES, zen5), "%zu", i);
        adj_graph_free(g);
    }
}

typedef struct {
    convolution c;
    const char *row;
} row_case;

static void expect_on_zen3(size_t n, const row_case list[])
{
    for (size_t i = 0; i < n; i++) {
        adj_graph *g = adj_graph_new();
        const adj_node *node = node_in(g, &list[i].c);
        const conv_rule *here = rule_for(node, DIRECT_COMPETES, zen3);
        cr_expect_str_eq(name_of(here), list[i].row, "%zu", i);
        adj_graph_free(g);
    }
}

/* Where AVX2 is the largest instruction set, 3x3 and 5x5 of some channels in f32; gradients of
 * filters of some pixels. */
Test(conv_rules, are_for_vectors_of_8)
{
    static const char dw[] = "filter_of_direct_avx2", y[] = "forward_of_direct_avx2",
                      dx[] = "input_of_direct_avx2", dw_5x5[] = "filter_5x5_of_direct_avx2",
                      panels[] = "filter_panels_of_direct_avx2", none[] = "none";
    static const row_case list[] = {
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 1, 128, 128, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 32, 8, 3, 1, 1, 64, 256, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 4, 8, 3, 1, 1, 256, 256, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 1, 8, 3, 1, 1, 64, 64, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 1, 16, 64, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 16, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 1, 15, 64, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 8, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 68, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F32, 0, 64, 16, 3, 1, 2, 64, 64, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F32, 0, 64, 16, 5, 1, 1, 64, 64, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 64, 16, 7, 1, 1, 64, 64, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F32, 0, 64, 16, 1, 1, 1, 64, 64, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_BF16, 0, 64, 16, 3, 1, 1, 64, 64, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F64, 0, 64, 16, 3, 1, 1, 64, 64, 0, 0, 0, 0}, none},
        {{FORWARD, ADJ_F32, 0, 128, 32, 3, 2, 1, 16, 32, 0, 0, 0, 0}, y},
        {{FORWARD, ADJ_F32, 0, 128, 32, 3, 2, 1, 3, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 32, 3, 1, 1, 64, 64, 0, 0, 0, 0}, dw},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 128, 32, 3, 2, 1, 16, 32, 0, 0, 0, 0}, dw},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 128, 0, 0, 0, 0}, dw},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 14, 5, 1, 1, 32, 64, 0, 0, 0, 0}, dw_5x5},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 1, 128, 128, 0, 0, 0, 0}, panels},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 256, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 1, 80, 64, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 5, 1, 1, 96, 64, 0, 0, 0, 0}, panels},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 5, 1, 1, 32, 136, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 15, 8, 3, 1, 1, 128, 128, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 60, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 1, 8, 64, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 4, 16, 3, 1, 1, 32, 32, 0, 0, 0, 0}, dw},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 3, 16, 3, 1, 1, 32, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 64, 16, 3, 1, 2, 32, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 3, 1, 1, 64, 64, 0, 0, 0, 0}, dx},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 3, 1, 1, 32, 60, 0, 0, 0, 0}, dx},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 3, 1, 1, 60, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 3, 1, 1, 16, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 3, 2, 1, 16, 32, 0, 0, 0, 0}, dx},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 14, 5, 1, 1, 32, 64, 0, 0, 0, 0}, dx},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 28, 5, 1, 1, 16, 16, 0, 0, 0, 0}, dx},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 28, 5, 1, 1, 16, 8, 0, 0, 0, 0}, none},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 28, 5, 1, 1, 20, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 7, 1, 1, 64, 64, 0, 0, 0, 0}, none},
        {{BACKWARD_DATA, ADJ_F32, 0, 64, 16, 1, 1, 1, 64, 64, 0, 0, 0, 0}, none}};
    expect_on_zen3(sizeof list / sizeof *list, list);
}

/* There, too, gradients of filters of 1x1. */
Test(conv_rules, are_for_filters_of_1x1)
{
    static const char dw[] = "filter_of_direct_avx2", many[] = "filter_of_many_1x1_of_direct_avx2",
                      none[] = "none";
    static const row_case list[] = {
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 12, 1, 1, 1, 64, 64, 0, 0, 0, 0}, dw},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 24, 1, 1, 1, 16, 32, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 3, 1, 1, 1, 128, 256, 0, 0, 0, 0}, dw},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 3, 1, 1, 1, 144, 256, 0, 0, 0, 0}, many},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 3, 1, 1, 1, 256, 256, 0, 0, 0, 0}, many},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 14, 1, 1, 1, 384, 32, 0, 0, 0, 0}, many},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 14, 1, 1, 1, 400, 400, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 28, 3, 1, 1, 1, 256, 256, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 14, 1, 1, 1, 264, 256, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 14, 1, 1, 1, 256, 40, 0, 0, 0, 0}, none},
        {{BACKWARD_WEIGHTS, ADJ_F32, 0, 32, 14, 1, 2, 1, 256, 256, 0, 0, 0, 0}, none}};
    expect_on_zen3(sizeof list / sizeof *list, list);
}

/* On Zen 4, whose depthwise input gradients in bf16 oneDNN has, its version 3 has a slow kernel
 * first where they are strided. */
Test(conv_rules, strided_depthwise_input_gradients_on_zen4)
{
    static const convolution strided = {
        BACKWARD_DATA, ADJ_BF16, 1, 32, 12, 3, 2, 1, 64, 64, 0, 0, 0, 0};
    adj_graph *g = adj_graph_new();
    const adj_node *n = node_in(g, &strided);
    const conv_rule *named_first = rule_for(n, NAMED_FIRST, zen4_3);
    cr_expect_null(rule_for(n, DIRECT_FIRST, zen4_3));
    cr_expect_str_eq(name_of(named_first), "depthwise_input_strided");
    adj_graph_free(g);
}
