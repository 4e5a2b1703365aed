/*
 * Routing. Method: every combination of question, agents with and without logs, available models
 * and forced choice, against the rule written out as a table.
 */
#include "base/units.h"
#include "scheduler/route.h"
#include "tests/harness.h"

static struct trajectory_point log_points[2] = {{.t_s = 0}, {.t_s = 1}};

/* agents: 0 none, 1 one static, 2 static and logged, 3 logged and one without a log. */
static struct scenario scenario_with(enum question question, int agents, struct agent list[2])
{
    memset(list, 0, 2 * sizeof *list);
    strcpy(list[0].id, "first");
    strcpy(list[1].id, "second");
    if (agents >= 2) {
        list[1].behaviour = BEHAVIOUR_REPLAY;
        list[1].trajectory = (struct trajectory){2, log_points};
    }
    if (agents == 3) {
        list[0].behaviour = BEHAVIOUR_IDM;
    }
    return (struct scenario){.id = "s",
                             .question = question,
                             .agent_count = agents > 2 ? 2 : (uint32_t)agents,
                             .agents = list};
}

/* Goal: auto takes the cheapest tier that answers, and says when it is not the one wanted. */
static void auto_takes_the_cheapest(void)
{
    for (int question = 0; question < QUESTION_COUNT; question++) {
        for (int agents = 0; agents < 4; agents++) {
            for (int student = 0; student < 2; student++) {
                struct agent list[2];
                struct scenario s = scenario_with((enum question)question, agents, list);
                struct route_policy policy = {.choice = WORLD_AUTO,
                                              .student_available = student == 1};
                struct route_decision decision;
                struct error error;
                EXPECT_OK(route_scenario(&s, &policy, &decision, &error), error);
                enum tier expected = TIER_OBJECT;
                if (question == QUESTION_REGRESSION && agents != 3) {
                    expected = TIER_REPLAY;
                } else if (question == QUESTION_PERCEPTION && student == 1) {
                    expected = TIER_STUDENT;
                }
                EXPECT_INT(decision.tier, expected);
                EXPECT_INT(decision.degraded, question == QUESTION_PERCEPTION && student == 0);
                EXPECT_TEXT(decision.pool, "bulk");
                EXPECT_INT(decision.reason, decision.degraded ? ROUTE_REASON_DEGRADED
                                            : question == QUESTION_PERCEPTION ? ROUTE_REASON_SENSORS
                                            : question == QUESTION_PLANNING ? ROUTE_REASON_PLANNING
                                            : decision.tier == TIER_REPLAY  ? ROUTE_REASON_LOGGED
                                                                           : ROUTE_REASON_UNLOGGED);
            }
        }
    }
}

