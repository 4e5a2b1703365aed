/*
 * OpenDRIVE: places on the globe to the plane of a file, as its <geoReference> projects them.
 *
 * Read are transverse Mercator and UTM on the ellipsoid of WGS 84, the words that PROJ knows. The
 * series is Krueger's in the third flattening, to its fourth power (Karney, Transverse Mercator
 * with an accuracy of a few nanometers, J. Geodesy 85, 2011, section 4): within a micrometre of
 * the projection as far as 20 degrees from the meridian.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RADIUS_M 6378137.0
#define FLATTENING (1 / 298.257223563)
#define RAD_PER_DEG (PI_RAD / 180)
#define REACH_RAD (20 * RAD_PER_DEG)
#define SPACE " \t\r\n"
enum { TERMS = 4 };

/* Number behind "+name=", `fallback` where there is none, NAN where it goes on in degrees and
 * minutes. */
static double word_number(const char *text, const char *name, double fallback)
{
    const char *at = strstr(text, name);
    char *end;
    if (at == NULL) {
        return fallback;
    }
    double value = strtod(at + strlen(name), &end);
    return *end == '\0' || strchr(SPACE, *end) != NULL ? value : NAN;
}

/* Whether every word is of a projection that is read, in metres on WGS 84, or changes nothing. */
static bool words_are_known(const char *at)
{
    static const char words[] =
        "+proj=tmerc +proj=utm +zone= +south +lat_0= +lon_0= +k= +k_0= +x_0= +y_0= +z_0= +units=m "
        "+ellps=WGS84 +ellps=GRS80 +datum=WGS84 +towgs84=0,0,0 +towgs84=0,0,0,0,0,0,0 +to_meter=1 "
        "+nadgrids=@null +axis=enu +pm=0 +pm=greenwich +vunits= +geoidgrids= +type=crs +no_defs "
        "+wktext ";
    for (at += strspn(at, SPACE); *at != '\0'; at += strspn(at, SPACE)) {
        size_t bytes = strcspn(at, SPACE);
        bool known = false;
        for (const char *word = words; *word != '\0'; word += strcspn(word, " ") + 1) {
            size_t own = strcspn(word, " ");
            bool any = word[own - 1] == '='; /* whatever its value */
            known = known || (strncmp(at, word, own) == 0 && (own == bytes || any));
        }
        if (!known) {
            return false;
        }
        at += bytes;
    }
    return true;
}

void od_geo_read(struct od_reader *reader)
{
    const struct xml_element *header = xml_child(reader->root, OD_HEADER);
    const struct xml_element *at = header != NULL ? xml_child(header, OD_GEO_REFERENCE) : NULL;
    const char *text = at != NULL ? at->text : "";
    struct opendrive_geo *geo = &reader->network->geo;
    if (strstr(text, "+proj=utm") != NULL) {
        bool south = strstr(text, "+south") != NULL;
        geo->meridian_rad = (word_number(text, "+zone=", NAN) * 6 - 183) * RAD_PER_DEG;
        geo->scale = 0.9996;
        geo->false_m = (struct vec2){500000, south ? 10000000 : 0};
    } else {
        geo->meridian_rad = word_number(text, "+lon_0=", 0) * RAD_PER_DEG;
        geo->parallel_rad = word_number(text, "+lat_0=", 0) * RAD_PER_DEG;
        geo->scale = word_number(text, "+k=", word_number(text, "+k_0=", 1));
        geo->false_m = (struct vec2){word_number(text, "+x_0=", 0), word_number(text, "+y_0=", 0)};
        geo->known = strstr(text, "+proj=tmerc") != NULL;
    }
    geo->known = (geo->known || strstr(text, "+proj=utm") != NULL) && words_are_known(text) &&
                 isfinite(geo->meridian_rad + geo->parallel_rad + geo->false_m.x_m) &&
                 isfinite(geo->false_m.y_m) && geo->scale > 0;
}

static double atanh_of(double x)
{
    return dmath_log((1 + x) / (1 - x)) / 2;
}

/* From the meridian at the equator, without the false place. */
static struct vec2 project(double scale, double latitude_rad, double east_rad)
{
    double n = FLATTENING / (2 - FLATTENING);
    double n2 = n * n;
    const double alpha[TERMS] = {
        n / 2 - 2 * n2 / 3 + 5 * n2 * n / 16 + 41 * n2 * n2 / 180,
        13 * n2 / 48 - 3 * n2 * n / 5 + 557 * n2 * n2 / 1440,
        61 * n2 * n / 240 - 103 * n2 * n2 / 140,
        49561 * n2 * n2 / 161280,
    };
    double sine = dmath_sin(latitude_rad);
    double third = 2 * sqrt(n) / (1 + n);
    double grown = dmath_exp(atanh_of(sine) - third * atanh_of(third * sine));
    double t = (grown - 1 / grown) / 2;
    double xi = dmath_atan2(t, dmath_cos(east_rad));
    double eta = atanh_of(dmath_sin(east_rad) / sqrt(1 + t * t));
    struct vec2 out = {eta, xi};
    for (int j = 1; j <= TERMS; j++) {
        double e = dmath_exp(2 * j * eta);
        out.x_m += alpha[j - 1] * dmath_cos(2 * j * xi) * (e - 1 / e) / 2;
        out.y_m += alpha[j - 1] * dmath_sin(2 * j * xi) * (e + 1 / e) / 2;
    }
    double radius_m = scale * RADIUS_M / (1 + n) * (1 + n2 / 4 + n2 * n2 / 64);
    return (struct vec2){out.x_m * radius_m, out.y_m * radius_m};
}

bool opendrive_geo_place(const struct opendrive_network *network, double latitude_rad,
                         double longitude_rad, struct vec2 *out)
{
    const struct opendrive_geo *geo = &network->geo;
    double east_rad = dmath_wrap_angle(longitude_rad - geo->meridian_rad);
    if (!geo->known || fabs(east_rad) > REACH_RAD || fabs(latitude_rad) >= PI_RAD / 2) {
        return false;
    }
    struct vec2 place = project(geo->scale, latitude_rad, east_rad);
    struct vec2 origin = project(geo->scale, geo->parallel_rad, 0);
    *out = (struct vec2){geo->false_m.x_m + place.x_m - network->origin.x_m,
                         geo->false_m.y_m + place.y_m - origin.y_m - network->origin.y_m};
    return true;
}
