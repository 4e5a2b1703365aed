/*
 * Goal: lights of hostile CommonRoad files cost no more than their bytes, and every signal has a
 * name of its own.
 * Method: a file with very many lights and references, which a search per reference would not
 * finish before the test's limit; ids that look like the names of a light's further signals; of two
 * lights with one id the first; stop and yield signs beside lights. What lights mean is
 * test_commonroad.c's.
 */
#include "tests/scenarios/imported.h"

enum { MANY = 200000, LINE_BYTES = 96, HEAD_BYTES = 1 << 14 };

struct text {
    size_t bytes;
    size_t capacity;
    char *data;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vsnprintf(text->data + text->bytes, text->capacity - text->bytes, format, args);
    va_end(args);
    EXPECT(bytes >= 0 && text->bytes + (size_t)bytes < text->capacity);
    text->bytes += (size_t)bytes;
}

static struct text text_begin(size_t capacity)
{
    struct text text = {.capacity = capacity, .data = malloc(capacity)};
    EXPECT(text.data != NULL);
    add(&text, "<commonRoad commonRoadVersion=\"2020a\" benchmarkID=\"ZAM_Lights-1_1_T-1\" "
               "timeStepSize=\"0.1\">\n");
    return text;
}

/* 100 m along x; a stop line `stop_m` before its end. */
static void begin_lanelet(struct text *text, int id, double y, double stop_m)
{
    add(text,
        "<lanelet id=\"%d\"><leftBound><point><x>0</x><y>%.2f</y></point><point><x>100</x>"
        "<y>%.2f</y></point></leftBound><rightBound><point><x>0</x><y>%.2f</y></point><point>"
        "<x>100</x><y>%.2f</y></point></rightBound><stopLine><point><x>%.2f</x><y>%.2f</y></point>"
        "<point><x>%.2f</x><y>%.2f</y></point></stopLine>\n",
        id, y + 1.75, y + 1.75, y - 1.75, y - 1.75, 100 - stop_m, y + 1.75, 100 - stop_m, y - 1.75);
}

static void add_reference(struct text *text, const char *light)
{
    add(text, "<trafficLightRef ref=\"%s\"/>", light);
}

static void add_light(struct text *text, const char *id, int steps)
{
    add(text,
        "<trafficLight id=\"%s\"><cycle><cycleElement><duration>%d</duration><color>red</color>"
        "</cycleElement></cycle></trafficLight>\n",
        id, steps);
}

static struct imported text_import(struct text *text)
{
    add(text, "<planningProblem id=\"9\"><initialState><position><point><x>10</x><y>0</y></point>"
              "</position><orientation><exact>0</exact></orientation><time><exact>0</exact></time>"
              "<velocity><exact>5</exact></velocity></initialState><goalState><time>"
              "<intervalStart>0</intervalStart><intervalEnd>20</intervalEnd></time></goalState>"
              "</planningProblem></commonRoad>\n");
    struct imported imported = imported_make("lights.xml", text->data, text->bytes);
    free(text->data);
    return imported;
}

static void many_references_to_many_lights_come_to_an_end(void)
{
    struct text text = text_begin((size_t)2 * MANY * LINE_BYTES + HEAD_BYTES);
    begin_lanelet(&text, 1, 0, 2);
    for (int i = 0; i < MANY; i++) {
        add_reference(&text, "7");
    }
    add(&text, "</lanelet>\n");
    for (int i = 0; i < MANY; i++) {
        add(&text, "<trafficLight id=\"a%d\"/>\n", i);
    }
    add_light(&text, "7", 50);
    struct imported imported = text_import(&text);
    const struct map *map = &imported.documents[0]->scenario.map;
    EXPECT_INT(map->signal_count, 1);
    EXPECT_TEXT(map->signals[0].id, "7");
    EXPECT_NEAR(map->signals[0].phases[0].duration_s, 5, 1e-9);
    imported_free(&imported);
}

