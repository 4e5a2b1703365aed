/*
 * Lenses on standard input and output, for scripts/compare/lenses.py: RIG.json as the argument,
 * then lines "CAMERA x y z", a direction in the frame of camera number CAMERA. Prints "u v x y z",
 * the pixel where it lands and the direction of length 1 that this pixel looks in, or "none".
 */
#include "engine/lens/lens.h"
#include "schemas/rig/rig.h"

#include <stdio.h>

static struct rig rig;

int main(int argc, char **argv)
{
    struct lens lenses[RIG_CAMERAS_MAX];
    struct error error;
    unsigned camera;
    struct vec3 direction;
    if (argc != 2) {
        fprintf(stderr, "usage: lenses RIG.json\n");
        return 2;
    }
    enum status status = rig_read(argv[1], &rig, NULL, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < rig.camera_count; i++) {
        status = lens_init(&rig.cameras[i], &lenses[i], &error);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "lenses: %s\n", error.text);
        return 1;
    }
    while (scanf("%u %lf %lf %lf", &camera, &direction.x, &direction.y, &direction.z) == 4) {
        double u;
        double v;
        struct vec3 back;
        if (camera < rig.camera_count && lens_project(&lenses[camera], direction, &u, &v) &&
            lens_direction(&lenses[camera], u, v, &back)) {
            printf("%.17g %.17g %.17g %.17g %.17g\n", u, v, back.x, back.y, back.z);
        } else {
            printf("none\n");
        }
    }
    return 0;
}
