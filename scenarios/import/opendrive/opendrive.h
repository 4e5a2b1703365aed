/*
 * OpenDRIVE: a road network as its file describes it, and places on it.
 *
 *   opendrive_load -> roads, sections, lanes, links, signals
 *                  -> (road, s, t) or (road, lane, s, offset) <-> x, y, heading; walks along lanes
 *
 * Format: "ASAM OpenDRIVE", versions 1.1 to 1.8. Metres, radians; s along a road's reference line,
 * t to its left; lane ids grow to the left, 0 is the centre. Everything is two-dimensional:
 * elevation, superelevation and shape are noted and ignored. All records live in the network's
 * arena and are immutable; every function is pure. Invariant: geometry is double precision and
 * deterministic (base/dmath.h), spirals within 1e-9 m; what the file lacks is said in the notes,
 * what cannot be read is an error with file, line, element, what was expected and what was found.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_OPENDRIVE_OPENDRIVE_H
#define SWERVE_SCENARIOS_IMPORT_OPENDRIVE_OPENDRIVE_H

#include "base/arena.h"
#include "base/geom.h"
#include "base/status.h"
#include "scenarios/import/right_of_way.h"
#include "schemas/scenario.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPENDRIVE_NONE UINT32_MAX

enum {
    OPENDRIVE_ROADS_MAX = 1 << 16,
    OPENDRIVE_LANES_MAX = 1 << 20,      /* of a network: one per lane and section */
    OPENDRIVE_SECTION_LANES_MAX = 256,  /* of a section, each side */
    OPENDRIVE_LANE_LINKS_MAX = 64,      /* lanes that follow one, or that it follows */
    OPENDRIVE_SAMPLES_MAX = 4 << 20,    /* of all reference lines, for the way back from x, y */
    OPENDRIVE_ARENA_BYTES = 1024 << 20, /* XML tree and network together */
};

/* a + b ds + c ds^2 + d ds^3, ds from s_m on. */
struct opendrive_cubic {
    double s_m;
    double a;
    double b;
    double c;
    double d;
};

struct opendrive_cubics {
    uint32_t count;
    struct opendrive_cubic *items; /* s_m ascending */
};

enum opendrive_shape {
    OPENDRIVE_LINE = 0,
    OPENDRIVE_ARC,
    OPENDRIVE_SPIRAL,
    OPENDRIVE_POLY3,
    OPENDRIVE_PARAM_POLY3,
};

/* One piece of a reference line; opendrive_geometry.c evaluates it. */
struct opendrive_geometry {
    enum opendrive_shape shape;
    double s_m; /* where it begins */
    double length_m;
    struct pose start;
    double curvature_start; /* 1/m */
    double curvature_end;
    double u[4]; /* of poly3 and paramPoly3: coordinates along and across `start`, of p */
    double v[4];
    double p_end;        /* value of p at length_m */
    double p_scale;      /* length_m of the file over the curve's own */
    uint32_t arc_count;  /* pieces of equal p whose lengths are known */
    double *arc_m;       /* [arc_count + 1] curve length up to each, own */
    uint32_t turn_count; /* of spirals that turn by 1 rad or more: pieces of equal length .. */
    struct vec2 *turns; /* [turn_count] .. and where each begins, from `start`; never more turned */
};

/* Who may use a lane. */
enum opendrive_lane_type {
    OPENDRIVE_LANE_NONE = 0, /* nobody: none, median, curb, rail .. */
    OPENDRIVE_LANE_DRIVING,  /* driving, entry, exit, ramps, bus, taxi, HOV, bidirectional .. */
    OPENDRIVE_LANE_SHOULDER, /* shoulder, stop, border, parking, restricted */
    OPENDRIVE_LANE_BIKING,
    OPENDRIVE_LANE_SIDEWALK, /* sidewalk, walking */
};

enum opendrive_mark {
    OPENDRIVE_MARK_UNKNOWN = 0,
    OPENDRIVE_MARK_NONE,
    OPENDRIVE_MARK_BROKEN,
    OPENDRIVE_MARK_SOLID
};

/* A value from s_m on (absolute along the road). */
struct opendrive_speed {
    double s_m;
    double limit_mps; /* 0: none */
};

/* One lane of one section. */
struct opendrive_lane {
    uint32_t road;
    uint32_t section; /* of the network */
    int32_t id;       /* never 0 */
    enum opendrive_lane_type type;
    const char *type_name; /* as written */
    bool against;          /* traffic runs towards smaller s */
    bool is_border;        /* `widths` are distances of the outer border from the centre lane */
    struct opendrive_cubics widths; /* s_m absolute along the road */
    uint32_t speed_count;
    struct opendrive_speed *speeds;
    enum opendrive_mark outer_mark; /* where the section begins */
    uint32_t line;                  /* of the file */
    bool has_predecessor;           /* as written, towards smaller s */
    bool has_successor;
    int32_t predecessor_id;
    int32_t successor_id;
    /* In the direction of travel, over sections, roads and junctions: indices of lanes. */
    uint32_t next_count;
    uint32_t *next;
    uint32_t previous_count;
    uint32_t *previous;
};

