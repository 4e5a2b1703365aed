/*
 * Looking at all of an input instead of stopping at the first mistake.
 *
 * Goal: every mistake that does not rest on another one is said, each once, in the words that it
 * has alone, and nothing else is; limits hold. Method: mistakes that are independent of one
 * another, put into the fixture one by one and then in random subsets, whose errors must be those
 * of their members; and a small tree of suites.
 */
#include "base/rng.h"
#include "tests/scenarios/fixture.h"

#include <unistd.h>

enum { SUBSETS = 200 };

struct mistake {
    const char *place;
    const char *value; /* single quotes stand for double ones */
};

/* Of form and of places, which are looked at together. */
static const struct mistake form[] = {
    {"$.horizon_s", "'long'"},
    {"$.question", "'why'"},
    {"$.surprise", "1"},
    {"$.ego.speed_mps", "'fast'"},
    {"$.ego.goal.s_m", "9999"},
    {"$.agents[0].kind", "'tram'"},
    {"$.agents[1].pose.lane", "'nowhere'"},
    {"$.agents[1].manoeuvres[0].path[0].s_m", "9999"},
    {"$.agents[1].manoeuvres[1].rate_mps2", "-1"},
    {"$.agents[1].manoeuvres[3].do", "'fly'"},
    {"$.agents[2].trajectory[1][0]", "-5"},
    {"$.agents[3].behaviour", "'asleep'"},
    {"$.conditions.light", "'pink'"},
    {"$.slices.road", "''"},
    {"$.criteria.min_ttc_s", "7"},
};

/* Of meaning, which is looked at where the form is right. */
static const struct mistake meaning[] = {
    {"$.ego.wheelbase_m", "5.5"},
    {"$.agents[0].pose", "{'x_m':20,'y_m':0,'heading_rad':0}"},
    {"$.agents[1].manoeuvres[3].do", "'appear'"},
    {"$.branches[4].interventions[0].agent", "'ghost'"},
};

/* Of expressions, which come before everything else. */
static const struct mistake expressions[] = {
    {"$.ego.speed_mps", "'=sped_mps'"},
    {"$.agents[0].pose.x_m", "'=25+'"},
    {"$.conditions.weather", "'=cloud'"},
};

static char directory[64];
static char path[128];
static struct errors found;

static void begin(void)
{
    strcpy(directory, "/tmp/swerve-check-XXXXXX");
    EXPECT(mkdtemp(directory) != NULL);
}

static void write_text(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    EXPECT(file != NULL);
    for (const char *c = text; *c != '\0'; c++) {
        fputc(*c == '\'' ? '"' : *c, file);
    }
    EXPECT_INT(fclose(file), 0);
}

/* The fixture with the mistakes of `mask`, into `name`; its path is then in `path`. */
static void write_document(const char *name, const struct mistake *mistakes, size_t count,
                           uint32_t mask)
{
    json_t *root = fixture_json(fixture_text);
    for (size_t i = 0; i < count; i++) {
        if ((mask & (1U << i)) != 0) {
            fixture_set(root, mistakes[i].place, fixture_json(mistakes[i].value));
        }
    }
    snprintf(path, sizeof path, "%s/%s", directory, name);
    EXPECT_INT(json_dump_file(root, path, 0), 0);
    json_decref(root);
}

static void end(const char *const *names)
{
    for (; *names != NULL; names++) {
        snprintf(path, sizeof path, "%s/%s", directory, *names);
        unlink(path);
    }
    EXPECT_INT(rmdir(directory), 0);
}

static enum status check(void)
{
    struct suite *suite = NULL;
    struct error error = {0};
    enum status status = suite_check(path, &suite, &found, &error);
    EXPECT_INT(status == STATUS_OK, suite != NULL);
    EXPECT_INT(status == STATUS_OK, found.count == 0);
    suite_destroy(suite);
    return status;
}

