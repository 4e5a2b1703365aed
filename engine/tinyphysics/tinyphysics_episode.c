/*
 * The simulator of the controls challenge: bins, draws, steps, costs.
 */
#include "engine/tinyphysics/tinyphysics_episode.h"

#include "base/check.h"
#include "base/dmath.h"

#include <stdlib.h>
#include <string.h>

#define STEP_S 0.1
#define LATACCEL_WEIGHT 50.0

/* ---- NumPy's legacy generator (Matsumoto and Nishimura's mt19937ar, init_genrand) ---- */

enum { WORDS = 624, SHIFT = 397 };

static void random_seed(struct tinyphysics_random *random, uint32_t seed)
{
    random->words[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++) {
        const uint32_t before = random->words[i - 1];
        random->words[i] = 1812433253u * (before ^ before >> 30) + i;
    }
    random->next = WORDS;
}

static void random_refill(uint32_t *words)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        const uint32_t mixed = (words[i] & 0x80000000u) | (words[(i + 1) % WORDS] & 0x7FFFFFFFu);
        words[i] = words[(i + SHIFT) % WORDS] ^ mixed >> 1 ^ (mixed & 1 ? 0x9908B0DFu : 0);
    }
}

static uint32_t random_word(struct tinyphysics_random *random)
{
    if (random->next == WORDS) {
        random_refill(random->words);
        random->next = 0;
    }
    uint32_t y = random->words[random->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9D2C5680u;
    y ^= y << 15 & 0xEFC60000u;
    return y ^ y >> 18;
}

/* In [0, 1), 53 bits. */
static double random_double(struct tinyphysics_random *random)
{
    const uint32_t high = random_word(random) >> 5;
    const uint32_t low = random_word(random) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

void tinyphysics_episode_uniforms(uint32_t seed, uint32_t end, double *uniforms)
{
    struct tinyphysics_random random;
    random_seed(&random, seed);
    for (uint32_t row = TINYPHYSICS_CONTEXT; row < end; row++) {
        uniforms[row] = random_double(&random);
    }
}

/* ---- the draw ---- */

/* numpy.add.reduce of floats that lie together: eight partial sums in blocks of 128, blocks in
 * pairs. */
static float sum_pairwise(const float *x, uint32_t count)
{
    if (count > 128) {
        const uint32_t half = count / 2 - count / 2 % 8;
        return sum_pairwise(x, half) + sum_pairwise(x + half, count - half);
    }
    float r[8];
    for (uint32_t i = 0; i < 8; i++) {
        r[i] = x[i];
    }
    for (uint32_t i = 8; i < count; i += 8) {
        for (uint32_t j = 0; j < 8; j++) {
            r[j] += x[i + j];
        }
    }
    return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
}

enum { DRAWS = 4 };

/* Cumulative sums in `count` (a constant) chains in step, each of which waits for itself. */
static inline void add_up(float weights[][TINYPHYSICS_BINS], double sums[][TINYPHYSICS_BINS],
                          const uint32_t count)
{
    double sum[DRAWS] = {0.0};
    for (uint32_t i = 0; i < TINYPHYSICS_BINS; i++) {
        for (uint32_t e = 0; e < count; e++) {
            sum[e] += (double)weights[e][i];
            sums[e][i] = sum[e];
        }
    }
}

/* The tokens of 1 .. DRAWS uniform numbers. */
static void draw(struct tinyphysics_episode *const *episodes, uint32_t count,
                 const struct tinyphysics_model *model, const float *logits)
{
    _Alignas(64) float weights[DRAWS][TINYPHYSICS_BINS];
    double sums[DRAWS][TINYPHYSICS_BINS];
    for (uint32_t e = 0; e < count; e++) {
        tinyphysics_model_weights(model, logits + (size_t)e * TINYPHYSICS_BINS,
                                  TINYPHYSICS_TEMPERATURE, weights[e]);
        const float total = sum_pairwise(weights[e], TINYPHYSICS_BINS);
        for (uint32_t i = 0; i < TINYPHYSICS_BINS; i++) {
            weights[e][i] /= total;
        }
    }
    if (count == DRAWS) {
        add_up(weights, sums, DRAWS);
    } else {
        for (uint32_t e = 0; e < count; e++) {
            add_up(weights + e, sums + e, 1);
        }
    }
    for (uint32_t e = 0; e < count; e++) {
        struct tinyphysics_episode *episode = episodes[e];
        const double sum = sums[e][TINYPHYSICS_BINS - 1];
        const uint32_t token = tinyphysics_draw(sums[e], episode->uniform);
        const double above = sums[e][token] / sum - episode->uniform;
        const double below = token > 0 ? episode->uniform - sums[e][token - 1] / sum : above;
        episode->token = (uint16_t)token;
        episode->cdf_margin = dmath_min(above, below);
    }
}

/* ---- steps ---- */

static void set_lataccel(struct tinyphysics_episode *episode, uint32_t row, double lataccel_mps2)
{
    episode->lataccel_mps2[row] = lataccel_mps2;
    episode->tokens[row % TINYPHYSICS_CONTEXT] = (uint16_t)tinyphysics_bin_of(lataccel_mps2);
}

void tinyphysics_episode_begin(struct tinyphysics_episode *episode, const struct controls_log *log,
                               uint32_t seed, double *values)
{
    *episode = (struct tinyphysics_episode){
        .log = log,
        .step = TINYPHYSICS_CONTEXT,
        .end = log->count < TINYPHYSICS_COST_END ? log->count : TINYPHYSICS_COST_END,
        .lataccel_mps2 = values,
        .actions = values + TINYPHYSICS_COST_END,
    };
    for (uint32_t i = 0; i < TINYPHYSICS_CONTEXT; i++) {
        set_lataccel(episode, i, log->rows[i].target_mps2);
        episode->actions[i] = log->rows[i].steer; /* as logged: the reference does not clip these */
    }
    random_seed(&episode->random, seed);
}

enum status tinyphysics_episode_start(struct tinyphysics_episode *episode,
                                      const struct controls_log *log, uint32_t seed,
                                      struct error *error)
{
    double *values = malloc(TINYPHYSICS_EPISODE_VALUES * sizeof *values);
    *episode = (struct tinyphysics_episode){0};
    TRY(memory_check(values, error, "no memory for %u rows", log->count));
    tinyphysics_episode_begin(episode, log, seed, values);
    return STATUS_OK;
}

void tinyphysics_episode_end(struct tinyphysics_episode *episode)
{
    free(episode->lataccel_mps2);
    *episode = (struct tinyphysics_episode){0};
}

static void fill_window(const struct tinyphysics_episode *episode,
                        struct tinyphysics_window *window)
{
    for (uint32_t t = 0; t < TINYPHYSICS_CONTEXT; t++) {
        const uint32_t row = episode->step + 1 - TINYPHYSICS_CONTEXT + t;
        const struct controls_row *state = &episode->log->rows[row];
        window->inputs[t][0] = (float)episode->actions[row];
        window->inputs[t][1] = (float)state->roll_lataccel_mps2;
        window->inputs[t][2] = (float)state->v_ego_mps;
        window->inputs[t][3] = (float)state->a_ego_mps2;
        window->tokens[t] = episode->tokens[(row - 1) % TINYPHYSICS_CONTEXT];
    }
}

static void finish_steps(struct tinyphysics_episode *const *episodes, uint32_t count,
                         const struct tinyphysics_model *model, const float *logits)
{
    draw(episodes, count, model, logits);
    for (uint32_t e = 0; e < count; e++) {
        struct tinyphysics_episode *episode = episodes[e];
        const double before = tinyphysics_episode_lataccel(episode);
        set_lataccel(episode, episode->step, tinyphysics_drawn(episode->token, before));
        episode->step++;
    }
}

enum status tinyphysics_episode_step(const struct tinyphysics_model *model,
                                     struct tinyphysics_workspace *workspace,
                                     struct tinyphysics_episode *const *episodes,
                                     const double *actions, uint32_t count, struct error *error)
{
    struct tinyphysics_window windows[TINYPHYSICS_BATCH];
    struct tinyphysics_episode *drawn[TINYPHYSICS_BATCH];
    uint32_t drawn_count = 0;
    CHECK(count <= TINYPHYSICS_BATCH);
    for (uint32_t i = 0; i < count; i++) {
        struct tinyphysics_episode *episode = episodes[i];
        const bool controlled = episode->step >= TINYPHYSICS_CONTROL_STEP;
        const double action = controlled ? actions[i] : episode->log->rows[episode->step].steer;
        CHECK(!tinyphysics_episode_done(episode));
        episode->actions[episode->step] =
            dmath_clamp(action, -TINYPHYSICS_STEER_LIMIT, TINYPHYSICS_STEER_LIMIT);
        episode->uniform = random_double(&episode->random);
        if (controlled) {
            fill_window(episode, &windows[drawn_count]);
            drawn[drawn_count++] = episode;
        } else { /* the log's target stands for the draw */
            set_lataccel(episode, episode->step, episode->log->rows[episode->step].target_mps2);
            episode->step++;
        }
    }
    const float *logits = NULL;
    if (drawn_count > 0) {
        TRY(tinyphysics_model_logits(model, workspace, windows, drawn_count, &logits, error));
    }
    for (uint32_t i = 0; i < drawn_count; i += DRAWS) {
        const uint32_t left = drawn_count - i;
        finish_steps(drawn + i, left < DRAWS ? left : DRAWS, model,
                     logits + (size_t)i * TINYPHYSICS_BINS);
    }
    return STATUS_OK;
}

struct tinyphysics_costs tinyphysics_episode_costs(const struct tinyphysics_episode *episode)
{
    const uint32_t first = TINYPHYSICS_CONTROL_STEP;
    const uint32_t end =
        episode->step < TINYPHYSICS_COST_END ? episode->step : TINYPHYSICS_COST_END;
    const double *lataccel = episode->lataccel_mps2;
    double miss = 0.0;
    double jerk = 0.0;
    CHECK(end >= first + 2);
    for (uint32_t i = first; i < end; i++) {
        const double d = episode->log->rows[i].target_mps2 - lataccel[i];
        miss += d * d;
    }
    for (uint32_t i = first + 1; i < end; i++) {
        const double d = (lataccel[i] - lataccel[i - 1]) / STEP_S;
        jerk += d * d;
    }
    struct tinyphysics_costs costs = {.lataccel = miss / (end - first) * 100.0,
                                      .jerk = jerk / (end - first - 1) * 100.0};
    costs.total = costs.lataccel * LATACCEL_WEIGHT + costs.jerk;
    return costs;
}
