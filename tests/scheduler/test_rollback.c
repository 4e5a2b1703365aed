/*
 * Rollback: what drives a canary out. Goals: a version is compared once there are samples enough
 * and never before; nothing that gets better drives it out; what is worse beyond limit and chance
 * does; of two sides at most one is worse; a version like the promoted one stays.
 * Methods: properties over a million random states; simulated canaries, healthy and damaged.
 */
#include "base/rng.h"
#include "scheduler/rollback.h"
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 1;

static double draw(void)
{
    return (double)(rng_mix(++state) >> 11) * 0x1p-53;
}

static int64_t draw_count(int64_t most)
{
    return (int64_t)(draw() * draw() * (double)most);
}

static struct rollback_policy random_policy(void)
{
    return (struct rollback_policy){
        .samples = ROLLBACK_SAMPLES_MIN + draw_count(5000),
        .worse = 0.01 + 0.1 * draw(),
        .cost_worse = 0.01 + 0.1 * draw(),
        .ticks_worse = 0.05 + 0.5 * draw(),
        .runs = 1 + draw_count(10),
        .run_jobs = 1 + draw_count(50),
        .run_share = 0.05 + 0.9 * draw(),
    };
}

static struct rollback_share random_share(void)
{
    struct rollback_share share = {.jobs = draw_count(20000)};
    share.bad = (int64_t)((double)share.jobs * (draw() < 0.5 ? 0.05 : 1.0) * draw());
    share.runs = draw() < 0.8 ? 0 : draw_count(10);
    return share;
}

/* Device time that goes with the distance, more or less. */
static struct rollback_cost random_cost(void)
{
    double n = (double)draw_count(20000);
    double mm = 1e5 * (0.5 + draw());
    double ns = 1e9 * (0.8 + 0.4 * draw());
    double spread = draw() * draw();
    return (struct rollback_cost){
        .jobs = (int64_t)n,
        .ns = n * ns,
        .mm = n * mm,
        .ns2 = n * ns * ns * (1.0 + spread),
        .mm2 = n * mm * mm * (1.0 + spread),
        .ns_mm = n * ns * mm * (1.0 + spread * draw()),
    };
}

/* Times in a few of the buckets, so that a million states do not take minutes. */
static void random_ticks(struct rollback_side *side)
{
    for (int i = 0; i < 4; i++) {
        uint32_t count = (uint32_t)draw_count(3000);
        side->ticks[(int)(draw() * ROLLBACK_BUCKETS)] += count;
        side->timed += count;
    }
}

static struct rollback_side random_side(bool timed)
{
    struct rollback_side side = {.agreement = random_share()};
    side.flags = random_share();
    side.cost = random_cost();
    if (timed) {
        random_ticks(&side);
    }
    return side;
}

/* Whether a cause that compares has the samples of both sides. */
static bool has_samples(const struct rollback_policy *policy, enum rollback_cause cause,
                        const struct rollback_side *side)
{
    switch (cause) {
    case ROLLBACK_AGREEMENT:
        return side->agreement.jobs >= policy->samples;
    case ROLLBACK_FLAGS:
        return side->flags.jobs >= policy->samples;
    case ROLLBACK_COST:
        return side->cost.jobs >= policy->samples;
    case ROLLBACK_TICKS:
        return side->timed >= policy->samples;
    default:
        return true;
    }
}

/* The figure of a cause is over its limit, whichever way the decision came about. */
static void expect_over(const struct rollback_policy *policy, enum rollback_cause cause,
                        const struct rollback_side *a, const struct rollback_side *b)
{
    if (cause == ROLLBACK_AGREEMENT) {
        EXPECT(rollback_bad_share(&a->agreement) - rollback_bad_share(&b->agreement) >
               policy->worse);
    } else if (cause == ROLLBACK_FLAGS) {
        EXPECT(rollback_bad_share(&a->flags) - rollback_bad_share(&b->flags) > policy->worse);
    } else if (cause == ROLLBACK_COST) {
        EXPECT(rollback_ns_per_m(&a->cost) >
               (1.0 + policy->cost_worse) * rollback_ns_per_m(&b->cost));
    } else if (cause == ROLLBACK_TICKS) {
        EXPECT(rollback_tick_ns(a, 0.99) > (1.0 + policy->ticks_worse) * rollback_tick_ns(b, 0.99));
    } else if (cause == ROLLBACK_RUNS_DISAGREED) {
        EXPECT(a->agreement.runs >= policy->runs && b->agreement.runs == 0);
    } else if (cause == ROLLBACK_RUNS_FLAGGED) {
        EXPECT(a->flags.runs >= policy->runs && b->flags.runs == 0);
    }
}

/* The same canary, better in one respect. */
static void improve(struct rollback_side *side)
{
    int which = (int)(draw() * 4);
    if (which == 0) {
        side->agreement.bad -= side->agreement.bad > 0;
    } else if (which == 1) {
        side->flags.bad -= side->flags.bad > 0;
    } else if (which == 2) {
        side->agreement.runs = side->flags.runs = 0;
    } else {
        for (int i = ROLLBACK_BUCKETS - 1; i > 0; i--) {
            if (side->ticks[i] > 0) {
                side->ticks[i]--;
                side->ticks[i - 1]++;
                break;
            }
        }
    }
}