/* Goal: a forced choice is obeyed or refused with a sentence, never replaced. */
static void forced_choices_are_obeyed_or_refused(void)
{
    struct agent list[2];
    struct route_decision decision;
    struct error error = {0};
    struct scenario s = scenario_with(QUESTION_PLANNING, 3, list);
    struct route_policy policy = {.choice = WORLD_REPLAY};
    EXPECT_INT(route_scenario(&s, &policy, &decision, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "scenario s: the replay world needs a log");
    EXPECT_CONTAINS(error.text, "\"first\"");
    s = scenario_with(QUESTION_PLANNING, 2, list);
    EXPECT_OK(route_scenario(&s, &policy, &decision, &error), error);
    EXPECT_INT(decision.tier, TIER_REPLAY);
    policy.choice = WORLD_OBJECT;
    EXPECT_OK(route_scenario(&s, &policy, &decision, &error), error);
    EXPECT(decision.tier == TIER_OBJECT && !decision.degraded);
    policy.choice = WORLD_STUDENT;
    EXPECT_INT(route_scenario(&s, &policy, &decision, &error), STATUS_BAD_INPUT);
    policy.student_available = true;
    EXPECT_OK(route_scenario(&s, &policy, &decision, &error), error);
    EXPECT_INT(decision.tier, TIER_STUDENT);
    EXPECT_INT(decision.reason, ROUTE_REASON_AUTHOR);
    policy.choice = WORLD_TEACHER;
    EXPECT_INT(route_scenario(&s, &policy, &decision, &error), STATUS_BAD_INPUT);
    policy.teacher_available = true;
    EXPECT_OK(route_scenario(&s, &policy, &decision, &error), error);
    EXPECT_INT(decision.tier, TIER_TEACHER);
    EXPECT_TEXT(decision.pool, "teacher");
}

/* Goal: nobody answers for longer than he is trusted. Over all tiers, policies and lengths about
 * the horizons: what is decided is within the horizon of who answers, a decision that stands is the
 * one that was made, and a refusal names both lengths. */
static void nobody_answers_beyond_the_horizon(void)
{
    static const uint32_t lengths[] = {0, 1, 10, 11, 300, 301};
    struct agent list[2];
    for (uint32_t i = 0; i < TIER_COUNT * ROUTE_BEYOND_COUNT * 6 * 6 * 6; i++) {
        uint32_t rest = i / (TIER_COUNT * ROUTE_BEYOND_COUNT);
        enum tier tier = (enum tier)(i % TIER_COUNT);
        enum route_beyond beyond = (enum route_beyond)(i / TIER_COUNT % ROUTE_BEYOND_COUNT);
        struct scenario s = scenario_with(QUESTION_PERCEPTION, 3, list);
        const struct route_horizons horizons = {lengths[rest % 6], lengths[rest / 6 % 6]};
        struct route_decision decision = {.tier = tier};
        struct error error = {0};
        s.horizon_ticks = lengths[rest / 36];
        enum status status = route_within_horizon(&s, beyond, &horizons, &decision, &error);
        uint32_t own = tier == TIER_TEACHER ? horizons.teacher_ticks : horizons.student_ticks;
        bool within = tier < TIER_STUDENT || s.horizon_ticks <= own;
        bool refused =
            !within && (beyond == ROUTE_BEYOND_REFUSE || (beyond == ROUTE_BEYOND_CLIP && own == 0));
        EXPECT_INT(status, refused ? STATUS_BAD_INPUT : STATUS_OK);
        EXPECT_INT(decision.rerouted, !within && beyond == ROUTE_BEYOND_ROUTE);
        EXPECT_INT(decision.clip_ticks,
                   !within && !refused && beyond == ROUTE_BEYOND_CLIP ? own : 0);
        bool teacher =
            decision.rerouted && tier == TIER_STUDENT && s.horizon_ticks <= horizons.teacher_ticks;
        EXPECT_INT(decision.tier, !decision.rerouted ? tier : teacher ? TIER_TEACHER : TIER_OBJECT);
        EXPECT(!refused || strstr(error.text, "found") != NULL);
        EXPECT(!decision.rerouted || (decision.reason == ROUTE_REASON_HORIZON &&
                                      decision.own == s.horizon_ticks && decision.other == own));
    }
}

/* Goal: a frozen student's questions go to the teacher or nowhere; nobody else's are touched. */
static void a_frozen_student_gives_way_to_the_teacher(void)
{
    struct agent list[2];
    struct scenario s = scenario_with(QUESTION_PERCEPTION, 3, list);
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        for (int teacher = 0; teacher < 2; teacher++) {
            const struct route_policy policy = {.teacher_available = teacher == 1};
            struct route_decision decision = {.tier = (enum tier)tier};
            struct error error = {0};
            bool student = tier == TIER_STUDENT;
            EXPECT_INT(route_frozen(&s, &policy, &decision, &error),
                       student && !teacher ? STATUS_BAD_INPUT : STATUS_OK);
            EXPECT_INT(decision.tier, student && teacher ? TIER_TEACHER : tier);
            EXPECT_INT(decision.frozen, student && teacher);
            EXPECT_INT(decision.reason,
                       student && teacher ? ROUTE_REASON_FROZEN : ROUTE_REASON_NONE);
        }
    }
}

/* Goal: of two tiers that could answer alike the cheaper one does, by measures, and where somebody
 * waits the earlier one; what is not measured, not trusted for so long, or named changes nothing.
 * Method: all combinations of a few prices, backlogs, horizons and choices, against the rule in
 * plain arithmetic; a contrary market takes the other one, with the figures of each. */