/* Lanes of a section from the centre outwards: ids 1, 2 .. and -1, -2 .. */
struct opendrive_section {
    uint32_t road;
    double s_m;
    double end_m;
    uint32_t left_first; /* in network->lanes */
    uint32_t left_count;
    uint32_t right_first;
    uint32_t right_count;
    enum opendrive_mark centre_mark;
};

enum opendrive_contact { OPENDRIVE_CONTACT_NONE = 0, OPENDRIVE_START, OPENDRIVE_END };

/* Neighbour at one end of a road. */
struct opendrive_link {
    uint32_t road;     /* OPENDRIVE_NONE: none */
    uint32_t junction; /* OPENDRIVE_NONE: none */
    enum opendrive_contact contact;
};

struct opendrive_road {
    const char *id;
    const char *name; /* "" where it has none */
    uint32_t line;
    double length_m;
    bool left_hand;    /* rule LHT */
    uint32_t junction; /* that it is part of, OPENDRIVE_NONE: none */
    uint32_t
        second_at; /* junction whose records give it the lower priority, OPENDRIVE_NONE: none */
    struct opendrive_link ends[2]; /* predecessor, successor */
    uint32_t geometry_count;       /* >= 1 */
    struct opendrive_geometry *geometries;
    struct opendrive_cubics offsets; /* laneOffset */
    uint32_t section_first;          /* in network->sections */
    uint32_t section_count;          /* >= 1 */
    uint32_t speed_count;
    struct opendrive_speed *speeds; /* of its types */
    const char *type_name;          /* of the first type: "motorway", "town"; "" */
    uint32_t sample_count;          /* of the reference line, for opendrive_project */
    struct pose *samples;
    double *sample_s_m;
    struct vec2 low; /* bounds of the samples */
    struct vec2 high;
};

struct opendrive_connection {
    uint32_t incoming_road;
    uint32_t connecting_road;
    enum opendrive_contact contact; /* of the connecting road */
};

struct opendrive_junction {
    const char *id;
    uint32_t line;
    uint32_t connection_count;
    struct opendrive_connection *connections;
};

/* Also where another road refers to it: then `reference` is set and s, t, lanes are that road's. */
struct opendrive_signal {
    const char *id;
    const char *name;
    const char *type; /* "1000001": a traffic light in many countries */
    const char *subtype;
    const char *country;
    double value; /* NAN: none */
    bool dynamic;
    bool reference;
    uint32_t road;
    double s_m;
    double t_m;
    int orientation; /* +1: for traffic towards larger s, -1: smaller, 0: both */
    uint32_t line;
    uint32_t lane_count; /* that it is for */
    uint32_t *lanes;     /* indices, all of one section */
    uint32_t controller; /* in network->controllers, OPENDRIVE_NONE: none */
};

struct opendrive_crosswalk {
    uint32_t road;
    uint32_t point_count; /* >= 3 */
    struct vec2 *points;
};

/* Kinds of things that were ignored or repaired, counted. */
enum opendrive_note {
    OPENDRIVE_NOTE_ELEVATION = 0,
    OPENDRIVE_NOTE_SUPERELEVATION,
    OPENDRIVE_NOTE_OBJECT,
    OPENDRIVE_NOTE_GAP,
    OPENDRIVE_NOTE_LENGTH,
    OPENDRIVE_NOTE_ROAD_LENGTH,
    OPENDRIVE_NOTE_LINK,
    OPENDRIVE_NOTE_LINK_FOUND,
    OPENDRIVE_NOTE_WIDTH,
    OPENDRIVE_NOTE_LANE_TYPE,
    OPENDRIVE_NOTE_SIGNAL,
    OPENDRIVE_NOTE_SIGN,      /* these and the next are counted when a map is made */
    OPENDRIVE_NOTE_LIGHT,     /* without lanes */
    OPENDRIVE_NOTE_LANE,      /* that crosses itself or has no length */
    OPENDRIVE_NOTE_SUCCESSOR, /* that begins elsewhere than its lane ends */
    OPENDRIVE_NOTE_CROSSWALK,
    OPENDRIVE_NOTE_COUNT
};

/* A transverse Mercator projection of WGS 84. */
struct opendrive_geo {
    bool known; /* the file has one that is read */
    double meridian_rad;
    double parallel_rad;
    double scale;
    struct vec2 false_m;
};

struct opendrive_name {
    const char *id;
    uint32_t index;
};