static void a_million_random_states_follow_the_rules(void)
{
    static int64_t causes[ROLLBACK_CAUSE_COUNT];
    for (int i = 0; i < 1000000; i++) {
        const struct rollback_policy policy = random_policy();
        bool timed = i % 16 == 0;
        const struct rollback_side a = random_side(timed);
        const struct rollback_side b = random_side(timed);
        enum rollback_cause cause = rollback_decide(&policy, &a, &b);
        causes[cause]++;
        EXPECT(rollback_decide(&policy, &a, &b) == cause);
        EXPECT(has_samples(&policy, cause, &a) && has_samples(&policy, cause, &b));
        expect_over(&policy, cause, &a, &b);
        EXPECT(rollback_decide(&policy, &a, &a) == ROLLBACK_NONE);
        if (cause == ROLLBACK_NONE) {
            struct rollback_side better = a;
            improve(&better);
            EXPECT(rollback_decide(&policy, &better, &b) == ROLLBACK_NONE);
        } else if (rollback_decide(&policy, &b, &a) == cause) {
            EXPECT(false); /* each is worse than the other, in the same thing */
        }
    }
    for (int cause = 0; cause < ROLLBACK_CAUSE_COUNT; cause++) {
        printf("# %s: %lld\n", rollback_cause_names[cause], (long long)causes[cause]);
        EXPECT(causes[cause] > 100);
    }
}

/* A version, by its effect on its jobs. */
struct kind {
    const char *name;
    double disagreed;
    double flagged;
    double slower;     /* each tick */
    double slow_share; /* of rollouts take twice as long */
};

static const struct kind healthy = {"healthy", 0.01, 0.002, 1.0, 0.0};

static void drive(struct rollback_side *side, const struct rollback_policy *policy,
                  const struct kind *kind)
{
    double mm = 1e5 * (0.5 + draw());
    double noise = 0.9 + 0.2 * draw(); /* of one machine; the mean stays */
    double ns = mm * 1e4 * noise * kind->slower * (draw() < kind->slow_share ? 2.0 : 1.0);
    rollback_add_drive(policy, side, draw() < kind->flagged, (int64_t)ns, (int64_t)mm,
                       (int64_t)(mm / 1000.0));
    if (draw() < 0.1) {
        rollback_add_audit(policy, side, draw() >= kind->disagreed);
    }
}

/* Jobs of the canary until it is driven out; `most` if it is not. Looked at every 50 jobs, as one
 * who sweeps would. The promoted version answers three jobs beside each. */
static int64_t jobs_until_out(const struct kind *kind, int64_t most, enum rollback_cause *cause)
{
    const struct rollback_policy policy = rollback_policy_default();
    static struct rollback_side canary, promoted;
    memset(&canary, 0, sizeof canary);
    memset(&promoted, 0, sizeof promoted);
    for (int64_t job = 1; job <= most; job++) {
        drive(&canary, &policy, kind);
        for (int i = 0; i < 3; i++) {
            drive(&promoted, &policy, &healthy);
        }
        *cause = job % 50 == 0 ? rollback_decide(&policy, &canary, &promoted) : ROLLBACK_NONE;
        if (*cause != ROLLBACK_NONE) {
            return job;
        }
    }
    return most;
}

static void damages_are_driven_out_and_health_stays(void)
{
    static const struct {
        struct kind kind;
        int64_t within;
        enum rollback_cause cause;
    } damages[] = {
        {{"every verdict random", 0.5, 0.002, 1.0, 0.0}, 1500, ROLLBACK_RUNS_DISAGREED},
        {{"4% disagree", 0.04, 0.002, 1.0, 0.0}, 20000, ROLLBACK_AGREEMENT},
        {{"half is flagged", 0.01, 0.5, 1.0, 0.0}, 150, ROLLBACK_RUNS_FLAGGED},
        {{"3% are flagged", 0.01, 0.03, 1.0, 0.0}, 2000, ROLLBACK_FLAGS},
        {{"2% dearer", 0.01, 0.002, 1.02, 0.0}, 1500, ROLLBACK_COST},
    };
    enum rollback_cause cause = ROLLBACK_NONE;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        int64_t sum = 0;
        for (int round = 0; round < 10; round++) {
            int64_t jobs = jobs_until_out(&damages[i].kind, damages[i].within, &cause);
            EXPECT_INT(cause, damages[i].cause);
            sum += jobs;
        }
        printf("# %s: out after %lld jobs of its own by %s, mean of 10\n", damages[i].kind.name,
               (long long)(sum / 10), rollback_cause_names[damages[i].cause]);
    }
    int out = 0;
    for (int round = 0; round < 100; round++) {
        out += jobs_until_out(&healthy, 10000, &cause) < 10000;
    }
    printf("# healthy canaries of 10,000 jobs driven out: %d of 100\n", out);
    EXPECT(out <= 2);
}

/* One rollout in 25 takes twice as long: the bill is hardly higher, the 99th percentile is. */
static void slow_ticks_alone_are_seen(void)
{
    struct rollback_policy policy = rollback_policy_default();
    policy.cost_worse = 0.5;
    static struct rollback_side canary, promoted;
    const struct kind slow = {"slow", 0.01, 0.002, 1.0, 0.04};
    for (int i = 0; i < 2000; i++) {
        drive(&canary, &policy, &slow);
        drive(&promoted, &policy, &healthy);
    }
    EXPECT_INT(rollback_decide(&policy, &canary, &promoted), ROLLBACK_TICKS);
    EXPECT_INT(rollback_decide(&policy, &promoted, &canary), ROLLBACK_NONE);
    char text[ROLLBACK_TEXT_BYTES];
    EXPECT_CONTAINS(rollback_text(ROLLBACK_TICKS, &canary, &promoted, text), "2000 rollouts");
}

int main(void)
{
    return TEST_RUN(TEST(a_million_random_states_follow_the_rules),
                    TEST(damages_are_driven_out_and_health_stays), TEST(slow_ticks_alone_are_seen));
}
