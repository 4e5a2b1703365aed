/*
 * Audit sampling. Properties: the choice depends on the key alone, its share is the rate, a higher
 * rate keeps what a lower one took; the highest rate that applies counts; wrong policies are
 * refused with their place.
 */
#include "scheduler/audit.h"
#include "store/api/trust.h"
#include "tests/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void the_share_is_the_rate(void)
{
    static const double rates[] = {0.0, 0.01, 0.05, 0.3, 0.9, 1.0};
    enum { KEYS = 20000 };
    int before = 0;
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        int taken = 0;
        for (int i = 0; i < KEYS; i++) {
            char text[32];
            char key[SHA256_HEX_BYTES];
            int bytes = snprintf(text, sizeof text, "job %d", i);
            sha256_hex(text, (size_t)bytes, key);
            bool sampled = trust_audit_sampled(key, rates[r]);
            EXPECT_INT(trust_audit_sampled(key, rates[r]), sampled);
            EXPECT(!sampled || r + 1 == sizeof rates / sizeof *rates ||
                   trust_audit_sampled(key, rates[r + 1]));
            taken += sampled;
        }
        double deviation = sqrt(KEYS * rates[r] * (1 - rates[r]));
        EXPECT(fabs(taken - KEYS * rates[r]) <= 4 * deviation);
        EXPECT(taken >= before);
        before = taken;
    }
}

static char path[64];

static void write_policy(const char *text)
{
    FILE *stream = fopen(path, "w");
    EXPECT(stream != NULL);
    EXPECT(fputs(text, stream) >= 0);
    EXPECT_INT(fclose(stream), 0);
}

static void the_highest_rate_counts(void)
{
    struct audit_policy policy;
    struct error error;
    struct slices slices = {0};
    write_policy("{\"rate\": 0.1, \"safety_critical_rate\": 0.3, \"slices\": ["
                 "{\"kind\": \"weather\", \"value\": \"fog\", \"rate\": 0.2},"
                 "{\"kind\": \"actor\", \"value\": \"child\", \"rate\": 1},"
                 "{\"kind\": \"light\", \"value\": \"day\", \"rate\": 0}]}");
    EXPECT_OK(audit_policy_load(path, &policy, &error), error);
    EXPECT(audit_rate(&policy, &slices) == 0.1);
    strcpy(slices.value[SLICE_LIGHT], "day");
    EXPECT(audit_rate(&policy, &slices) == 0.1);
    strcpy(slices.value[SLICE_WEATHER], "fog");
    EXPECT(audit_rate(&policy, &slices) == 0.2);
    slices.safety_critical = true;
    EXPECT(audit_rate(&policy, &slices) == 0.3);
    strcpy(slices.value[SLICE_ACTOR], "child");
    EXPECT(audit_rate(&policy, &slices) == 1.0);
    strcpy(slices.value[SLICE_ACTOR], "fog"); /* of another kind */
    EXPECT(audit_rate(&policy, &slices) == 0.3);
    policy = audit_policy_default();
    EXPECT(audit_rate(&policy, &slices) > policy.rate);
    write_policy("{\"rate\": 0.4}");
    EXPECT_OK(audit_policy_load(path, &policy, &error), error);
    EXPECT(audit_rate(&policy, &slices) == 0.4);
}

static void wrong_policies_are_refused(void)
{
    static const struct {
        const char *text;
        const char *part;
    } cases[] = {
        {"{}", "rate"},
        {"[]", "object"},
        {"{\"rate\": 1.5}", "rate"},
        {"{\"rate\": 0.1, \"speed\": 1}", "speed"},
        {"{\"rate\": 0.1, \"slices\": [{\"kind\": \"colour\", \"value\": \"x\", \"rate\": 0}]}",
         "slices[0].kind"},
        {"{\"rate\": 0.1, \"slices\": [{\"kind\": \"light\", \"value\": \"x\"}]}", "rate"},
        {"{\"rate\": 0.1, \"slices\": {}}", "slices"},
        {"{\"rate\": 0.1", ""},
    };
    struct error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct audit_policy policy = {.rate = 77};
        write_policy(cases[i].text);
        EXPECT(audit_policy_load(path, &policy, &error) != STATUS_OK);
        EXPECT_CONTAINS(error.text, cases[i].part);
        EXPECT_CONTAINS(error.text, path);
        EXPECT(policy.rate == 77);
    }
    struct audit_policy policy;
    EXPECT(audit_policy_load("/nowhere/policy.json", &policy, &error) != STATUS_OK);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/swerve-audit-%d.json", (int)getpid());
    int failed = TEST_RUN(TEST(the_share_is_the_rate), TEST(the_highest_rate_counts),
                          TEST(wrong_policies_are_refused));
    unlink(path);
    return failed;
}
