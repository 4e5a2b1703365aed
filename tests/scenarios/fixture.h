/*
 * Fixture: one valid scenario document that uses every member, and how to change it: a place is
 * written as in error messages ("$.agents[1].pose.x_m"). For the tests of this room; each program
 * includes it once.
 */
#ifndef SWERVE_TESTS_SCENARIOS_FIXTURE_H
#define SWERVE_TESTS_SCENARIOS_FIXTURE_H

#include "base/check.h"
#include "scenarios/resolve.h"
#include "tests/harness.h"

#include <stdlib.h>

/* Single quotes stand for double ones. Two lanes east side by side, one that follows, one west. */
static const char *const fixture_text =
    "{'id':'fixture','title':'At {gap_m} m','source':'by hand','prompt':'A car ahead.',"
    "'parameters':{'gap_m':40,'speed_mps':'=50/3.6','far_m':'=gap_m*2','sky':'rain'},"
    "'map':{'id':'road','lanes':["
    "{'id':'east','kind':'driving','centre_line':[[0,0],[100,0],[200,0]],'width_m':3.5,"
    "'speed_limit_mps':13.9,'left':'fast','right':null,'successors':['next'],"
    "'left_marking':'dashed','right_marking':'solid','intersection':false},"
    "{'id':'fast','centre_line':{'beside':'east','offset_m':3.5,'reverse':false},"
    "'width_m':[3.5,3.4,3.5],'right':'east','left':'west','left_opposite':true,"
    "'right_opposite':false},"
    "{'id':'west','centre_line':[[200,7],[0,7]],'left':'fast','left_opposite':true},"
    "{'id':'next','centre_line':{'start':[200,0,0],'segments':[{'line_m':50},"
    "{'line_m':40,'shift_m':2},{'arc_m':60,'radius_m':-80}],'step_m':4}},"
    "{'id':'walk','kind':'sidewalk','centre_line':[[0,-4],[200,-4]],'width_m':2}],"
    "'drivable':[[[0,-8],[20,-8],[20,-6]]],"
    "'crosswalks':[{'lane':'east','start_m':90,'end_m':94,'left_m':5,'right_m':2}],"
    "'surfaces':[{'kind':'ice','friction':0.2,'area':[[120,-2],[130,-2],[130,2]]}],"
    "'signals':[{'id':'lamp','lanes':['west'],'stop_m':2,'offset_s':1,'repeats':true,"
    "'phases':[{'light':'green','duration_s':20},{'light':'red','duration_s':9}]}]},"
    "'ego':{'pose':{'lane':'east','s_m':20,'offset_m':0.1,'heading_offset_rad':0.01},"
    "'speed_mps':'=speed_mps','length_m':4.8,'width_m':1.9,'height_m':1.5,'wheelbase_m':2.8,"
    "'route':['east','next'],'goal':{'lane':'next','s_m':30,'offset_m':0,'radius_m':4},"
    "'log':[[0,20,0,0,10],[1,30,0,0,10]]},"
    "'agents':["
    "{'id':'lead','kind':'car','length_m':4.5,'width_m':1.8,'height_m':1.5,"
    "'pose':{'x_m':'=25+gap_m','y_m':0,'heading_rad':0},'speed_mps':8,'hidden':false,'low':false,"
    "'behaviour':'idm','idm':{'desired_speed_mps':10,'time_headway_s':1.4,'min_gap_m':2,"
    "'accel_max_mps2':1.5,'decel_comfort_mps2':2,'politeness':0.2,'lane_changes':true,"
    "'sees_ego':false},'route':['east','next']},"
    "{'id':'walker','kind':'pedestrian','pose':{'lane':'east','s_m':'=20+far_m','offset_m':-5},"
    "'behaviour':'script','manoeuvres':["
    "{'when':'ego_tta','value':3,'do':'path','path':[{'lane':'east','s_m':100,'offset_m':-5},"
    "[100,5]],'speed_mps':1.5,'rate_mps2':3},"
    "{'when':'after','value':1,'do':'speed','speed_mps':0,'rate_mps2':1},"
    "{'when':'ego_passed','value':-2,'do':'lane_change','offset_m':1,'duration_s':2},"
    "{'when':'time','value':9,'do':'vanish'},{'when':'ego_distance','value':5,'do':'appear'}]},"
    "{'id':'logged','kind':'cyclist','behaviour':'replay',"
    "'trajectory':[[0,50,7,3.1,4],[2,42,7,3.1,4]]},"
    "{'id':'ghost','kind':'animal','hidden':true,'pose':{'x_m':60,'y_m':0,'heading_rad':1},"
    "'behaviour':'static'}],"
    "'conditions':{'weather':'=sky','light':'dusk','friction':0.65,'visibility_m':110},"
    "'slices':{'weather':'rain','light':'dusk','road':'urban','geography':'europe','actor':'car',"
    "'scenario_type':'fixture','safety_critical':true},"
    "'horizon_s':12.5,'question':'planning',"
    "'criteria':{'no_at_fault_collision':true,'no_collision':true,'stay_drivable':true,"
    "'right_direction':true,'reach_goal':true,'comfortable':false,'min_ttc_s':0.9,"
    "'min_distance_m':0.5,'impact_speed_max_mps':3,'progress_min':0.5,'score_min':0.4,"
    "'speed_max_mps':20,'expected_progress_m':120},"
    "'branches':["
    "{'id':'brake','at_tick':20,'interventions':[{'kind':'ego_brake','tick':20,'decel_mps2':5},"
    "{'kind':'ego_planner','tick':40}]},"
    "{'id':'swerve','at_tick':20,'interventions':[{'kind':'ego_swerve','offset_m':2,"
    "'duration_s':1.5}]},"
    "{'id':'hold','at_tick':0,'interventions':[{'kind':'ego_maintain'}]},"
    "{'id':'given','at_tick':5,'interventions':[{'kind':'ego_actions','actions':[[-1,0],"
    "[0,0.05]]}]},"
    "{'id':'others','at_tick':10,'interventions':[{'kind':'agent_brake','agent':'lead',"
    "'decel_mps2':4},{'kind':'agent_cut_in','agent':'lead','duration_s':2},"
    "{'kind':'agent_appear','tick':12,'agent':'ghost'},"
    "{'kind':'conditions','tick':12,'conditions':{'weather':'snow'}},"
    "{'kind':'signal','tick':13,'signal':'lamp','light':'yellow'}]},"
    "{'id':'stack','at_tick':10,'interventions':[{'kind':'stack_latency','latency_ms':120,"
    "'jitter_ms':20},{'kind':'stack_dropout','sensors':['lidar','camera_front'],"
    "'duration_s':2}]}]}";