/* Light "1" has two stop lines, so two signals, and "1.2" is the id of another light. */
static void signals_have_names_of_their_own(void)
{
    static const char *const lights[] = {"1", "1.2", "1"};
    static const char *const names[] = {"1", "1.2", "1.3"};
    struct text text = text_begin(HEAD_BYTES);
    for (int i = 0; i < 3; i++) {
        begin_lanelet(&text, i + 1, i * 10.0, 2.0 + i);
        add_reference(&text, lights[i]);
        add(&text, "</lanelet>\n");
    }
    add_light(&text, "1", 50);
    add_light(&text, "1.2", 60);
    struct imported imported = text_import(&text);
    const struct map *map = &imported.documents[0]->scenario.map;
    EXPECT_INT(map->signal_count, 3);
    for (uint32_t i = 0; i < map->signal_count; i++) {
        EXPECT_TEXT(map->signals[i].id, names[i]);
        EXPECT_NEAR(map->signals[i].phases[0].duration_s, i == 1 ? 6 : 5, 1e-9);
    }
    imported_free(&imported);
}

static void phases_of_no_duration_never_show(void)
{
    struct text text = text_begin(HEAD_BYTES);
    begin_lanelet(&text, 1, 0, 2);
    add_reference(&text, "7");
    add(&text, "</lanelet>\n<trafficLight id=\"7\"><cycle>");
    for (int i = 0; i < 4; i++) {
        add(&text, "<cycleElement><duration>%d</duration><color>%s</color></cycleElement>",
            30 * (i % 2), i < 2 ? "red" : "green");
    }
    add(&text, "</cycle></trafficLight>\n");
    struct imported imported = text_import(&text);
    const struct traffic_signal *signal = &imported.documents[0]->scenario.map.signals[0];
    EXPECT_INT(signal->phase_count, 2);
    EXPECT(signal->phases[0].light == TRAFFIC_LIGHT_RED);
    EXPECT(signal->phases[1].light == TRAFFIC_LIGHT_GREEN);
    EXPECT_NEAR(signal->phases[1].duration_s, 3, 1e-9);
    imported_free(&imported);
}

static void of_two_lights_with_one_id_the_first_counts(void)
{
    struct text text = text_begin(HEAD_BYTES);
    begin_lanelet(&text, 1, 0, 2);
    add_reference(&text, "7");
    add(&text, "</lanelet>\n");
    for (int steps = 30; steps <= 100; steps += 10) {
        add_light(&text, "7", steps);
    }
    struct imported imported = text_import(&text);
    const struct map *map = &imported.documents[0]->scenario.map;
    EXPECT_INT(map->signal_count, 1);
    EXPECT_NEAR(map->signals[0].phases[0].duration_s, 3, 1e-9);
    imported_free(&imported);
}

/* A lanelet's light counts before its sign, a stop sign before a yield sign, others not at all. */
static void signs_are_of_lanelets_without_lights(void)
{
    static const char *const numbers[] = {"274", "205", "206", "R1-1", "R1-2"};
    struct text text = text_begin(HEAD_BYTES);
    for (int i = 0; i < 7; i++) {
        begin_lanelet(&text, i + 1, i * 10.0, 2.0 + i);
        add(&text, "<trafficSignRef ref=\"%d\"/>", i < 5 ? 50 + i : 51);
        if (i == 5) {
            add(&text, "<trafficSignRef ref=\"52\"/>");
        }
        if (i == 6) {
            add_reference(&text, "7");
        }
        add(&text, "</lanelet>\n");
    }
    for (int i = 0; i < 5; i++) {
        add(&text,
            "<trafficSign id=\"%d\"><trafficSignElement><trafficSignID>%s</trafficSignID>"
            "</trafficSignElement></trafficSign>\n",
            50 + i, numbers[i]);
    }
    add_light(&text, "7", 50);
    struct imported imported = text_import(&text);
    const struct map *map = &imported.documents[0]->scenario.map;
    static const enum traffic_sign signs[] = {TRAFFIC_SIGN_NONE,  TRAFFIC_SIGN_YIELD,
                                              TRAFFIC_SIGN_STOP,  TRAFFIC_SIGN_STOP,
                                              TRAFFIC_SIGN_YIELD, TRAFFIC_SIGN_STOP};
    static const double stops_m[] = {8, 3, 4, 5, 6, 7};
    EXPECT_INT(map->signal_count, 6);
    for (uint32_t i = 0; i < map->signal_count; i++) {
        EXPECT_INT(map->signals[i].sign, signs[i]);
        EXPECT_INT(map->signals[i].phase_count, signs[i] == TRAFFIC_SIGN_NONE);
        EXPECT_NEAR(map->signals[i].stop_m, stops_m[i], 1e-6);
    }
    imported_free(&imported);
}

