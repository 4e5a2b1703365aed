/*
 * OpenDRIVE, private to opendrive*.c: reading a tree of elements into the records of opendrive.h.
 *
 * The tree lives in an arena of its own and is gone once the network is complete; what the network
 * keeps of it is copied. Invariant: counts are bounded by the elements of the file, which the XML
 * reader bounds; numbers are finite and within the bounds below.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_OPENDRIVE_OPENDRIVE_INTERNAL_H
#define SWERVE_SCENARIOS_IMPORT_OPENDRIVE_OPENDRIVE_INTERNAL_H

#include "scenarios/import/commonroad_xml.h"
#include "scenarios/import/opendrive/opendrive.h"

#define OD_COORDINATE_MAX_M 1e8
#define OD_ORIGIN_MOVE_M 1e4 /* coordinates beyond this lose precision in the worlds */
#define OD_LENGTH_MAX_M 1e6
#define OD_CURVATURE_MAX_PM 1e6
#define OD_TURN_MAX_RAD 1000.0 /* of one geometry */
#define OD_COEFFICIENT_MAX 1e30
#define OD_WIDTH_MAX_M 1e4
#define OD_TOUCH_M 0.1 /* lanes whose borders are nearer meet */

/* The elements that are read, in strcmp order of their names. */
enum od_tag {
    OD_OPEN_DRIVE = 0,
    OD_ARC,
    OD_BORDER,
    OD_CENTER,
    OD_CONNECTION,
    OD_CONTROL,
    OD_CONTROLLER,
    OD_CORNER_LOCAL,
    OD_CORNER_ROAD,
    OD_ELEVATION,
    OD_ELEVATION_PROFILE,
    OD_GEO_REFERENCE,
    OD_GEOMETRY,
    OD_HEADER,
    OD_JUNCTION,
    OD_LANE,
    OD_LANE_LINK,
    OD_LANE_OFFSET,
    OD_LANE_SECTION,
    OD_LANES,
    OD_LATERAL_PROFILE,
    OD_LEFT,
    OD_LINE,
    OD_LINK,
    OD_OBJECT,
    OD_OBJECTS,
    OD_OFFSET,
    OD_OUTLINE,
    OD_OUTLINES,
    OD_PARAM_POLY3,
    OD_PLAN_VIEW,
    OD_POLY3,
    OD_PREDECESSOR,
    OD_PRIORITY,
    OD_RIGHT,
    OD_ROAD,
    OD_ROAD_MARK,
    OD_SHAPE,
    OD_SIGNAL,
    OD_SIGNAL_REFERENCE,
    OD_SIGNALS,
    OD_SPEED,
    OD_SPIRAL,
    OD_SUCCESSOR,
    OD_SUPERELEVATION,
    OD_TYPE,
    OD_VALIDITY,
    OD_WIDTH,
    OD_TAG_COUNT
};

extern const char *const od_tag_names[OD_TAG_COUNT];

/* Ids as the file spells them, until all roads and junctions are known. */
struct od_road_source {
    const struct xml_element *element;
    const char *junction;
    const struct xml_element *links[2]; /* <predecessor>, <successor> of the road */
};

struct od_reader {
    struct opendrive_network *network;
    const struct xml_element *root;
    struct od_road_source *sources; /* [road_count] */
    struct arena *tree;
    struct error *error;
    uint64_t sample_count;
    struct pose offset; /* of the header: added to every place, then turned by the heading */
    bool moves;         /* the network's origin, where the first place is far from zero */
};

/* ---- opendrive_values.c ---- */

/* "name: line N: <tag>: text". */
enum status od_fail(const struct od_reader *reader, const struct xml_element *element,
                    enum status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Memory of the network's arena; NULL with the error set. */
void *od_alloc(const struct od_reader *reader, size_t count, size_t size);
/* A copy in the network's arena, NULL with the error set. `text` NULL is "". */
const char *od_copy(const struct od_reader *reader, const char *text);
/* A plain decimal number, white space around it apart. */
bool od_parse_number(const char *text, double *out);
bool od_parse_int(const char *text, int32_t *out);
/* The attribute, which must be there and within the bounds. */
enum status od_number(const struct od_reader *reader, const struct xml_element *element,
                      const char *attribute, double min, double max, double *out);
/* The same; left alone where there is none. */
enum status od_optional(const struct od_reader *reader, const struct xml_element *element,
                        const char *attribute, double min, double max, double *out);
enum status od_int(const struct od_reader *reader, const struct xml_element *element,
                   const char *attribute, int32_t *out);
/* The attribute, which must be there and not empty. */
enum status od_text(const struct od_reader *reader, const struct xml_element *element,
                    const char *attribute, const char **out);
enum status od_required(const struct od_reader *reader, const struct xml_element *element,
                        enum od_tag tag, const struct xml_element **out);
/* All children with the tag as polynomials; `key` is the attribute of their beginning, which
 * from_m is added to. Sorted by s. */
enum status od_cubics(const struct od_reader *reader, const struct xml_element *parent,
                      enum od_tag tag, const char *key, double from_m,
                      struct opendrive_cubics *out);
/* By s, whatever their order in the file. */
void od_speeds_sort(struct opendrive_speed *speeds, uint32_t count);
/* The child with the smallest `key`, 0 where it has none, not the first in the file; NULL: none. */
const struct xml_element *od_first(const struct xml_element *element, enum od_tag tag,
                                   const char *key);
/* <speed> to metres per second; 0: no limit. */
enum status od_speed(const struct od_reader *reader, const struct xml_element *element,
                     double *out);
/* Value and slope at s_m; before the first record its first value, 0 without records. Records that
 * begin at end_m or behind it are others': a section ends with what held in it. */
double od_cubics_at(const struct opendrive_cubics *cubics, double s_m, double end_m, double *slope);

/* ---- opendrive_geo.c ---- */

/* The header's <geoReference>. */
void od_geo_read(struct od_reader *reader);

/* ---- opendrive_geometry.c ---- */

/* Fills in what is computed of curve lengths (`u`, `v`, length_m and p_end are set). False: the
 * curve has no length. */
bool od_geometry_prepare(const struct od_reader *reader, struct opendrive_geometry *geometry);
/* Pose and curvature ds_m behind its beginning; straight on behind its end. */
void od_geometry_at(const struct opendrive_geometry *geometry, double ds_m, struct pose *pose,
                    double *curvature);
/* Number of samples that it takes to look like itself. */
uint32_t od_geometry_samples(const struct opendrive_geometry *geometry);

/* ---- opendrive_road.c, opendrive_lane.c ---- */

enum status od_roads_read(struct od_reader *reader);
enum status od_plan_read(struct od_reader *reader, const struct xml_element *element,
                         struct opendrive_road *road);
enum status od_lanes_read(struct od_reader *reader, const struct xml_element *element,
                          uint32_t road);

/* ---- opendrive_link.c ---- */

enum status od_links_read(struct od_reader *reader);

/* ---- opendrive_signal.c ---- */

enum status od_signals_read(struct od_reader *reader);

/* ---- opendrive_place.c ---- */

/* Lane with the id in a section. OPENDRIVE_NONE. */
uint32_t od_lane_in(const struct opendrive_network *network, uint32_t section, int32_t lane_id);
const struct opendrive_geometry *od_geometry_find(const struct opendrive_road *road, double s_m);
/* Pose of the reference line, and its curvature. */
struct pose od_reference_pose(const struct opendrive_road *road, double s_m, double *curvature);
/* Pose of a lane's centre, and its width there. */
struct pose od_lane_look(const struct opendrive_network *network, uint32_t lane, double s_m,
                         double *width_m);

#endif