static void the_market_decides_what_is_open(void)
{
    static const int64_t prices[] = {0, 5, 7};
    static const int64_t waits_ns[] = {0, 90 * NS_PER_S};
    const struct route_horizons horizons = {.student_ticks = 300, .teacher_ticks = 200};
    struct agent list[2];
    uint32_t taught = 0;
    for (uint32_t i = 0; i < 3 * 3 * 2 * 2 * 2 * 2 * 2 * 2; i++) {
        uint32_t rest = i / 9;
        struct scenario s = scenario_with(QUESTION_PERCEPTION, 3, list);
        struct route_policy policy = {.student_available = true, .teacher_available = true};
        struct route_market *market = &policy.market;
        struct route_decision decision;
        struct error error = {0};
        s.horizon_ticks = rest % 2 == 0 ? 200 : 201;
        policy.choice = rest / 2 % 2 == 0 ? WORLD_AUTO : WORLD_STUDENT;
        market->urgent = rest / 4 % 2 == 1;
        market->contrary = rest / 8 % 2 == 1;
        market->tick_pusd[TIER_STUDENT] = prices[i % 3];
        market->tick_pusd[TIER_TEACHER] = prices[i / 3 % 3];
        market->tick_ns[TIER_STUDENT] = NS_PER_S / 10;
        market->tick_ns[TIER_TEACHER] = NS_PER_S / 5;
        market->wait_ns[TIER_STUDENT] = waits_ns[rest / 16 % 2];
        market->wait_ns[TIER_TEACHER] = waits_ns[rest / 32 % 2];
        EXPECT_OK(route_scenario(&s, &policy, &decision, &error), error);
        bool open = s.horizon_ticks == 200 && policy.choice == WORLD_AUTO &&
                    market->tick_pusd[TIER_STUDENT] > 0 && market->tick_pusd[TIER_TEACHER] > 0;
        EXPECT_INT(route_is_open(&s, &policy, &horizons, &decision), open);
        route_by_market(&s, &policy, &horizons, &decision);
        int64_t student_ms = market->wait_ns[TIER_STUDENT] / NS_PER_MS + 20000;
        int64_t teacher_ms = market->wait_ns[TIER_TEACHER] / NS_PER_MS + 40000;
        int64_t student = market->urgent ? student_ms : market->tick_pusd[TIER_STUDENT];
        int64_t teacher = market->urgent ? teacher_ms : market->tick_pusd[TIER_TEACHER];
        bool taken = open && (market->contrary ? teacher >= student : teacher < student);
        EXPECT_INT(decision.tier, taken ? TIER_TEACHER : TIER_STUDENT);
        EXPECT_TEXT(decision.pool, taken ? "teacher" : "bulk");
        EXPECT_INT(decision.reason, policy.choice == WORLD_STUDENT ? ROUTE_REASON_AUTHOR
                                    : !open                        ? ROUTE_REASON_SENSORS
                                    : market->urgent               ? ROUTE_REASON_BACKLOG
                                                                   : ROUTE_REASON_PRICE);
        EXPECT_INT(decision.own, !open ? 0 : taken ? teacher : student);
        EXPECT_INT(decision.other, !open ? 0 : taken ? student : teacher);
        taught += taken;
    }
    EXPECT(taught > 10);
}

/* Goal: every reason has words, with both figures where it has two; none says nothing. */
static void reasons_have_words(void)
{
    char text[ROUTE_TEXT_BYTES];
    for (int reason = 1; reason < ROUTE_REASON_COUNT; reason++) {
        route_reason_text(TIER_TEACHER, (enum route_reason)reason, 400, 300, text);
        EXPECT(strlen(text) > 10 && strlen(text) < ROUTE_TEXT_BYTES - 1);
    }
    EXPECT_TEXT(route_reason_text(TIER_OBJECT, ROUTE_REASON_NONE, 0, 0, text), "");
    route_reason_text(TIER_TEACHER, ROUTE_REASON_PRICE, INT64_C(2000000000), INT64_C(5000000000),
                      text);
    EXPECT_CONTAINS(text, "the student could answer too");
    EXPECT_CONTAINS(text, "$72 here, $180 there");
    route_reason_text(TIER_STUDENT, ROUTE_REASON_BACKLOG, 20000, 90000, text);
    EXPECT_CONTAINS(text, "the teacher could answer too");
    EXPECT_CONTAINS(text, "about 20 s here, 90 s there");
    route_reason_text(TIER_OBJECT, ROUTE_REASON_HORIZON, 400, 300, text);
    EXPECT_CONTAINS(text, "40 s");
    EXPECT_CONTAINS(text, "30 s");
}

int main(void)
{
    return TEST_RUN(TEST(the_market_decides_what_is_open), TEST(reasons_have_words),
                    TEST(auto_takes_the_cheapest), TEST(forced_choices_are_obeyed_or_refused),
                    TEST(nobody_answers_beyond_the_horizon),
                    TEST(a_frozen_student_gives_way_to_the_teacher));
}