static void add_straight(struct text *text, int id, double x, double y, double ux, double uy,
                         const char *links)
{
    add(text, "<lanelet id=\"%d\">", id);
    for (int side = 1; side >= -1; side -= 2) {
        add(text, side > 0 ? "<leftBound>" : "<rightBound>");
        for (int i = 0; i < 2; i++) {
            add(text, "<point><x>%.2f</x><y>%.2f</y></point>",
                x + 100.0 * i * ux - 1.75 * side * uy, y + 100.0 * i * uy + 1.75 * side * ux);
        }
        add(text, side > 0 ? "</leftBound>" : "</rightBound>");
    }
    add(text, "%s</lanelet>\n", links);
}

/* A road with a priority sign, one that crosses it, and one that comes towards it. */
static void side_roads_of_priority_signs_give_way(void)
{
    static const struct {
        const char *sign;
        bool gives_way;
    } rows[] = {{"306", true}, {"301", true}, {"307", false}};
    for (int i = 0; i < 3; i++) {
        struct text text = text_begin(HEAD_BYTES);
        add_straight(&text, 1, 0, 0, 1, 0, "<successor ref=\"2\"/><trafficSignRef ref=\"50\"/>");
        add_straight(&text, 2, 100, 0, 1, 0, "<predecessor ref=\"1\"/>");
        add_straight(&text, 3, 120, -120, 0, 1, "<successor ref=\"4\"/>");
        add_straight(&text, 4, 120, -20, 0, 1, "<predecessor ref=\"3\"/>");
        add_straight(&text, 5, 240, 4, -1, 0, "<successor ref=\"6\"/>");
        add_straight(&text, 6, 140, 4, -1, 0, "<predecessor ref=\"5\"/>");
        add(&text,
            "<trafficSign id=\"50\"><trafficSignElement><trafficSignID>%s</trafficSignID>"
            "</trafficSignElement></trafficSign>\n",
            rows[i].sign);
        struct imported imported = text_import(&text);
        const struct map *map = &imported.documents[0]->scenario.map;
        EXPECT_INT(map->signal_count, rows[i].gives_way ? 2 : 0);
        if (rows[i].gives_way) {
            EXPECT_INT(map->signals[0].sign, TRAFFIC_SIGN_PRIORITY);
            EXPECT_INT(map->signals[1].sign, TRAFFIC_SIGN_GIVE_WAY);
            EXPECT_INT(map->signals[1].lane_count, 1);
            EXPECT_NEAR(map->lanes[map->signals[1].lanes[0]].centre_line[0].y_m, -120, 1e-9);
            EXPECT_CONTAINS(imported.documents[0]->scenario.source,
                            "lanes without a sign give way to a priority sign");
        }
        imported_free(&imported);
    }
}