static void expect_subsets(const struct mistake *mistakes, size_t count)
{
    static struct error alone[COUNT_OF(form)];
    begin();
    for (size_t i = 0; i < count; i++) {
        struct suite *suite = NULL;
        write_document("doc.json", mistakes, count, 1U << i);
        EXPECT_INT(suite_load(path, &suite, &alone[i]) != STATUS_OK, true);
        check();
        if (found.count != 1 || strcmp(found.items[0].text, alone[i].text) != 0) {
            TEST_FAIL("%s alone: %u errors, the first: %s", mistakes[i].place, found.count,
                      found.items[0].text);
        }
    }
    for (uint64_t s = 0; s < SUBSETS; s++) {
        uint32_t mask = (uint32_t)rng_mix(s) & ((1U << count) - 1);
        uint32_t expected = 0;
        mask = s == 0 ? (1U << count) - 1 : mask;
        write_document("doc.json", mistakes, count, mask);
        check();
        for (size_t i = 0; i < count; i++) {
            bool there = (mask & (1U << i)) != 0;
            expected += there;
            if (errors_have(&found, alone[i].text) != there) {
                TEST_FAIL("mistakes %x: %s is %s", mask, alone[i].text, there ? "missing" : "said");
            }
        }
        EXPECT_INT(found.count, expected);
        EXPECT(!found.more);
    }
    end((const char *const[]){"doc.json", NULL});
}

static void independent_mistakes_are_all_said(void)
{
    expect_subsets(form, COUNT_OF(form));
    expect_subsets(meaning, COUNT_OF(meaning));
    expect_subsets(expressions, COUNT_OF(expressions));
}

static void a_suite_is_looked_at_to_its_end(void)
{
    static const char *const parts[] = {
        "/suite.json: $.suites[0]: ", /* and the inner one's entry, and its document */
        "/suite.json: $.suites[1]: expected a suite file, found no \"nothing.json\"",
        "/suite.json: $.scenarios[1]: ",
        "/suite.json: $.scenarios[2]: ",
        "/suite.json: $.scenarios[4]: ",
        "/suite.json: $.scenarios[5]: unknown member \"seedz\"; did you mean \"seeds\"?",
    };
    begin();
    write_document("good.json", form, COUNT_OF(form), 0);
    write_document("bad.json", form, COUNT_OF(form), 1);
    write_document("worse.json", form, COUNT_OF(form), 2);
    write_text("broken.json", "{'id': }");
    write_text("inner.json", "{'id':'inner','scenarios':[{'file':'worse.json'}]}");
    write_text("suite.json", "{'id':'s','suites':['inner.json','nothing.json'],'scenarios':["
                             "{'file':'good.json'},{'file':'bad.json'},{'file':'absent.json'},"
                             "{'file':'bad.json'},{'file':'broken.json'},"
                             "{'file':'good.json','seedz':2}]}");
    EXPECT_INT(check(), STATUS_BAD_INPUT);
    EXPECT_INT(found.count, COUNT_OF(parts));
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        EXPECT_CONTAINS(found.items[i].text, parts[i]);
    }
    EXPECT_CONTAINS(found.items[0].text, "/inner.json: $.scenarios[0]: ");
    EXPECT_CONTAINS(found.items[0].text, "/worse.json: $.question: ");
    EXPECT_CONTAINS(found.items[4].text, "/broken.json: line 1, column ");
    end((const char *const[]){"good.json", "bad.json", "worse.json", "broken.json", "inner.json",
                              "suite.json", NULL});
}

static void more_than_fit_are_counted_out(void)
{
    char text[4096] = "{'id':'s','scenarios':[";
    size_t used = strlen(text);
    begin();
    for (int i = 0; i < ERRORS_MAX + 5; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s{'file':'absent%d.json'}",
                                 i > 0 ? "," : "", i);
    }
    snprintf(text + used, sizeof text - used, "]}");
    write_text("suite.json", text);
    EXPECT_INT(check(), STATUS_NOT_FOUND);
    EXPECT_INT(found.count, ERRORS_MAX);
    EXPECT(found.more);
    end((const char *const[]){"suite.json", NULL});
}

static void what_is_right_is_handed_out(void)
{
    begin();
    write_document("doc.json", form, COUNT_OF(form), 0);
    EXPECT_INT(check(), STATUS_OK);
    end((const char *const[]){"doc.json", NULL});
}

int main(void)
{
    return TEST_RUN(TEST(independent_mistakes_are_all_said), TEST(a_suite_is_looked_at_to_its_end),
                    TEST(more_than_fit_are_counted_out), TEST(what_is_right_is_handed_out));
}