struct opendrive_network {
    struct arena arena;
    const char *name; /* of the file, for messages */
    size_t file_bytes;
    uint32_t road_count;
    struct opendrive_road *roads;      /* in file order */
    struct opendrive_name *road_names; /* [road_count] sorted by strcmp */
    uint32_t section_count;
    struct opendrive_section *sections;
    uint32_t lane_count;
    struct opendrive_lane *lanes;
    uint32_t junction_count;
    struct opendrive_junction *junctions;
    uint32_t signal_count;
    struct opendrive_signal *signals;
    uint32_t controller_count;
    const char **controllers; /* ids */
    uint32_t crosswalk_count;
    struct opendrive_crosswalk *crosswalks;
    struct opendrive_geo geo;
    struct vec2 origin; /* whole metres that are subtracted from every place of the file */
    uint32_t notes[OPENDRIVE_NOTE_COUNT];
};

/* ---- opendrive_read.c ---- */

/* From a file or from text of at most LIMIT_XML_BYTES; `name` is for messages. Of a file whose
 * first road begins more than 10 km from zero the origin is moved there. */
enum status opendrive_load_file(const char *path, struct opendrive_network **out,
                                struct error *error);
enum status opendrive_load(const char *name, const char *xml, size_t bytes,
                           struct opendrive_network **out, struct error *error);
void opendrive_destroy(struct opendrive_network *network); /* accepts NULL */

/* ---- opendrive_geo.c ---- */

/* A place on the globe in the plane of the network. False: it has no projection that is read, or
 * not so far from its meridian. */
bool opendrive_geo_place(const struct opendrive_network *network, double latitude_rad,
                         double longitude_rad, struct vec2 *out);

/* ---- opendrive_place.c ---- */

/* Index of the road, OPENDRIVE_NONE: none. */
uint32_t opendrive_road_find(const struct opendrive_network *network, const char *id);

/* Section at s_m (clamped to the road), as an index of network->sections. */
uint32_t opendrive_section_at(const struct opendrive_network *network, uint32_t road, double s_m);

/* Lane with the id in the section at s_m, as an index of network->lanes, OPENDRIVE_NONE: none. */
uint32_t opendrive_lane_find(const struct opendrive_network *network, uint32_t road, double s_m,
                             int32_t lane_id);

/* (road, s, t) to the plane; the heading is that of the reference line, towards larger s. s_m is
 * clamped to the road. */
struct pose opendrive_road_pose(const struct opendrive_network *network, uint32_t road, double s_m,
                                double t_m);
/* Curvature of the reference line, 1/m, left positive. */
double opendrive_curvature(const struct opendrive_network *network, uint32_t road, double s_m);

/* t of a lane's inner and outer border, s_m clamped to the lane's section. */
void opendrive_lane_borders(const struct opendrive_network *network, uint32_t lane, double s_m,
                            double *inner_t_m, double *outer_t_m);
double opendrive_lane_width_m(const struct opendrive_network *network, uint32_t lane, double s_m);
/* t of its centre. */
double opendrive_lane_centre_t_m(const struct opendrive_network *network, uint32_t lane,
                                 double s_m);

/* (lane, s, offset) to the plane; offset_m from the lane's centre, towards larger t. The heading is
 * that of the lane's centre line towards larger s; traffic runs that way, or with lane->against the
 * other. */
struct pose opendrive_lane_pose(const struct opendrive_network *network, uint32_t lane, double s_m,
                                double offset_m);

/* Posted limit of a lane, its road's where it has none; 0: none. */
double opendrive_speed_limit_mps(const struct opendrive_network *network, uint32_t lane,
                                 double s_m);

/* The plane to (s, t) of one road: foot of the perpendicular on the reference line, the nearest
 * one. Beyond the ends s is clamped. Returns the distance that (s, t) misses the point by. */
double opendrive_project(const struct opendrive_network *network, uint32_t road, struct vec2 point,
                         double *s_m, double *t_m);

struct opendrive_place {
    uint32_t road;
    uint32_t lane; /* index of network->lanes, OPENDRIVE_NONE: beside all lanes */
    double s_m;
    double t_m;
    double offset_m;   /* from the lane's centre, towards larger t; 0 without a lane */
    double distance_m; /* from the point to the lane's surface, or to the reference line */
};

/* The plane to the network: the lane that holds the point, driving lanes first, and of several
 * (junctions) the one whose direction of travel is nearest heading_rad (NAN: first in the file). A
 * point beside all lanes: the nearest road within reach_m. False: there is none. */
bool opendrive_locate(const struct opendrive_network *network, struct vec2 point,
                      double heading_rad, double reach_m, struct opendrive_place *out);

/* ---- opendrive_walk.c ---- */

