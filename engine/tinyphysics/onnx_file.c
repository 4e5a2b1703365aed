/*
 * ONNX files, read field by field of their protocol-buffer encoding
 * (https://protobuf.dev/programming-guides/encoding). Message numbers are those of onnx.proto3.
 */
#include "engine/tinyphysics/onnx_file.h"

#include "base/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODEL_GRAPH = 7,
    GRAPH_NODE = 1,
    GRAPH_INITIALIZER = 5,
    NODE_INPUT = 1,
    NODE_NAME = 3,
    NODE_OPERATION = 4,
    TENSOR_DIMS = 1,
    TENSOR_TYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TYPE_FLOAT = 1,
};

enum wire_type { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct cursor {
    const uint8_t *at, *end;
    bool broken;
};

struct field {
    uint64_t number;
    enum wire_type type;
    uint64_t value;      /* WIRE_VARINT */
    const uint8_t *data; /* else */
    size_t bytes;
};

static bool take_varint(struct cursor *cursor, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        const uint8_t byte = *cursor->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            return true;
        }
    }
    cursor->broken = true;
    return false;
}

/* The next field; false at the end, or where the bytes are no message (`broken`). */
static bool take_field(struct cursor *cursor, struct field *field)
{
    uint64_t key;
    uint64_t bytes = 0;
    if (cursor->at == cursor->end || !take_varint(cursor, &key)) {
        return false;
    }
    *field = (struct field){.number = key >> 3, .type = (enum wire_type)(key & 7)};
    switch (field->type) {
    case WIRE_VARINT:
        return take_varint(cursor, &field->value);
    case WIRE_64:
        bytes = 8;
        break;
    case WIRE_32:
        bytes = 4;
        break;
    case WIRE_BYTES:
        if (!take_varint(cursor, &bytes)) {
            return false;
        }
        break;
    default:
        cursor->broken = true;
        return false;
    }
    if (bytes > (uint64_t)(cursor->end - cursor->at)) {
        cursor->broken = true;
        return false;
    }
    field->data = cursor->at;
    field->bytes = (size_t)bytes;
    cursor->at += bytes;
    return true;
}

static bool field_is(const struct field *field, uint64_t number, enum wire_type type)
{
    return field->number == number && field->type == type;
}

static struct cursor cursor_of(const void *data, size_t bytes)
{
    return (struct cursor){data, (const uint8_t *)data + bytes, false};
}

static bool text_is(const struct field *field, const char *text)
{
    return field->bytes == strlen(text) && memcmp(field->data, text, field->bytes) == 0;
}

static enum status broken(const struct onnx_file *file, const char *what, struct error *error)
{
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: %s: expected an ONNX file, found bytes that are none (cut short?)",
                     file->path, what);
}

enum status onnx_file_open(const char *path, struct onnx_file *file, struct error *error)
{
    size_t bytes;
    struct field field;
    *file = (struct onnx_file){.path = path};
    TRY(file_read(path, ONNX_FILE_BYTES_MAX, &file->data, &bytes, error));
    struct cursor cursor = cursor_of(file->data, bytes);
    while (take_field(&cursor, &field)) {
        if (field_is(&field, MODEL_GRAPH, WIRE_BYTES)) {
            file->graph = field.data;
            file->graph_bytes = field.bytes;
        }
    }
    if (cursor.broken || file->graph == NULL) {
        return broken(file, "its outermost message", error);
    }
    return STATUS_OK;
}

void onnx_file_close(struct onnx_file *file)
{
    free(file->data);
    *file = (struct onnx_file){0};
}

/* Whether a message has this text as field `number`. */
static bool message_has(const struct field *message, uint64_t number, const char *text)
{
    struct cursor cursor = cursor_of(message->data, message->bytes);
    struct field field;
    while (take_field(&cursor, &field)) {
        if (field_is(&field, number, WIRE_BYTES)) {
            return text_is(&field, text);
        }
    }
    return false;
}

/* The node or initialiser whose name (its field `number`) is `name`. */
static enum status graph_find(const struct onnx_file *file, uint64_t kind, uint64_t number,
                              const char *name, struct field *out, struct error *error)
{
    struct cursor cursor = cursor_of(file->graph, file->graph_bytes);
    while (take_field(&cursor, out)) {
        if (field_is(out, kind, WIRE_BYTES) && message_has(out, number, name)) {
            return STATUS_OK;
        }
    }
    if (cursor.broken) {
        return broken(file, "its graph", error);
    }
    return error_set(error, STATUS_BAD_INPUT, "%s: expected a %s \"%s\", found none", file->path,
                     kind == GRAPH_NODE ? "node" : "tensor", name);
}

