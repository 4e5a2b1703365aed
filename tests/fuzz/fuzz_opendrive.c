/*
 * Fuzz target: OpenDRIVE files. What is read is walked and looked up everywhere and must stay
 * finite; what is imported must load again; what is refused must say where in the file.
 */
#include "scenarios/import/opendrive/opendrive.h"
#include "tests/fuzz/imported.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void look_around(const struct opendrive_network *network)
{
    for (uint32_t i = 0; i < network->lane_count && i < 64; i++) {
        const struct opendrive_section *section = &network->sections[network->lanes[i].section];
        double s_m = (section->s_m + section->end_m) / 2;
        struct pose pose = opendrive_lane_pose(network, i, s_m, 0.5);
        struct opendrive_place place;
        CHECK(isfinite(pose.x_m) && isfinite(pose.y_m) && isfinite(pose.heading_rad));
        CHECK(isfinite(opendrive_lane_width_m(network, i, s_m)));
        if (opendrive_locate(network, (struct vec2){pose.x_m, pose.y_m}, NAN, 5, &place)) {
            CHECK(place.road < network->road_count && isfinite(place.s_m) && isfinite(place.t_m));
        }
        uint32_t lane = i;
        double rest_m = opendrive_walk(network, &lane, &s_m, i % 2 == 0 ? 300 : -300,
                                       (enum opendrive_choice)(i % 4));
        CHECK(lane < network->lane_count && rest_m >= 0 && rest_m <= 300);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct error error = {0};
    struct opendrive_network *network = NULL;
    struct opendrive_options options = OPENDRIVE_OPTIONS;
    const char *xml = (const char *)data;
    char *text = NULL;
    options.priority_to_the_right = bytes % 2 == 0;
    if (opendrive_load("input.xodr", xml, bytes, &network, &error) != STATUS_OK) {
        CHECK(strncmp(error.text, "input.xodr: ", 12) == 0);
        CHECK(strstr(error.text, "expected ") != NULL);
        return 0;
    }
    look_around(network);
    opendrive_destroy(network);
    if (import_opendrive("input.xodr", xml, bytes, &options, &text, &error) != STATUS_OK) {
        CHECK(strncmp(error.text, "input.xodr: ", 12) == 0);
        CHECK(strstr(error.text, "expected ") != NULL && text == NULL);
        return 0;
    }
    imported_loads(text);
    return 0;
}
