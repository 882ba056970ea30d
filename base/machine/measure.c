/* measure.c - measures the arithmetic and memory speed of the machine, in about a tenth of a
 * second.
 *
 * All threads run the same loop at once and time their own rounds. Each thread's fastest round
 * counts, since disturbances only slow it down, and the rates are added. Bandwidth is that of
 * reading memory touched before: half of a cache, or several times the last-level cache, each
 * thread in its own part. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/limits.h"
#include "isa_level.h"
#include "loops.h"
#include "machine.h"
#include "x86_features.h"

enum { HUGE_PAGE = 2 << 20, MIN_PART = 16 << 10, ROUND_BYTES = 2 << 20, TURNS = 16384 };
static const size_t min_bytes = (size_t)32 << 20, usual_bytes = (size_t)128 << 20,
                    max_bytes = (size_t)256 << 20;
static const double figure_seconds = 6e-3, memory_seconds = 25e-3;

typedef struct {
    const machine_facts *facts;
    const machine_loops *loops;
    int threads;
    char *data;   /* NULL if the allocation failed */
    size_t bytes; /* bytes of data */
} measuring;

static const machine_loops *best_loops(void)
{
    static const machine_loops *const loops[N_ISA_LEVEL] = {
        &machine_loops_base, &machine_loops_avx2, &machine_loops_avx512, &machine_loops_avx512,
        &machine_loops_avx512};
    return loops[machine_isa_level()];
}

/* ---- rounds ---- */

/* The work of one round of a thread. */
typedef struct work {
    void (*run)(const struct work *w, int thread, size_t round);
    double amount, seconds; /* operations or bytes of a round; seconds of all rounds */
    const arithmetic_loop *loop;
    const measuring *m;
    size_t bytes; /* bytes that each thread's rounds read */
} work;

/* Returns operations or bytes a second, all threads together. */
static double best_rate(const work *w)
{
    double sum = 0;
#pragma omp parallel num_threads(w->m->threads) reduction(+ : sum)
    {
        const int thread = omp_get_thread_num();
        double best = 0;
#pragma omp barrier
        double before = seconds_now();
        const double end = before + w->seconds;
        for (size_t round = 0; before < end; round++) {
            w->run(w, thread, round);
            const double now = seconds_now(), took = now - before;
            before = now;
            best = took > 0 && w->amount / took > best ? w->amount / took : best;
        }
        sum += best;
    }
    return sum;
}

/* ---- arithmetic ---- */

static void run_loop(const work *w, int thread, size_t round)
{
    float result;
    (void)thread, (void)round;
    w->loop->run(TURNS, &result);
}

static machine_peak peak(measuring *m, const arithmetic_loop *loop)
{
    const work w = {run_loop, loop->flop * TURNS, figure_seconds, loop, m, 0};
    machine_peak p = {.is_native = 1, .flops = best_rate(&w)};
    snprintf(p.unit, sizeof p.unit, "%s", loop->unit);
    return p;
}

/* Returns the peak for a type that may only have conversions, or one of these instruction sets:
 * the first that the machine has and that a loop exists for. */
static machine_peak half_peak(measuring *m, int n, const char *const sets[],
                              const arithmetic_loop *const loops[])
{
    machine_peak none = {.is_native = m->facts->features[0] != '\0' ? 0 : -1};
    for (int i = 0; i < n; i++) {
        if (!machine_has(m->facts, sets[i]))
            continue;
        none.is_native = 1;
        if (loops[i] == NULL || loops[i]->unit == NULL ||
            (loops[i] == &m->loops->amx_bf16 && !x86_allow_tiles()))
            continue;
        return peak(m, loops[i]);
    }
    return none;
}

static machine_peak bf16_peak(measuring *m)
{
    static const char *const sets[] = {"amx_bf16", "avx512_bf16", "bf16"};
    const arithmetic_loop *const loops[] = {&m->loops->amx_bf16, &m->loops->bf16, NULL};
    return half_peak(m, 3, sets, loops);
}

static machine_peak f16_peak(measuring *m)
{
    static const char *const sets[] = {"avx512_fp16", "asimdhp"};
    const arithmetic_loop *const loops[] = {&m->loops->f16, NULL};
    return half_peak(m, 2, sets, loops);
}

/* ---- memory ---- */

/* Returns one thread's fraction of a cache that several processors may share. */
static size_t share_of(const machine_cache *c, int threads)
{
    if (c == NULL)
        return 0;
    return c->bytes / (size_t)(c->shared > 1 ? (c->shared < threads ? c->shared : threads) : 1);
}