/* Choice where several lanes follow. */
enum opendrive_choice {
    OPENDRIVE_STRAIGHT = 0, /* the smallest change of heading to the end of that lane */
    OPENDRIVE_LEFTMOST,
    OPENDRIVE_RIGHTMOST,
    OPENDRIVE_FIRST, /* first in the file */
};

/* Moves along lanes by distance_m of s, in the direction of travel, or with a negative distance
 * against it, lane->next and lane->previous deciding. *lane and *s_m are changed; returns the
 * distance that was left where a lane has no continuation (then the place is its end). */
double opendrive_walk(const struct opendrive_network *network, uint32_t *lane, double *s_m,
                      double distance_m, enum opendrive_choice choice);

/* The same by metres of the lanes' own middle, which is shorter than the reference line inside of a
 * bend and longer outside. */
double opendrive_walk_lane(const struct opendrive_network *network, uint32_t *lane, double *s_m,
                           double distance_m, enum opendrive_choice choice);

/* Metres of the lane's middle between two places of it. */
double opendrive_lane_way_m(const struct opendrive_network *network, uint32_t lane, double from_m,
                            double to_m);

/* Lanes from one to the other, changes to neighbouring lanes of the same direction included, by the
 * shortest way; `out` is the caller's, [capacity]. Returns their number, 0: there is no way, or it
 * does not fit. */
uint32_t opendrive_route(const struct opendrive_network *network, uint32_t from, uint32_t to,
                         uint32_t *out, uint32_t capacity);

/* Neighbour towards larger t (left true) or smaller, over the centre too; OPENDRIVE_NONE: none. */
uint32_t opendrive_neighbour(const struct opendrive_network *network, uint32_t lane, bool left);

/* ---- opendrive_map.c ---- */

/* Part of a network that becomes a scenario's map. */
struct opendrive_cut {
    struct vec2 low; /* lanes that come into this box are in, whole */
    struct vec2 high;
    struct vec2 origin;         /* subtracted from every coordinate */
    bool priority_to_the_right; /* at junctions where no signal and no record says who goes first */
};

/* Pieces of lanes as lanes of a map: a lane is cut where its section bends far or its posted speed
 * changes. */
struct opendrive_piece {
    uint32_t lane; /* of the network */
    double low_s_m;
    double high_s_m;
};

struct opendrive_map {
    struct map map;                       /* everything in the caller's arena */
    struct opendrive_piece *pieces;       /* [map.lane_count], which lane each one is */
    uint32_t notes[OPENDRIVE_NOTE_COUNT]; /* the network's, and the map's own */
    uint32_t beyond_limit;                /* lights and signs that found the list full */
    struct right_of_way right_of_way;
};

/* Whether maps of both are the same, because the same sections and crosswalks are in. */
bool opendrive_cut_same(const struct opendrive_network *network, const struct opendrive_cut *a,
                        const struct opendrive_cut *b);

/* Lanes that people drive, ride or walk on, with neighbours, successors, markings, limits, traffic
 * lights (which show "off": the format does not say what they show) and crosswalks. Ids are
 * road:section:lane, and :part for those behind the first. STATUS_LIMIT: more lanes or points than
 * a map may have. */
enum status opendrive_map_make(const struct opendrive_network *network,
                               const struct opendrive_cut *cut, struct arena *arena,
                               struct opendrive_map *out, struct error *error);

/* Lane of the map that holds a place, OPENDRIVE_NONE: none. */
uint32_t opendrive_map_lane(const struct opendrive_map *map, uint32_t lane, double s_m);

/* ---- opendrive_import.c ---- */

/* A place as people name it. */
struct opendrive_address {
    const char *road; /* NULL: not given */
    int32_t lane_id;
    double s_m;
};

struct opendrive_options {
    struct opendrive_address from; /* not given: on the longest driving lane, where it begins */
    struct opendrive_address to;   /* not given: straight on */
    double speed_mps;              /* NAN: the posted limit */
    double reach_m;                /* of the map, beside ego's way */
    double horizon_s;              /* NAN: enough for the way */
    bool priority_to_the_right;    /* opendrive_cut has it */
    bool fit_speed;                /* at the start no faster than bends hold */
};
#define OPENDRIVE_OPTIONS \
    ((struct opendrive_options){.speed_mps = NAN, .reach_m = 200, .horizon_s = NAN})

/* A scenario with ego alone on the network, as a resolved JSON document, malloc'ed. */
enum status import_opendrive(const char *name, const char *xml, size_t bytes,
                             const struct opendrive_options *options, char **text,
                             struct error *error);

/* Counts of notes in words: "elevation ignored (12), .."; "" where there are none. */
void opendrive_notes_write(const uint32_t notes[OPENDRIVE_NOTE_COUNT], char *out, size_t capacity);

#endif
