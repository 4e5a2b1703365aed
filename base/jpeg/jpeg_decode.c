/*
 * JPEG in memory. See jpeg_decode.h.
 *
 * The library reports errors by a call that may not return: it jumps back to jpeg_decode. What it
 * only warns of (bytes that are missing or wrong) is an error here.
 */
#include "base/jpeg/jpeg_decode.h"

#include <setjmp.h>
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

static void take_message(j_common_ptr codec, int level)
{
    if (level < 0) {
        give_up(codec);
    }
}

static void read_rows(j_decompress_ptr codec, uint8_t *out)
{
    const size_t stride = (size_t)codec->output_width * 3;
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW row = out + codec->output_scanline * stride;
        jpeg_read_scanlines(codec, &row, 1);
    }
    jpeg_finish_decompress(codec);
}

enum status jpeg_decode(const uint8_t *file, size_t bytes, uint32_t width, uint32_t height,
                        uint8_t *out, struct error *error)
{
    struct jpeg_decompress_struct codec = {0};
    struct reader reader;
    codec.err = jpeg_std_error(&reader.errors);
    reader.errors.error_exit = give_up;
    reader.errors.emit_message = take_message;
    codec.client_data = &reader;
    if (setjmp(reader.back) != 0) {
        jpeg_destroy_decompress(&codec);
        return error_set(error, STATUS_BAD_INPUT, "a JPEG of %zu bytes: %.160s", bytes,
                         reader.text);
    }
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, file, bytes);
    jpeg_read_header(&codec, TRUE);
    if (codec.image_width != width || codec.image_height != height) {
        error_set(error, STATUS_BAD_INPUT, "a JPEG of %u x %u pixels, expected %u x %u",
                  codec.image_width, codec.image_height, width, height);
        jpeg_destroy_decompress(&codec);
        return STATUS_BAD_INPUT;
    }
    codec.out_color_space = JCS_RGB;
    codec.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&codec);
    read_rows(&codec, out);
    jpeg_destroy_decompress(&codec);
    return STATUS_OK;
}
