/*
 * Ticks of relayed sessions.
 *
 * Goal: what a relay has is what its workers counted, however often they tell; a document that is
 * none changes nothing; tiers beyond a relay's rows are added up in one.
 * Method: random ticks of two workers beside their sums; documents with one thing wrong; more tiers
 * than there are rows.
 */
#include "base/check.h"
#include "base/rng.h"
#include "store/relay/ticks.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TIERS = 3, WORKERS = 2 };

static struct ticks ticks;
static struct error error;

static void count(struct tick_tier *row, uint64_t key)
{
    row->ticks++;
    row->lates += rng_mix(key) % 10 == 0;
    for (int part = 0; part < TICK_PARTS; part++) {
        double value_ms = (double)(rng_mix(key + 7919 * (uint64_t)part) % 2000) - 200.0;
        tick_histogram_add(&row->parts[part], value_ms);
    }
}

static void name(struct tick_tier rows[TIERS])
{
    static const char *const names[TIERS] = {"student", "previous", "drawn"};
    for (uint32_t i = 0; i < TIERS; i++) {
        strcpy(rows[i].tier, names[i]);
        rows[i].steps = 2 - i;
    }
}

/* Tells the relay what came; whether it was anything. */
static bool tell(const struct tick_tier *now, struct tick_tier *told, uint32_t tiers)
{
    char *text = ticks_tell(now, told, tiers);
    EXPECT(text != NULL);
    bool any = text[0] != '\0';
    if (any) {
        EXPECT_OK(ticks_take(&ticks, text, strlen(text), &error), error);
    }
    free(text);
    return any;
}

static void expect_sums(const struct tick_tier *sums)
{
    for (uint32_t i = 0; i < ticks.count; i++) {
        const struct tick_tier *row = &ticks.rows[i];
        const struct tick_tier *sum = sums;
        while (strcmp(sum->tier, row->tier) != 0) {
            sum++;
        }
        EXPECT_INT(row->steps, sum->steps);
        EXPECT_INT(row->ticks, sum->ticks);
        EXPECT_INT(row->lates, sum->lates);
        for (int part = 0; part < TICK_PARTS; part++) {
            EXPECT(memcmp(row->parts[part].counts, sum->parts[part].counts,
                          sizeof sum->parts[part].counts) == 0);
            EXPECT_NEAR(row->parts[part].sum_ms, sum->parts[part].sum_ms, 1e-3);
        }
    }
}

static void what_is_told_adds_up(void)
{
    static struct tick_tier now[WORKERS][TIERS];
    static struct tick_tier told[WORKERS][TIERS];
    static struct tick_tier sums[TIERS];
    memset(&ticks, 0, sizeof ticks);
    name(sums);
    for (int worker = 0; worker < WORKERS; worker++) {
        name(now[worker]);
        name(told[worker]);
    }
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t key = rng_mix(i);
        uint32_t worker = key % WORKERS;
        uint32_t tier = key / WORKERS % TIERS;
        count(&now[worker][tier], i);
        count(&sums[tier], i);
        if (key % 97 == 0) {
            EXPECT(tell(now[worker], told[worker], TIERS));
            EXPECT(!tell(now[worker], told[worker], TIERS)); /* nothing came */
        }
    }
    for (int worker = 0; worker < WORKERS; worker++) {
        tell(now[worker], told[worker], TIERS);
    }
    EXPECT_INT(ticks.count, TIERS);
    expect_sums(sums);
}

#define BUCKETS_23 "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"
#define PART(first) "[1.5," first "," BUCKETS_23 "]"
#define PARTS PART("2") "," PART("2") "," PART("2") "," PART("2")

static void a_document_that_is_none_changes_nothing(void)
{
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"{}", "expected an array"},
        {"[]", "expected"},
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":0,\"parts\":[" PARTS "]}", "']'"},
        {"[{\"tier\":\"evil{}\",\"steps\":2,\"lates\":0,\"parts\":[" PARTS "]}]",
         "$[0]: expected a tier of sessions, found \"evil{}\""},
        {"[{\"tier\":\"student\",\"steps\":-1,\"lates\":0,\"parts\":[" PARTS "]}]", "$[0].steps"},
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":3,\"parts\":[" PARTS "]}]",
         "expected lates of at most 2, found 3"},
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":0,\"parts\":[" PART("2") "]}]",
         "$[0].parts"},
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":0,\"parts\":[" PART("2") "," PART(
             "3") "," PART("2") "," PART("2") "]}]",
         "as many of each part, found compute of another number than wait"},
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":0,\"parts\":[" PART("-2") "," PART(
             "2") "," PART("2") "," PART("2") "]}]",
         "$[0].parts[0][1]"},
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":0,\"parts\":[" PART("1e30") "," PART(
             "2") "," PART("2") "," PART("2") "]}]",
         "$[0].parts[0][1]"},
        /* The first row is right. */
        {"[{\"tier\":\"student\",\"steps\":2,\"lates\":0,\"parts\":[" PARTS
         "]},{\"tier\":\"drawn\"}]",
         "$[1]"},
    };
    memset(&ticks, 0, sizeof ticks);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT(ticks_take(&ticks, cases[i].text, strlen(cases[i].text), &error) != STATUS_OK);
        EXPECT_CONTAINS(error.text, cases[i].sentence);
        EXPECT_INT(ticks.count, 0);
    }
    const char *good = "[{\"tier\":\"student\",\"steps\":2,\"lates\":1,\"parts\":[" PARTS "]}]";
    EXPECT_OK(ticks_take(&ticks, good, strlen(good), &error), error);
    EXPECT_INT(ticks.rows[0].ticks, 2);
}

static void rows_are_bounded(void)
{
    char *text = NULL;
    size_t bytes;
    uint64_t sum = 0;
    memset(&ticks, 0, sizeof ticks);
    for (uint32_t steps = 0; steps < 2 * TICKS_ROWS_MAX; steps++) {
        struct tick_tier now = {.tier = "student", .steps = steps % (LIMIT_SAMPLER_STEPS + 1)};
        struct tick_tier told = now;
        if (steps > LIMIT_SAMPLER_STEPS) {
            strcpy(now.tier, "teacher");
            strcpy(told.tier, "teacher");
        }
        count(&now, steps);
        EXPECT(tell(&now, &told, 1));
    }
    EXPECT_INT(ticks.count, TICKS_ROWS_MAX);
    EXPECT_TEXT(ticks.rows[TICKS_ROWS_MAX - 1].tier, "other");
    for (uint32_t i = 0; i < ticks.count; i++) {
        sum += ticks.rows[i].ticks;
    }
    EXPECT_INT(sum, 2 * TICKS_ROWS_MAX);
    FILE *out = open_memstream(&text, &bytes);
    EXPECT(out != NULL);
    ticks_print(out, ticks.rows, ticks.count);
    EXPECT_INT(fclose(out), 0);
    EXPECT_CONTAINS(
        text, "swerve_session_tick_seconds_count{tier=\"other\",steps=\"0\",part=\"slack\"} 33");
    free(text);
}

int main(void)
{
    return TEST_RUN(TEST(what_is_told_adds_up), TEST(a_document_that_is_none_changes_nothing),
                    TEST(rows_are_bounded));
}
