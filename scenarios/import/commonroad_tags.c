/*
 * CommonRoad import: what a scenario is about. Tags, location and environment become slices and
 * conditions; repairs become the source text.
 */
#include "base/dmath.h"
#include "base/text.h"
#include "scenarios/import/commonroad.h"

#include <stdio.h>
#include <string.h>

/* ---- tags ---- */

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

/* 2018b lists tags in an attribute of the root, 2020a as empty elements. */
static bool has_tag(const struct xml_element *root, enum cr_tag tag)
{
    const struct xml_element *tags = xml_child(root, CR_SCENARIO_TAGS);
    const char *list = xml_attribute(root, "tags");
    const char *name = cr_tag_names[tag];
    size_t bytes = strlen(name);
    if (tags != NULL && xml_child(tags, (int)tag) != NULL) {
        return true;
    }
    for (const char *at = list; at != NULL && (at = strstr(at, name)) != NULL; at++) {
        bool begins = at == list || is_separator(at[-1]);
        if (begins && (at[bytes] == '\0' || is_separator(at[bytes]))) {
            return true;
        }
    }
    return false;
}

static const char *road_slice(const struct xml_element *root, const struct cr_map *map,
                              const struct scenario *scenario)
{
    static const struct {
        enum cr_tag tag;
        const char *slice;
    } roads[] = {{CR_RACE_TRACK, "race_track"},
                 {CR_ROUNDABOUT, "roundabout"},
                 {CR_INTERSECTION, "junction"},
                 {CR_HIGHWAY, "motorway"},
                 {CR_INTERSTATE, "motorway"},
                 {CR_RURAL, "rural"},
                 {CR_URBAN, "urban"}};
    for (size_t i = 0; i < sizeof roads / sizeof roads[0]; i++) {
        if (has_tag(root, roads[i].tag)) {
            return roads[i].slice;
        }
    }
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        if (scenario->map.lanes[scenario->ego.route[i]].intersection) {
            return "junction";
        }
    }
    for (uint32_t i = 0; i < map->lanelet_count; i++) {
        const struct cr_lanelet *lanelet = &map->lanelets[i];
        if (lanelet->motorway || lanelet->urban || lanelet->country) {
            return lanelet->motorway ? "motorway" : lanelet->urban ? "urban" : "rural";
        }
    }
    return "unspecified";
}

/* ---- geography ---- */

struct continent {
    const char *name;
    const char *countries; /* ISO 3166-1 alpha-3, as benchmark ids begin */
};

static const struct continent continents[] = {
    {"synthetic", "ZAM"},
    {"europe",
     "ALB AND AUT BEL BGR BIH BLR CHE CYP CZE DEU DNK ESP EST FIN FRA GBR GRC HRV HUN IRL "
     "ISL ITA LIE LTU LUX LVA MCO MDA MKD MLT MNE NLD NOR POL PRT ROU RUS SMR SRB SVK "
     "SVN SWE TUR UKR"},
    {"north_america", "USA CAN MEX PRI CUB JAM GTM CRI PAN DOM HND SLV NIC"},
    {"south_america", "ARG BOL BRA CHL COL ECU PER PRY URY VEN GUY SUR"},
    {"asia", "CHN JPN KOR PRK IND IDN IRN IRQ ISR JOR KAZ KWT LBN LKA MNG MYS NPL OMN PAK PHL QAT "
             "SAU SGP SYR THA TWN HKG MAC UZB VNM ARE BGD KHM LAO MMR AZE ARM GEO"},
    {"africa", "DZA EGY ETH GHA KEN MAR NGA SEN TUN TZA UGA ZAF ZMB ZWE NAM MOZ AGO CMR CIV"},
    {"oceania", "AUS NZL FJI PNG"},
};

/* "DEU_Muc-1_1_T-1"; cooperative benchmarks begin with "C-". */
static const char *geography_slice(const char *benchmark)
{
    char country[4] = "";
    if (strncmp(benchmark, "C-", 2) == 0) {
        benchmark += 2;
    }
    if (strlen(benchmark) < 4 || benchmark[3] != '_' || strchr(benchmark, '_') != benchmark + 3) {
        return "unspecified";
    }
    memcpy(country, benchmark, 3);
    for (size_t i = 0; i < sizeof continents / sizeof continents[0]; i++) {
        const char *found = strstr(continents[i].countries, country);
        if (found != NULL && (found - continents[i].countries) % 4 == 0) {
            return continents[i].name;
        }
    }
    return "unspecified";
}

/* ---- conditions ---- */

static void set_weather(struct conditions *out, enum weather weather, double friction,
                        double visibility_m)
{
    out->weather = weather;
    out->friction = friction;
    out->visibility_m = visibility_m;
}

