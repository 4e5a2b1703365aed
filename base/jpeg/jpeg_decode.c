/*
 * JPEG into pixels. See jpeg_decode.h.
 *
 * The library reports errors by a call that may not return: it jumps back to jpeg_decode, whose
 * only state is what it was given.
 */
#include "base/jpeg/jpeg_decode.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

struct reader {
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

_Noreturn static void give_up(j_common_ptr codec)
{
    struct reader *reader = codec->client_data;
    codec->err->format_message(codec, reader->text);
    longjmp(reader->back, 1);
}

static void say_nothing(j_common_ptr codec, int level)
{
    (void)codec;
    (void)level;
}

/* False: of another size. */
static bool read_rows(j_decompress_ptr codec, uint32_t width, uint32_t height, uint8_t *rgb)
{
    jpeg_read_header(codec, TRUE);
    if (codec->image_width != width || codec->image_height != height) {
        return false;
    }
    codec->out_color_space = JCS_RGB;
    jpeg_start_decompress(codec);
    while (codec->output_scanline < height) {
        JSAMPROW row = rgb + (size_t)codec->output_scanline * width * 3;
        jpeg_read_scanlines(codec, &row, 1);
    }
    jpeg_finish_decompress(codec);
    return true;
}

enum status jpeg_decode(const uint8_t *data, size_t bytes, uint32_t width, uint32_t height,
                        uint8_t *rgb, struct error *error)
{
    struct jpeg_decompress_struct codec = {0};
    struct reader reader = {.text = ""};
    codec.err = jpeg_std_error(&reader.errors);
    reader.errors.error_exit = give_up;
    reader.errors.emit_message = say_nothing;
    codec.client_data = &reader;
    if (setjmp(reader.back) != 0) {
        jpeg_destroy_decompress(&codec);
        return error_set(error, STATUS_BAD_INPUT, "expected a JPEG of %u x %u, found: %.160s",
                         width, height, reader.text);
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, data, bytes);
    bool same = read_rows(&codec, width, height, rgb);
    const uint32_t found[2] = {codec.image_width, codec.image_height};
    jpeg_destroy_decompress(&codec);
    return same ? STATUS_OK
                : error_set(error, STATUS_BAD_INPUT,
                            "expected a JPEG of %u x %u, found one of %u x %u", width, height,
                            found[0], found[1]);
}