enum status onnx_file_weights(const struct onnx_file *file, const char *node, const char *operation,
                              char out[ONNX_NAME_BYTES], struct error *error)
{
    struct field message;
    struct field field;
    int inputs = 0;
    TRY(graph_find(file, GRAPH_NODE, NODE_NAME, node, &message, error));
    if (!message_has(&message, NODE_OPERATION, operation)) {
        return error_set(error, STATUS_BAD_INPUT, "%s: node \"%s\": expected a %s, found another",
                         file->path, node, operation);
    }
    struct cursor cursor = cursor_of(message.data, message.bytes);
    while (take_field(&cursor, &field)) {
        if (field_is(&field, NODE_INPUT, WIRE_BYTES) && ++inputs == 2 &&
            field.bytes < ONNX_NAME_BYTES) {
            memcpy(out, field.data, field.bytes);
            out[field.bytes] = 0;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: node \"%s\": expected a second input with a name of less than %d bytes, "
                     "found %d inputs",
                     file->path, node, ONNX_NAME_BYTES, inputs);
}

struct tensor {
    uint32_t rank;
    uint64_t dims[ONNX_RANK_MAX];
    uint64_t type;
    struct field floats; /* bytes, little-endian */
};

static void add_dimension(struct tensor *tensor, uint64_t size)
{
    if (tensor->rank < ONNX_RANK_MAX) {
        tensor->dims[tensor->rank] = size;
    }
    tensor->rank++;
}

/* False: the bytes are no tensor. */
static bool tensor_read(const struct field *message, struct tensor *tensor)
{
    struct cursor cursor = cursor_of(message->data, message->bytes);
    struct field field;
    while (take_field(&cursor, &field)) {
        if (field_is(&field, TENSOR_DIMS, WIRE_VARINT)) {
            add_dimension(tensor, field.value);
        } else if (field_is(&field, TENSOR_DIMS, WIRE_BYTES)) {
            struct cursor packed = cursor_of(field.data, field.bytes);
            uint64_t size;
            while (packed.at < packed.end && take_varint(&packed, &size)) {
                add_dimension(tensor, size);
            }
            cursor.broken |= packed.broken;
        } else if (field_is(&field, TENSOR_TYPE, WIRE_VARINT)) {
            tensor->type = field.value;
        } else if (field_is(&field, TENSOR_RAW, WIRE_BYTES) ||
                   field_is(&field, TENSOR_FLOATS, WIRE_BYTES)) {
            tensor->floats = field;
        }
    }
    return !cursor.broken;
}

enum status onnx_file_floats(const struct onnx_file *file, const char *name, const uint32_t *dims,
                             uint32_t rank, float *out, struct error *error)
{
    struct field message;
    struct tensor tensor = {0};
    size_t count = 1;
    TRY(graph_find(file, GRAPH_INITIALIZER, TENSOR_NAME, name, &message, error));
    if (!tensor_read(&message, &tensor)) {
        return broken(file, name, error);
    }
    bool fits = tensor.rank == rank;
    for (uint32_t i = 0; i < rank; i++) {
        fits = fits && tensor.dims[i] == dims[i];
        count *= dims[i];
    }
    if (!fits) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "%s: tensor \"%s\": expected %u dimensions, %u x %u, found %u, %llu x %llu", file->path,
            name, rank, dims[0], rank > 1 ? dims[1] : 1, tensor.rank,
            (unsigned long long)tensor.dims[0],
            (unsigned long long)(tensor.rank > 1 ? tensor.dims[1] : 1));
    }
    if (tensor.type != TYPE_FLOAT || tensor.floats.bytes != count * sizeof *out) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "%s: tensor \"%s\": expected %zu bytes of 32-bit floats in the file, found "
            "%zu of type %llu",
            file->path, name, count * sizeof *out, tensor.floats.bytes,
            (unsigned long long)tensor.type);
    }
    memcpy(out, tensor.floats.data, tensor.floats.bytes);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(out[i])) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: tensor \"%s\": element %zu: expected a finite number, found %f",
                             file->path, name, i, (double)out[i]);
        }
    }
    return STATUS_OK;
}