/* A sign to which the stop line alone refers is the lanelet's, at that line. */
static void stop_lines_refer_to_signs(void)
{
    struct text text = text_begin(HEAD_BYTES);
    add(&text,
        "<lanelet id=\"1\"><leftBound><point><x>0</x><y>1.75</y></point><point><x>100</x>"
        "<y>1.75</y></point></leftBound><rightBound><point><x>0</x><y>-1.75</y></point><point>"
        "<x>100</x><y>-1.75</y></point></rightBound><stopLine><point><x>70</x><y>1.75</y></point>"
        "<point><x>70</x><y>-1.75</y></point><trafficSignRef ref=\"50\"/></stopLine></lanelet>"
        "<trafficSign id=\"50\"><trafficSignElement><trafficSignID>206</trafficSignID>"
        "</trafficSignElement></trafficSign>\n");
    struct imported imported = text_import(&text);
    const struct map *map = &imported.documents[0]->scenario.map;
    EXPECT_INT(map->signal_count, 1);
    EXPECT_INT(map->signals[0].sign, TRAFFIC_SIGN_STOP);
    EXPECT_NEAR(map->signals[0].stop_m, 30, 1e-9);
    imported_free(&imported);
}

/* References times the parts of what they refer to would be 4e10 looks. */
static void many_references_to_signs_of_many_parts_come_to_an_end(void)
{
    struct text text = text_begin((size_t)2 * MANY * LINE_BYTES + HEAD_BYTES);
    begin_lanelet(&text, 1, 0, 2);
    for (int i = 0; i < MANY; i++) {
        add(&text, "<trafficSignRef ref=\"7\"/>");
    }
    add(&text, "</lanelet>\n<trafficSign id=\"7\">");
    for (int i = 0; i < MANY; i++) {
        add(&text, "<trafficSignElement><trafficSignID>274</trafficSignID></trafficSignElement>");
    }
    add(&text, "</trafficSign>\n");
    struct imported imported = text_import(&text);
    EXPECT_INT(imported.documents[0]->scenario.map.signal_count, 0);
    imported_free(&imported);
}

/* More signs than a map holds, in lanelets before that of the light. */
static void signs_crowd_no_light_out(void)
{
    struct text text = text_begin((size_t)(LIMIT_SIGNALS + 2) * 600 + HEAD_BYTES);
    for (int i = 0; i < LIMIT_SIGNALS + 2; i++) {
        begin_lanelet(&text, i + 1, i * 10.0, 2.0);
        if (i <= LIMIT_SIGNALS) {
            add(&text, "<trafficSignRef ref=\"%d\"/>", 1000 + i);
        } else {
            add_reference(&text, "7");
        }
        add(&text, "</lanelet>\n");
    }
    for (int i = 0; i <= LIMIT_SIGNALS; i++) {
        add(&text,
            "<trafficSign id=\"%d\"><trafficSignElement><trafficSignID>206</trafficSignID>"
            "</trafficSignElement></trafficSign>\n",
            1000 + i);
    }
    add_light(&text, "7", 50);
    struct imported imported = text_import(&text);
    const struct map *map = &imported.documents[0]->scenario.map;
    EXPECT_INT(map->signal_count, LIMIT_SIGNALS);
    EXPECT_TEXT(map->signals[0].id, "7");
    EXPECT_INT(map->signals[0].sign, TRAFFIC_SIGN_NONE);
    EXPECT_INT(map->signals[1].sign, TRAFFIC_SIGN_STOP);
    imported_free(&imported);
}

int main(void)
{
    return TEST_RUN(
        TEST(many_references_to_many_lights_come_to_an_end), TEST(signals_have_names_of_their_own),
        TEST(of_two_lights_with_one_id_the_first_counts), TEST(phases_of_no_duration_never_show),
        TEST(signs_are_of_lanelets_without_lights), TEST(side_roads_of_priority_signs_give_way),
        TEST(stop_lines_refer_to_signs),
        TEST(many_references_to_signs_of_many_parts_come_to_an_end),
        TEST(signs_crowd_no_light_out));
}
