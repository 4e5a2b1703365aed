/*
 * OpenDRIVE fixture: hand-made roads of the tests, and files written out in a test.
 */
#ifndef SWERVE_TESTS_SCENARIOS_OPENDRIVE_FIXTURE_H
#define SWERVE_TESTS_SCENARIOS_OPENDRIVE_FIXTURE_H

#include "scenarios/import/opendrive/opendrive.h"
#include "tests/harness.h"

/* A file of that folder, by its name; the test ends where it cannot be read. */
static inline struct opendrive_network *roads_load(const char *folder, const char *name)
{
    char path[1024];
    struct error error;
    struct opendrive_network *network = NULL;
    snprintf(path, sizeof path, "%s/%s.xodr", folder, name);
    EXPECT_OK(opendrive_load_file(path, &network, &error), error);
    return network;
}

static inline enum status roads_try(const char *text, struct opendrive_network **out,
                                    struct error *error)
{
    *out = NULL;
    memset(error, 0, sizeof *error);
    return opendrive_load("f.xodr", text, strlen(text), out, error);
}

/* A road of one straight lane to each side, with what is given in place of parts of it. */
#define ROAD_HEAD                                                                  \
    "<OpenDRIVE><header/><road id=\"1\" length=\"100\" junction=\"-1\"><planView>" \
    "<geometry s=\"0\" x=\"0\" y=\"0\" hdg=\"0\" length=\"100\">"
#define ROAD_LANES                                                                        \
    "</geometry></planView><lanes><laneSection s=\"0\"><left><lane id=\"1\" "             \
    "type=\"driving\"><width sOffset=\"0\" a=\"3\" b=\"0\" c=\"0\" d=\"0\"/></lane>"      \
    "</left><center><lane id=\"0\"/></center><right><lane id=\"-1\" type=\"driving\">"    \
    "<width sOffset=\"0\" a=\"3\" b=\"0\" c=\"0\" d=\"0\"/></lane></right></laneSection>" \
    "</lanes>"
#define ROAD_TAIL "</road></OpenDRIVE>"

#endif