/* Friction and visibility are the documents' defaults for the weather. */
static void read_conditions(const struct xml_element *root, struct conditions *out)
{
    const struct xml_element *location = xml_child(root, CR_LOCATION);
    const struct xml_element *environment =
        location != NULL ? xml_child(location, CR_ENVIRONMENT) : NULL;
    set_weather(out, WEATHER_CLEAR, 1.0, 200);
    out->light = LIGHT_DAY;
    if (environment == NULL) {
        return;
    }
    const struct xml_element *weather = xml_child(environment, CR_WEATHER);
    const struct xml_element *light = xml_child(environment, CR_TIME_OF_DAY);
    const struct xml_element *ground = xml_child(environment, CR_UNDERGROUND);
    const char *sky = weather != NULL ? weather->text : "";
    if (strcmp(sky, "light_rain") == 0 || strcmp(sky, "mid_rain") == 0) {
        set_weather(out, WEATHER_RAIN, 0.7, 120);
    } else if (strcmp(sky, "heavy_rain") == 0 || strcmp(sky, "hail") == 0) {
        set_weather(out, WEATHER_HEAVY_RAIN, 0.6, 80);
    } else if (strcmp(sky, "fog") == 0) {
        set_weather(out, WEATHER_FOG, 0.9, 50);
    } else if (strcmp(sky, "snow") == 0) {
        set_weather(out, WEATHER_SNOW, 0.35, 80);
    }
    if (light != NULL && strcmp(light->text, "night") == 0) {
        out->light = LIGHT_NIGHT;
    } else if (light != NULL &&
               (strcmp(light->text, "dusk") == 0 || strcmp(light->text, "dawn") == 0 ||
                strcmp(light->text, "sunset") == 0)) {
        out->light = LIGHT_DUSK;
    }
    const char *road = ground != NULL ? ground->text : "";
    double friction = strcmp(road, "ice") == 0    ? 0.15
                      : strcmp(road, "snow") == 0 ? 0.35
                      : strcmp(road, "wet") == 0  ? 0.7
                                                  : 1.0;
    out->friction = dmath_min(out->friction, friction);
}

/* ---- actors ---- */

static void count_kinds(const struct scenario *scenario, uint32_t count[AGENT_KIND_COUNT])
{
    memset(count, 0, AGENT_KIND_COUNT * sizeof *count);
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        count[scenario->agents[i].kind]++;
    }
}

static const struct kind_word {
    enum agent_kind kind;
    const char *slice;
    const char *plural;
} kind_words[] = {
    {AGENT_PEDESTRIAN, "pedestrian", "pedestrians"},
    {AGENT_CYCLIST, "cyclist", "cyclists"},
    {AGENT_ANIMAL, "animal", "animals"},
    {AGENT_MOTORCYCLE, "motorcycle", "motorcycles"},
    {AGENT_CAR, "car", "cars"},
    {AGENT_VAN, "van", "vans"},
    {AGENT_TRUCK, "truck", "trucks"},
    {AGENT_BUS, "bus", "buses"},
    {AGENT_OBJECT, "object", "objects"},
};

enum { KIND_WORDS = sizeof kind_words / sizeof kind_words[0], VULNERABLE_WORDS = 3 };

/* The most vulnerable kind there is, else the most frequent one. */
static const char *actor_slice(const struct scenario *scenario)
{
    uint32_t count[AGENT_KIND_COUNT];
    const struct kind_word *most = NULL;
    count_kinds(scenario, count);
    for (int i = 0; i < KIND_WORDS; i++) {
        const struct kind_word *word = &kind_words[i];
        if (count[word->kind] > 0 && i < VULNERABLE_WORDS) {
            return word->slice;
        }
        if (count[word->kind] > (most != NULL ? count[most->kind] : 0)) {
            most = word;
        }
    }
    return most != NULL ? most->slice : "none";
}

static void write_prompt(const struct scenario *scenario, char out[LIMIT_PROMPT_BYTES])
{
    uint32_t count[AGENT_KIND_COUNT];
    size_t at = 0;
    count_kinds(scenario, count);
    at += (size_t)snprintf(out, LIMIT_PROMPT_BYTES, "Logged traffic, %s",
                           scenario->slices.value[SLICE_ROAD]);
    for (int i = 0; i < KIND_WORDS; i++) {
        uint32_t found = count[kind_words[i].kind];
        if (found > 0) {
            at += (size_t)snprintf(out + at, LIMIT_PROMPT_BYTES - at, ", %u %s", found,
                                   found == 1 ? kind_words[i].slice : kind_words[i].plural);
        }
    }
    snprintf(out + at, LIMIT_PROMPT_BYTES - at, ".");
}

