/*
 * Goal: a filled shape covers its area and nothing else, dashes cover half of a line, words their
 * dots, an animated PNG's parts are those that changed, and no place, however far off or not a
 * number at all, writes outside of the picture.
 * Method: random shapes in black on white, whose darkness summed up is compared with the area by
 * the shoelace formula; extreme places under the sanitizers of the debug builds.
 */
#include "base/rng.h"
#include "report/draw/apng.h"
#include "report/draw/painter.h"
#include "tests/harness.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 64, SHAPES = 300 };

static const struct colour white = {255, 255, 255, 1};
static const struct colour black = {0, 0, 0, 1};

static double darkness(const struct painter *painter)
{
    double sum = 0;
    for (size_t i = 0; i < (size_t)painter->width * painter->height; i++) {
        EXPECT_INT(painter->rgb[3 * i], painter->rgb[3 * i + 1]);
        EXPECT_INT(painter->rgb[3 * i], painter->rgb[3 * i + 2]);
        sum += (255 - painter->rgb[3 * i]) / 255.0;
    }
    return sum;
}

static void setup(struct painter *painter)
{
    struct error error;
    EXPECT_OK(painter_init(painter, SIDE, SIDE, false, white, &error), error);
}

static void triangles_cover_their_area(void)
{
    struct painter painter;
    setup(&painter);
    for (uint32_t n = 0; n < SHAPES; n++) {
        struct vec2 p[3];
        for (uint32_t i = 0; i < 3; i++) {
            p[i] = (struct vec2){SIDE * rng_uniform(n, RNG_STREAM_TEST, i, 0),
                                 SIDE * rng_uniform(n, RNG_STREAM_TEST, i, 1)};
        }
        double area = fabs((p[1].x_m - p[0].x_m) * (p[2].y_m - p[0].y_m) -
                           (p[2].x_m - p[0].x_m) * (p[1].y_m - p[0].y_m)) /
                      2;
        double around = hypot(p[1].x_m - p[0].x_m, p[1].y_m - p[0].y_m) +
                        hypot(p[2].x_m - p[1].x_m, p[2].y_m - p[1].y_m) +
                        hypot(p[0].x_m - p[2].x_m, p[0].y_m - p[2].y_m);
        painter_clear(&painter, white);
        painter_polygon(&painter, p, 3, black);
        /* Four samples a pixel down: an edge is off by far less than an eighth of its length. */
        EXPECT_NEAR(darkness(&painter), area, 0.05 * around + 0.5);
    }
    painter_finish(&painter);
}

static void lines_cover_their_width_and_dashes_half_of_it(void)
{
    struct painter painter;
    const struct vec2 bent[3] = {{4, 10}, {44, 10}, {44, 50}};
    setup(&painter);
    painter_line(&painter, bent, 3, 2, 0, black);
    EXPECT_NEAR(darkness(&painter), 80 * 2, 4);
    painter_clear(&painter, white);
    painter_line(&painter, bent, 3, 2, 4, black);
    EXPECT_NEAR(darkness(&painter), 40 * 2, 4);
    painter_finish(&painter);
}

static void words_have_their_dots(void)
{
    struct painter painter;
    uint32_t dots = 0;
    setup(&painter);
    for (int r = 0; r < 7; r++) {
        dots += (uint32_t)__builtin_popcount(painter_glyph('A')[r]);
    }
    painter_text(&painter, 10, 30, 7, black, "A");
    EXPECT_NEAR(darkness(&painter), dots, 0.1);
    for (int c = 1; c < 256; c++) {
        uint32_t rows = 0;
        for (int r = 0; r < 7; r++) {
            rows += painter_glyph((unsigned char)c)[r];
        }
        EXPECT((rows > 0) == (c != ' '));
    }
    for (int c = 'a'; c <= 'z'; c++) {
        EXPECT(memcmp(painter_glyph((unsigned char)c), painter_glyph((unsigned char)(c - 32)), 7) !=
               0);
    }
    painter_finish(&painter);
}

static void no_place_is_outside_of_memory(void)
{
    static const double odd[] = {NAN,  INFINITY, -INFINITY, 1e308, -1e308,   1e30,   -1e30, 1e9,
                                 -1e9, -1,       0,         SIDE,  SIDE + 1, 1e-308, 31.5};
    enum { ODD = sizeof odd / sizeof odd[0] };
    struct painter painter;
    setup(&painter);
    for (uint32_t n = 0; n < 4000; n++) {
        struct vec2 p[4];
        for (uint32_t i = 0; i < 4; i++) {
            p[i] = (struct vec2){odd[(uint32_t)(ODD * rng_uniform(n, RNG_STREAM_TEST, i, 0))],
                                 odd[(uint32_t)(ODD * rng_uniform(n, RNG_STREAM_TEST, i, 1))]};
        }
        painter_polygon(&painter, p, 4, black);
        painter_line(&painter, p, 4, 3, n % 3, black);
        painter_circle(&painter, p[0], p[1].x_m, 1, black);
        painter_text(&painter, p[2].x_m, p[2].y_m, 9, black, "A\xc3\xa9_");
    }
    EXPECT(!painter.failed);
    painter_finish(&painter);
}

/* Bytes of the animation after a frame was added. */
static long add(struct apng *apng, const uint8_t *rgb)
{
    struct error error;
    EXPECT_OK(apng_add(apng, rgb, &error), error);
    return ftell(apng->out);
}

static void frames_hold_what_changed(void)
{
    static uint8_t rgb[SIDE * SIDE * 3];
    struct error error;
    struct apng apng = {.out = tmpfile(),
                        .place = "memory",
                        .width = SIDE,
                        .height = SIDE,
                        .frames_a_second = 10,
                        .frame_count = 4};
    EXPECT(apng.out != NULL);
    for (size_t i = 0; i < sizeof rgb; i++) {
        rgb[i] = (uint8_t)(255 * rng_uniform(i, RNG_STREAM_TEST, 0, 0)); /* noise does not pack */
    }
    EXPECT_OK(apng_begin(&apng, &error), error);
    long start = ftell(apng.out);
    long whole = add(&apng, rgb) - start;
    long same = add(&apng, rgb) - start - whole;
    rgb[(SIDE * 10 + 20) * 3 + 1] ^= 255;
    rgb[(SIDE * 13 + 27) * 3 + 2] ^= 255;
    long some = add(&apng, rgb) - start - whole - same;
    for (size_t i = 0; i < sizeof rgb; i++) {
        rgb[i] ^= 255;
    }
    long all = add(&apng, rgb) - start - whole - same - some;
    EXPECT(whole > SIDE * SIDE * 3 && all > SIDE * SIDE * 3);
    EXPECT(same < 100);
    EXPECT(some < 100 + 8 * 4 * 3 + 30); /* 8 x 4 pixels */
    EXPECT_OK(apng_end(&apng, STATUS_OK, &error), error);
    fclose(apng.out);
}

int main(void)
{
    return TEST_RUN(TEST(triangles_cover_their_area),
                    TEST(lines_cover_their_width_and_dashes_half_of_it),
                    TEST(words_have_their_dots), TEST(no_place_is_outside_of_memory),
                    TEST(frames_hold_what_changed));
}
