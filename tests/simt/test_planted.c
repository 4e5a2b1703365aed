/*
 * The test of the test: every planted mistake is reported by its name under each of ten schedules,
 * and the correct kernels beside them never are. A missing wait between streams must show as a
 * wrong result under some schedule.
 */
#include "base/check.h"
#include "tests/harness.h"
#include "tests/simt/planted.h"
#include "tests/simt/simt_control.h"

enum { SCHEDULES = 10 };

static void check(bool planted)
{
    int tried = 0;
    for (size_t i = 0; i < planted_count; i++) {
        const struct planted *p = &planted_all[i];
        for (unsigned seed = 0; seed < SCHEDULES && (p->fault != NULL) == planted; seed++) {
            simt_seed(seed);
            bool right = planted_run(p->name);
            const char *fault = simt_fault();
            if (planted && (fault == NULL || strncmp(fault, p->fault, strlen(p->fault)) != 0)) {
                TEST_FAIL("%s, seed %u: expected \"%s\", found %s", p->name, seed, p->fault,
                          fault != NULL ? fault : "nothing");
            }
            if (!planted && (fault != NULL || !right)) {
                TEST_FAIL("%s, seed %u: expected the right result, found %s", p->name, seed,
                          fault != NULL ? fault : "a wrong one");
            }
            tried++;
        }
    }
    EXPECT(tried > 0);
    simt_seed(0);
}

static void mistakes_are_found(void)
{
    check(true);
}

static void correct_kernels_pass(void)
{
    check(false);
}

static void faults_name_the_place(void)
{
    simt_seed(0);
    planted_run("write one beyond");
    EXPECT_CONTAINS(simt_fault(), "kernel write_kernel, block (1,0,0), thread (127,0,0)");
    EXPECT_CONTAINS(simt_fault(), "offset 1024 of an allocation of 1024 bytes");
    simt_seed(0);
    planted_run("two barriers");
    EXPECT_CONTAINS(simt_fault(), "tests/simt/planted.cu:");
    simt_seed(0);
    EXPECT(simt_fault() == NULL);
}

/* Without the check kernels run on, and memory that is wrong but mapped is not reported. The last
 * test: what was written is not known any more. */
static void checks_can_be_off(void)
{
    simt_seed(4);
    simt_check(0);
    planted_run("other block");
    EXPECT(simt_fault() == NULL);
    EXPECT(planted_run("fresh memory"));
    simt_check(1);
}

static void a_missing_stream_wait_shows(void)
{
    static const char *const names[] = {"streams without an event",
                                        "pageable copy, not waited for"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        int wrong = 0;
        for (unsigned seed = 0; seed < SCHEDULES; seed++) {
            simt_seed(seed);
            wrong += !planted_run(names[i]);
            EXPECT(simt_fault() == NULL);
        }
        EXPECT(wrong > 0 && wrong < SCHEDULES);
    }
}

static void a_seed_repeats_itself(void)
{
    for (unsigned seed = 3; seed < 6; seed++) {
        simt_seed(seed);
        struct simt_counters before = simt_counts();
        planted_run("sum");
        struct simt_counters middle = simt_counts();
        simt_seed(seed);
        planted_run("sum");
        struct simt_counters after = simt_counts();
        EXPECT_INT(after.switches - middle.switches, middle.switches - before.switches);
        EXPECT_INT(after.accesses - middle.accesses, middle.accesses - before.accesses);
        EXPECT_INT(after.device_bytes, 0);
    }
}

int main(void)
{
    return TEST_RUN(TEST(mistakes_are_found), TEST(correct_kernels_pass),
                    TEST(faults_name_the_place), TEST(a_missing_stream_wait_shows),
                    TEST(a_seed_repeats_itself), TEST(checks_can_be_off));
}