void cr_tags_read(const struct xml_element *root, const struct cr_map *map,
                  struct scenario *scenario)
{
    static const char *const weather[WEATHER_COUNT] = {"clear", "rain", "heavy_rain", "fog",
                                                       "snow"};
    static const char *const light[LIGHT_COUNT] = {"day", "dusk", "night"};
    struct slices *slices = &scenario->slices;
    const char *benchmark = xml_attribute(root, "benchmarkID");
    read_conditions(root, &scenario->conditions);
    strcpy(slices->value[SLICE_WEATHER], weather[scenario->conditions.weather]);
    strcpy(slices->value[SLICE_LIGHT], light[scenario->conditions.light]);
    strcpy(slices->value[SLICE_ROAD], road_slice(root, map, scenario));
    strcpy(slices->value[SLICE_GEOGRAPHY], geography_slice(benchmark != NULL ? benchmark : ""));
    strcpy(slices->value[SLICE_ACTOR], actor_slice(scenario));
    strcpy(slices->value[SLICE_SCENARIO_TYPE], "commonroad");
    slices->safety_critical = has_tag(root, CR_CRITICAL) || has_tag(root, CR_EVASIVE) ||
                              has_tag(root, CR_CUT_IN) || has_tag(root, CR_ILLEGAL_CUTIN) ||
                              has_tag(root, CR_EMERGENCY_BRAKING);
    write_prompt(scenario, scenario->prompt);
}

/* ---- source ---- */

void cr_source_write(const struct cr_context *context, char out[LIMIT_TEXT_BYTES])
{
    static const char *const texts[CR_NOTE_COUNT] = {
        [CR_NOTE_ORIGIN] = "origin moved",
        [CR_NOTE_LINE_REPAIRED] = "lane lines repaired",
        [CR_NOTE_LANE_SPLIT] = "lanes split where they cross themselves",
        [CR_NOTE_LANE_DROPPED] = "lanelets without length dropped",
        [CR_NOTE_LINK_DROPPED] = "lane links dropped",
        [CR_NOTE_CROSSWALK_DROPPED] = "crosswalks without area dropped",
        [CR_NOTE_SIGNAL_DROPPED] = "traffic lights and signs beyond 64 dropped",
        [CR_NOTE_GIVES_WAY] = "lanes without a sign give way to a priority sign",
        [CR_NOTE_LIGHT_FOR_ALL] = "lights for one direction taken for all of their lane",
        [CR_NOTE_SIZE_CAPPED] = "sizes capped at 50 m",
        [CR_NOTE_NO_PREDICTION] = "agents without prediction go straight on",
        [CR_NOTE_SAMPLES_THINNED] = "trajectories thinned",
        [CR_NOTE_JUMP] = "agents leave where their recording jumps",
        [CR_NOTE_SPEEDS] = "agents with speeds of their places, which their own do not fit",
        [CR_NOTE_HORIZON_CUT] = "horizon cut",
        [CR_NOTE_EGO_MOVED] = "ego moved into the nearest lane",
        [CR_NOTE_LANE_EXTENDED] = "lanes extended where the map ends at ego's start or route",
        [CR_NOTE_EGO_LOG] = "ego's own recording became its log",
        [CR_NOTE_EGO_REVERSES] = "ego's own recording, which reverses, left out",
        [CR_NOTE_LOG_SHRUNK] = "agents shrunk to be off ego's log",
        [CR_NOTE_LOG_TOUCHES] = "agents touch ego's log",
        [CR_NOTE_EGO_SHRUNK] = "ego and agents shrunk to be apart at the start",
        [CR_NOTE_SHRUNK] = "agents shrunk to be apart at the start",
        [CR_NOTE_LATE] = "agents that began in ego's place appear later",
        [CR_NOTE_STANDING] = "overlapping static agents kept as standing recorded ones",
        [CR_NOTE_AGENT_DROPPED] = "agents in ego's place left out",
        [CR_NOTE_FAR_AGENT] = "farthest agents left out",
        [CR_NOTE_GOAL_UNREACHED] = "no lanes lead to the goal, route ends near it",
        [CR_NOTE_GOAL_ANYWHERE] =
            "a goal without a place left out, with its velocity and orientation",
    };
    const char *slash = strrchr(context->name, '/');
    char file[81]; /* names of files may hold any bytes, documents are UTF-8 */
    text_escape(slash != NULL ? slash + 1 : context->name, TEXT_LINE, file, sizeof file);
    size_t at = (size_t)snprintf(out, LIMIT_TEXT_BYTES, "CommonRoad %s, %s",
                                 context->is_2018b ? "2018b" : "2020a", file);
    const char *separator = "; ";
    /* Ego and goal matter most, so they come first where the text is short. */
    for (int i = CR_NOTE_COUNT - 1; i >= 0; i--) {
        char note[96];
        uint32_t count = context->notes.count[i];
        if (count == 0) {
            continue;
        }
        int bytes = count > 1 ? snprintf(note, sizeof note, "%s%s (%u)", separator, texts[i], count)
                              : snprintf(note, sizeof note, "%s%s", separator, texts[i]);
        if (at + (size_t)bytes + 4 > LIMIT_TEXT_BYTES) {
            snprintf(out + at, LIMIT_TEXT_BYTES - at, " ..");
            return;
        }
        at += (size_t)snprintf(out + at, LIMIT_TEXT_BYTES - at, "%s", note);
        separator = ", ";
    }
}