/* Parses JSON in which single quotes stand for double ones. */
static inline json_t *fixture_json(const char *text)
{
    size_t bytes = strlen(text);
    char *copy = malloc(bytes + 1);
    EXPECT(copy != NULL);
    for (size_t i = 0; i <= bytes; i++) {
        copy[i] = text[i] == '\'' ? '"' : text[i];
    }
    json_error_t error;
    json_t *value = json_loads(copy, JSON_DECODE_ANY, &error);
    free(copy);
    if (value == NULL) {
        TEST_FAIL("the test's own JSON is wrong at %d: %s", error.position, error.text);
    }
    return value;
}

/* One step of a place: ".key" or "[index]"; moves *place on. Returns a key (in `key`) or NULL and
 * the index. */
static inline bool fixture_step(const char **place, char key[64], size_t *index)
{
    const char *at = *place;
    size_t used = 0;
    if (*at == '[') {
        *index = strtoul(at + 1, (char **)&at, 10);
        *place = at + 1;
        return false;
    }
    for (at++; *at != '\0' && *at != '.' && *at != '[' && used < 63; at++) {
        key[used++] = *at;
    }
    key[used] = '\0';
    *place = at;
    return true;
}

/* Puts `value` (consumed; NULL: removes) at the place below root. */
static inline void fixture_set(json_t *root, const char *place, json_t *value)
{
    json_t *at = root;
    const char *rest = place + 1; /* after the $ */
    for (;;) {
        char key[64];
        size_t index = 0;
        bool named = fixture_step(&rest, key, &index);
        EXPECT(at != NULL);
        if (*rest != '\0') {
            at = named ? json_object_get(at, key) : json_array_get(at, index);
        } else if (value == NULL) {
            EXPECT_INT(named ? json_object_del(at, key) : json_array_remove(at, index), 0);
            return;
        } else if (named) {
            EXPECT_INT(json_object_set_new(at, key, value), 0);
            return;
        } else if (index == json_array_size(at)) {
            EXPECT_INT(json_array_append_new(at, value), 0);
            return;
        } else {
            EXPECT_INT(json_array_set_new(at, index, value), 0);
            return;
        }
    }
}

/* Loads a parsed document under the name "doc". */
static inline enum status fixture_load(const json_t *root, struct scenario_document **out,
                                       struct error *error)
{
    struct json_cursor written = json_cursor_root("doc", root);
    return scenario_load_written(&written, NULL, out, error);
}

#endif