/* Returns the bytes of all last-level caches that the threads can run on. */
static size_t last_level(const measuring *m)
{
    for (int level = 4; level > 1; level--) {
        const machine_cache *c = machine_data_cache(m->facts, level);
        if (c != NULL)
            return share_of(c, m->threads) * (size_t)m->threads;
    }
    return 0;
}

/* Returns the bytes of one thread. */
static size_t part_of(const measuring *m)
{
    return m->bytes / (size_t)m->threads / READ_BLOCK * READ_BLOCK;
}

/* Allocates four times the last-level cache, or at least twice; each thread touches its own
 * part. */
static void get_memory(measuring *m)
{
    const size_t cache = last_level(m);
    size_t bytes = 4 * cache < usual_bytes ? 4 * cache : usual_bytes;
    bytes = bytes < 2 * cache ? 2 * cache : bytes;
    bytes = bytes < min_bytes ? min_bytes : bytes;
    if (bytes > max_bytes) /* a larger one would take too long */
        bytes = max_bytes;
    bytes = bytes / HUGE_PAGE * HUGE_PAGE;
    if (physical_memory_left("").bytes / 2 < bytes || address_space_left().bytes / 2 < bytes)
        return;
    m->data = aligned_alloc(HUGE_PAGE, bytes);
    if (m->data == NULL)
        return;
    (void)madvise(m->data, bytes, MADV_HUGEPAGE); /* fewer page faults */
    m->bytes = bytes;
    const size_t part = part_of(m);
#pragma omp parallel num_threads(m->threads)
    {
        uint64_t *word = (uint64_t *)(m->data + part * (size_t)omp_get_thread_num());
        for (size_t i = 0; i < part / sizeof *word; i++)
            word[i] = i;
    }
}

/* Reads the next piece of the thread's bytes; several times all of them if they are less than a
 * piece. */
static void read_piece(const work *w, int thread, size_t round)
{
    const char *mine = w->m->data + part_of(w->m) * (size_t)thread;
    const size_t piece = w->bytes < ROUND_BYTES ? w->bytes : ROUND_BYTES;
    const size_t pieces = w->bytes / piece, times = ROUND_BYTES / piece;
    uint64_t result;
    for (size_t i = 0; i < times; i++)
        w->m->loops->read(mine + round % pieces * piece, piece, &result);
}

/* Returns bytes a second, each thread reading that many; 0 if there are fewer. */
static double bandwidth(measuring *m, size_t bytes, double seconds)
{
    bytes = bytes / READ_BLOCK * READ_BLOCK;
    if (m->data == NULL || bytes == 0 || bytes > part_of(m))
        return 0;
    const size_t piece = bytes < ROUND_BYTES ? bytes : ROUND_BYTES;
    const work w = {read_piece, (double)(ROUND_BYTES / piece * piece), seconds, NULL, m, bytes};
    return best_rate(&w);
}

/* Measures over half of a thread's fraction of a cache, if that exceeds the inner caches. */
static double cache_bandwidth(measuring *m, int level)
{
    const size_t half = share_of(machine_data_cache(m->facts, level), m->threads) / 2;
    const size_t before = share_of(machine_data_cache(m->facts, level - 1), m->threads);
    return half > before && half >= MIN_PART ? bandwidth(m, half, figure_seconds) : 0;
}

static double memory_bandwidth(measuring *m)
{
    if (m->bytes < 2 * last_level(m))
        return 0;
    return bandwidth(m, part_of(m), memory_seconds);
}

/* Returns how many threads OpenMP provides when this many are requested. */
static int team_size(int threads)
{
    int n = 1;
#pragma omp parallel num_threads(threads > 1 ? threads : 1)
#pragma omp single
    n = omp_get_num_threads();
    return n;
}

machine_speed machine_measure(const machine_facts *facts, int threads)
{
    const double start = seconds_now();
    measuring m = {.facts = facts, .loops = best_loops(), .threads = team_size(threads)};
    machine_speed s = {.threads = m.threads};
    s.f32 = peak(&m, &m.loops->f32);
    s.bf16 = bf16_peak(&m);
    s.f16 = f16_peak(&m);
    get_memory(&m);
    s.l2 = cache_bandwidth(&m, 2);
    s.l3 = cache_bandwidth(&m, 3);
    s.memory = memory_bandwidth(&m);
    free(m.data);
    s.seconds = seconds_now() - start;
    return s;
}
