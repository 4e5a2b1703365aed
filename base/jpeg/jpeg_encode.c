/*
 * JPEG in memory. See jpeg_encode.h.
 *
 * The library reports errors by a call that may not return: it jumps back to jpeg_encode, whose
 * only state is what it was given.
 */
#include "base/jpeg/jpeg_encode.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

struct writer {
    struct jpeg_destination_mgr target; /* first: the library hands it back */
    struct jpeg_error_mgr errors;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    bool full;
};

_Noreturn static void give_up(j_common_ptr codec)
{
    struct writer *writer = codec->client_data;
    codec->err->format_message(codec, writer->text);
    longjmp(writer->back, 1);
}

static void say_nothing(j_common_ptr codec, int level)
{
    (void)codec;
    (void)level;
}

static void begin(j_compress_ptr codec)
{
    (void)codec; /* the room is set */
}

static boolean out_of_room(j_compress_ptr codec)
{
    struct writer *writer = codec->client_data;
    writer->full = true;
    longjmp(writer->back, 1);
}

static void end(j_compress_ptr codec)
{
    (void)codec; /* what is left of the room tells the size */
}

static void write_rows(j_compress_ptr codec, const uint8_t *rgb)
{
    const size_t stride = (size_t)codec->image_width * 3;
    jpeg_start_compress(codec, TRUE);
    while (codec->next_scanline < codec->image_height) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(rgb + codec->next_scanline * stride);
        jpeg_write_scanlines(codec, &row, 1);
    }
    jpeg_finish_compress(codec);
}

enum status jpeg_encode(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t quality,
                        uint8_t *out, size_t room, size_t *bytes, struct error *error)
{
    struct jpeg_compress_struct codec = {0};
    struct writer writer = {
        .target = {.next_output_byte = out,
                   .free_in_buffer = room,
                   .init_destination = begin,
                   .empty_output_buffer = out_of_room,
                   .term_destination = end},
    };
    codec.err = jpeg_std_error(&writer.errors);
    writer.errors.error_exit = give_up;
    writer.errors.emit_message = say_nothing;
    codec.client_data = &writer;
    if (setjmp(writer.back) != 0) {
        jpeg_destroy_compress(&codec);
        return error_set(error, writer.full ? STATUS_LIMIT : STATUS_NO_MEMORY,
                         "cannot make a JPEG of %u x %u: %.160s", width, height,
                         writer.full ? "it has no room" : writer.text);
    }
    jpeg_create_compress(&codec);
    codec.dest = &writer.target;
    codec.image_width = width;
    codec.image_height = height;
    codec.input_components = 3;
    codec.in_color_space = JCS_RGB;
    jpeg_set_defaults(&codec);
    jpeg_set_quality(&codec, (int)quality, TRUE);
    write_rows(&codec, rgb);
    *bytes = room - writer.target.free_in_buffer;
    jpeg_destroy_compress(&codec);
    return STATUS_OK;
}
