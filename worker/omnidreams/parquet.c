/*
 * Parquet files of a map. See parquet.h.
 *
 * A leaf is a column: the values of all rows, and whether it lies in a list; then a bit for each
 * entry says whether it begins a row, and one whether there is a value (an empty list has none).
 */
#include "worker/omnidreams/parquet.h"

#include "base/check.h"
#include "base/dmath.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATH_MAX_PARTS = 5,
    LEAVES_MAX = 6 + 4 * PARQUET_FIELDS_MAX,
    KEY_LEAVES = 5,
};

/* Of parquet.thrift. */
enum { TYPE_BOOLEAN = 0, TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { REQUIRED = 0, REPEATED = 2 };
enum { CONVERTED_UTF8 = 0, CONVERTED_LIST = 3 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3 };

/* Of Thrift's compact protocol. */
enum { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BINARY = 8, THRIFT_LIST = 9, THRIFT_STRUCT = 12 };

/* A buffer of bytes that grows. */
struct bytes {
    char *data;
    size_t size;
    FILE *file; /* of open_memstream */
};

struct leaf {
    const char *path[PATH_MAX_PARTS];
    uint32_t depth;
    int type;
    bool listed;
    struct bytes values, begins, present; /* of levels a byte for each entry, 0 or 1 */
    uint32_t entries;
};

struct parquet {
    const char *table;
    const struct parquet_field *fields;
    uint32_t field_count, leaf_count, rows;
    uint32_t first_leaf[PARQUET_FIELDS_MAX];
    struct leaf leaves[LEAVES_MAX];
    bool failed;
};

static bool bytes_open(struct bytes *bytes)
{
    bytes->file = open_memstream(&bytes->data, &bytes->size);
    return bytes->file != NULL;
}

static void bytes_close(struct bytes *bytes)
{
    if (bytes->file != NULL) {
        fclose(bytes->file);
    }
    free(bytes->data);
    *bytes = (struct bytes){NULL, 0, NULL};
}

/* Makes what was written readable; false: memory ran out. */
static bool bytes_settle(struct bytes *bytes)
{
    return fflush(bytes->file) == 0 && ferror(bytes->file) == 0;
}

/* ---- a table ---- */

static void add_leaf(struct parquet *parquet, int type, bool listed, uint32_t depth,
                     const char *const *path)
{
    struct leaf *leaf = &parquet->leaves[parquet->leaf_count++];
    CHECK(parquet->leaf_count <= LEAVES_MAX && depth <= PATH_MAX_PARTS);
    memcpy(leaf->path, path, depth * sizeof *path);
    leaf->depth = depth;
    leaf->type = type;
    leaf->listed = listed;
    parquet->failed = !bytes_open(&leaf->values) || !bytes_open(&leaf->begins) ||
                      !bytes_open(&leaf->present) || parquet->failed;
}

/* Columns of a field. */
static void add_field(struct parquet *parquet, uint32_t index)
{
    static const char *const axes[] = {"x", "y", "z", "w"};
    const struct parquet_field *field = &parquet->fields[index];
    const char *const path[] = {parquet->table, field->name, "list", "element", NULL};
    const char *parts[PATH_MAX_PARTS];
    memcpy(parts, path, sizeof parts);
    parquet->first_leaf[index] = parquet->leaf_count;
    switch (field->kind) {
    case PARQUET_TEXT:
        add_leaf(parquet, TYPE_BYTE_ARRAY, false, 2, parts);
        break;
    case PARQUET_FLAG:
        add_leaf(parquet, TYPE_BOOLEAN, false, 2, parts);
        break;
    case PARQUET_TEXTS:
        add_leaf(parquet, TYPE_BYTE_ARRAY, true, 4, parts);
        break;
    case PARQUET_POINT:
    case PARQUET_TURN:
        for (int i = 0; i < (field->kind == PARQUET_POINT ? 3 : 4); i++) {
            parts[2] = axes[i];
            add_leaf(parquet, TYPE_DOUBLE, false, 3, parts);
        }
        break;
    case PARQUET_POINTS:
        for (int i = 0; i < 3; i++) {
            parts[4] = axes[i];
            add_leaf(parquet, TYPE_DOUBLE, true, 5, parts);
        }
        break;
    }
}

enum status parquet_create(const char *table, const struct parquet_field *fields, uint32_t count,
                           struct parquet **out, struct error *error)
{
    static const char *const key[KEY_LEAVES] = {"clip_id", "timestamp_micros", "label_class_id",
                                                "map_id", "map_id_version"};
    struct parquet *parquet = calloc(1, sizeof *parquet);
    TRY(memory_check(parquet, error, "map: out of memory"));
    CHECK(count <= PARQUET_FIELDS_MAX);
    parquet->table = table;
    parquet->fields = fields;
    parquet->field_count = count;
    for (int i = 0; i < KEY_LEAVES; i++) {
        const char *path[] = {"key", key[i]};
        add_leaf(parquet, i == 1 ? TYPE_INT64 : TYPE_BYTE_ARRAY, false, 2, path);
    }
    for (uint32_t i = 0; i < count; i++) {
        add_field(parquet, i);
    }
    const char *version[] = {"version"};
    add_leaf(parquet, TYPE_INT64, false, 1, version);
    *out = parquet;
    return STATUS_OK;
}

uint32_t parquet_rows(const struct parquet *parquet)
{
    return parquet->rows;
}

/* ---- values ---- */

static void put_levels(struct leaf *leaf, bool begins, bool present)
{
    leaf->entries++;
    if (leaf->listed && leaf->begins.file != NULL && leaf->present.file != NULL) {
        putc(begins ? 1 : 0, leaf->begins.file);
        putc(present ? 1 : 0, leaf->present.file);
    }
}

static void put_raw(struct leaf *leaf, const void *data, size_t bytes)
{
    if (leaf->values.file != NULL) {
        fwrite(data, 1, bytes, leaf->values.file);
    }
}

static void put_text(struct leaf *leaf, const char *text)
{
    const uint32_t bytes = (uint32_t)strlen(text);
    put_raw(leaf, &bytes, sizeof bytes);
    put_raw(leaf, text, bytes);
}

static void put_integer(struct leaf *leaf, int64_t value)
{
    put_levels(leaf, true, true);
    put_raw(leaf, &value, sizeof value);
}

static void put_number(struct leaf *leaf, double value)
{
    put_raw(leaf, &value, sizeof value);
}

void parquet_row(struct parquet *parquet, const char *clip, int64_t timestamp_us, uint32_t map_id)
{
    char id[16];
    const char *texts[KEY_LEAVES] = {clip, NULL, "swerve", id, "1"};
    snprintf(id, sizeof id, "%u", map_id);
    for (int i = 0; i < KEY_LEAVES; i++) {
        if (texts[i] != NULL) {
            put_levels(&parquet->leaves[i], true, true);
            put_text(&parquet->leaves[i], texts[i]);
        } else {
            put_integer(&parquet->leaves[i], timestamp_us);
        }
    }
    put_integer(&parquet->leaves[parquet->leaf_count - 1], 1);
    parquet->rows++;
}

static struct leaf *leaf_of(struct parquet *parquet, uint32_t field, enum parquet_kind kind)
{
    CHECK(field < parquet->field_count && parquet->fields[field].kind == kind);
    return &parquet->leaves[parquet->first_leaf[field]];
}

void parquet_text(struct parquet *parquet, uint32_t field, const char *text)
{
    struct leaf *leaf = leaf_of(parquet, field, PARQUET_TEXT);
    put_levels(leaf, true, true);
    put_text(leaf, text);
}

void parquet_flag(struct parquet *parquet, uint32_t field, bool flag)
{
    const char value = flag;
    struct leaf *leaf = leaf_of(parquet, field, PARQUET_FLAG);
    put_levels(leaf, true, true);
    put_raw(leaf, &value, 1); /* a bit each, where the page is written */
}

void parquet_texts(struct parquet *parquet, uint32_t field, const char *text, uint32_t times)
{
    struct leaf *leaf = leaf_of(parquet, field, PARQUET_TEXTS);
    for (uint32_t i = 0; i < times; i++) {
        put_levels(leaf, i == 0, true);
        put_text(leaf, text);
    }
    if (times == 0) {
        put_levels(leaf, true, false);
    }
}

void parquet_point(struct parquet *parquet, uint32_t field, double x, double y, double z)
{
    struct leaf *leaf = leaf_of(parquet, field, PARQUET_POINT);
    const double at[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        put_levels(&leaf[i], true, true);
        put_number(&leaf[i], at[i]);
    }
}

void parquet_turn(struct parquet *parquet, uint32_t field, double heading_rad)
{
    struct leaf *leaf = leaf_of(parquet, field, PARQUET_TURN);
    const double turn[] = {0, 0, dmath_sin(heading_rad / 2), dmath_cos(heading_rad / 2)};
    for (int i = 0; i < 4; i++) {
        put_levels(&leaf[i], true, true);
        put_number(&leaf[i], turn[i]);
    }
}

void parquet_points(struct parquet *parquet, uint32_t field, const struct vec2 *points,
                    uint32_t count)
{
    struct leaf *leaf = leaf_of(parquet, field, PARQUET_POINTS);
    for (uint32_t i = 0; i < count; i++) {
        const double at[] = {points[i].x_m, points[i].y_m, 0};
        for (int axis = 0; axis < 3; axis++) {
            put_levels(&leaf[axis], i == 0, true);
            put_number(&leaf[axis], at[axis]);
        }
    }
    for (int axis = 0; axis < 3 && count == 0; axis++) {
        put_levels(&leaf[axis], true, false);
    }
}

/* ---- Thrift ---- */

/* A record that is being written: the number of its newest field. */
struct thrift {
    FILE *to;
    int field;
};

static void put_varint(FILE *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        putc((int)(value & 0x7f) | 0x80, to);
    }
    putc((int)value, to);
}

static void put_zigzag(FILE *to, int64_t value)
{
    put_varint(to, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

static void put_field(struct thrift *thrift, int field, int type)
{
    CHECK(field > thrift->field && field - thrift->field < 16);
    putc((field - thrift->field) << 4 | type, thrift->to);
    thrift->field = field;
}

static void put_i32(struct thrift *thrift, int field, int64_t value)
{
    put_field(thrift, field, THRIFT_I32);
    put_zigzag(thrift->to, value);
}

static void put_i64(struct thrift *thrift, int field, int64_t value)
{
    put_field(thrift, field, THRIFT_I64);
    put_zigzag(thrift->to, value);
}

static void put_binary(FILE *to, const char *text)
{
    put_varint(to, strlen(text));
    fputs(text, to);
}

static void put_name(struct thrift *thrift, int field, const char *text)
{
    put_field(thrift, field, THRIFT_BINARY);
    put_binary(thrift->to, text);
}

static void put_list(struct thrift *thrift, int field, int type, uint32_t count)
{
    put_field(thrift, field, THRIFT_LIST);
    if (count < 15) {
        putc((int)(count << 4) | type, thrift->to);
    } else {
        putc(0xf0 | type, thrift->to);
        put_varint(thrift->to, count);
    }
}

static void put_stop(FILE *to)
{
    putc(0, to);
}

/* ---- the schema ---- */

struct schema_element {
    int type; /* -1: a group */
    int repetition;
    const char *name;
    uint32_t children;
    int converted; /* -1: none */
};

static void put_element(FILE *to, struct schema_element element)
{
    struct thrift thrift = {to, 0};
    if (element.type >= 0) {
        put_i32(&thrift, 1, element.type);
    }
    if (element.repetition >= 0) {
        put_i32(&thrift, 3, element.repetition);
    }
    put_name(&thrift, 4, element.name);
    if (element.type < 0) {
        put_i32(&thrift, 5, element.children);
    }
    if (element.converted >= 0) {
        put_i32(&thrift, 6, element.converted);
    }
    put_stop(to);
}

static void put_group(FILE *to, const char *name, int repetition, uint32_t children, int converted)
{
    put_element(to, (struct schema_element){-1, repetition, name, children, converted});
}

static void put_leaf_element(FILE *to, const struct leaf *leaf)
{
    put_element(to, (struct schema_element){leaf->type, REQUIRED, leaf->path[leaf->depth - 1], 0,
                                            leaf->type == TYPE_BYTE_ARRAY ? CONVERTED_UTF8 : -1});
}

/* Elements of a field, its columns among them; how many there are. */
static uint32_t put_field_elements(FILE *to, const struct parquet *parquet, uint32_t index)
{
    const struct parquet_field *field = &parquet->fields[index];
    const struct leaf *leaf = &parquet->leaves[parquet->first_leaf[index]];
    const uint32_t axes = field->kind == PARQUET_TURN ? 4 : 3;
    const bool list = field->kind == PARQUET_TEXTS || field->kind == PARQUET_POINTS;
    uint32_t count = 0;
    if (list) {
        put_group(to, field->name, REQUIRED, 1, CONVERTED_LIST);
        put_group(to, "list", REPEATED, 1, -1);
        count = 2;
    }
    if (field->kind == PARQUET_TEXT || field->kind == PARQUET_FLAG ||
        field->kind == PARQUET_TEXTS) {
        put_leaf_element(to, leaf);
        return count + 1;
    }
    put_group(to, list ? "element" : field->name, REQUIRED, axes, -1);
    for (uint32_t i = 0; i < axes; i++) {
        put_leaf_element(to, &leaf[i]);
    }
    return count + 1 + axes;
}

/* All elements behind each other; their number. */
static uint32_t put_schema(FILE *to, const struct parquet *parquet)
{
    uint32_t count = 4;
    put_group(to, "schema", -1, 3, -1);
    put_group(to, "key", REQUIRED, KEY_LEAVES, -1);
    for (uint32_t i = 0; i < KEY_LEAVES; i++, count++) {
        put_leaf_element(to, &parquet->leaves[i]);
    }
    put_group(to, parquet->table, REQUIRED, parquet->field_count, -1);
    for (uint32_t i = 0; i < parquet->field_count; i++) {
        count += put_field_elements(to, parquet, i);
    }
    put_leaf_element(to, &parquet->leaves[parquet->leaf_count - 1]);
    return count;
}

/* ---- pages ---- */

/* Bits, the first in the lowest, eight to a byte. */
static void put_bits(FILE *to, const char *bits, size_t count)
{
    for (size_t i = 0; i < count; i += 8) {
        int byte = 0;
        for (size_t k = 0; k < 8 && i + k < count; k++) {
            byte |= (bits[i + k] != 0) << k;
        }
        putc(byte, to);
    }
}

/* Levels of 0 and 1 as one bit-packed run, behind its length. A level 1 of `begins` says that an
 * entry goes on with the row, so it is turned around. */
static bool put_run(FILE *to, const struct bytes *levels, bool turned)
{
    const size_t groups = (levels->size + 7) / 8;
    struct bytes run = {NULL, 0, NULL};
    char *bits = malloc(levels->size + 1);
    bool good = bits != NULL && bytes_open(&run);
    if (good) {
        for (size_t i = 0; i < levels->size; i++) {
            bits[i] = (char)((levels->data[i] != 0) != turned);
        }
        put_varint(run.file, groups << 1 | 1);
        put_bits(run.file, bits, levels->size);
        good = bytes_settle(&run);
    }
    if (good) {
        const uint32_t bytes = (uint32_t)run.size;
        fwrite(&bytes, sizeof bytes, 1, to);
        fwrite(run.data, 1, run.size, to);
    }
    bytes_close(&run);
    free(bits);
    return good;
}

/* A leaf's page; `bytes`: its length with the header. */
static bool put_page(FILE *to, struct leaf *leaf, size_t *bytes)
{
    struct bytes page = {NULL, 0, NULL};
    struct bytes header = {NULL, 0, NULL};
    bool good = bytes_settle(&leaf->values) && bytes_settle(&leaf->begins) &&
                bytes_settle(&leaf->present) && bytes_open(&page) && bytes_open(&header);
    if (good && leaf->listed) {
        good = put_run(page.file, &leaf->begins, true) && put_run(page.file, &leaf->present, false);
    }
    if (good && leaf->type == TYPE_BOOLEAN) {
        put_bits(page.file, leaf->values.data, leaf->values.size);
    } else if (good) {
        fwrite(leaf->values.data, 1, leaf->values.size, page.file);
    }
    good = good && bytes_settle(&page);
    if (good) {
        struct thrift outer = {header.file, 0};
        struct thrift inner = {header.file, 0};
        put_i32(&outer, 1, 0); /* a data page */
        put_i32(&outer, 2, (int64_t)page.size);
        put_i32(&outer, 3, (int64_t)page.size);
        put_field(&outer, 5, THRIFT_STRUCT);
        put_i32(&inner, 1, leaf->entries);
        put_i32(&inner, 2, ENCODING_PLAIN);
        put_i32(&inner, 3, ENCODING_RLE);
        put_i32(&inner, 4, ENCODING_RLE);
        put_stop(header.file);
        put_stop(header.file);
        good = bytes_settle(&header);
        *bytes = header.size + page.size;
        fwrite(header.data, 1, header.size, to);
        fwrite(page.data, 1, page.size, to);
    }
    bytes_close(&page);
    bytes_close(&header);
    return good;
}

/* A leaf's record in the footer. */
static void put_column(FILE *to, const struct leaf *leaf, size_t at, size_t bytes)
{
    struct thrift chunk = {to, 0};
    struct thrift meta = {to, 0};
    put_i64(&chunk, 2, (int64_t)at);
    put_field(&chunk, 3, THRIFT_STRUCT);
    put_i32(&meta, 1, leaf->type);
    put_list(&meta, 2, THRIFT_I32, 2);
    put_zigzag(to, ENCODING_PLAIN);
    put_zigzag(to, ENCODING_RLE);
    put_list(&meta, 3, THRIFT_BINARY, leaf->depth);
    for (uint32_t i = 0; i < leaf->depth; i++) {
        put_binary(to, leaf->path[i]);
    }
    put_i32(&meta, 4, 0); /* uncompressed */
    put_i64(&meta, 5, leaf->entries);
    put_i64(&meta, 6, (int64_t)bytes);
    put_i64(&meta, 7, (int64_t)bytes);
    put_i64(&meta, 9, (int64_t)at);
    put_stop(to);
    put_stop(to);
}

static bool put_file(struct parquet *parquet, FILE *to)
{
    size_t at[LEAVES_MAX], bytes[LEAVES_MAX];
    size_t used = 4;
    struct bytes schema = {NULL, 0, NULL};
    fputs("PAR1", to);
    for (uint32_t i = 0; i < parquet->leaf_count; i++) {
        at[i] = used;
        if (!put_page(to, &parquet->leaves[i], &bytes[i])) {
            return false;
        }
        used += bytes[i];
    }
    if (!bytes_open(&schema)) {
        return false;
    }
    const uint32_t elements = put_schema(schema.file, parquet);
    const bool good = bytes_settle(&schema);
    long begin = ftell(to);
    struct thrift file = {to, 0};
    put_i32(&file, 1, 1);
    put_list(&file, 2, THRIFT_STRUCT, elements);
    fwrite(schema.data, 1, good ? schema.size : 0, to);
    bytes_close(&schema);
    put_i64(&file, 3, parquet->rows);
    put_list(&file, 4, THRIFT_STRUCT, 1);
    struct thrift group = {to, 0};
    put_list(&group, 1, THRIFT_STRUCT, parquet->leaf_count);
    for (uint32_t i = 0; i < parquet->leaf_count; i++) {
        put_column(to, &parquet->leaves[i], at[i], bytes[i]);
    }
    put_i64(&group, 2, (int64_t)(used - 4));
    put_i64(&group, 3, parquet->rows);
    put_stop(to);
    put_name(&file, 6, "swerve");
    put_stop(to);
    const uint32_t footer = (uint32_t)(ftell(to) - begin);
    fwrite(&footer, sizeof footer, 1, to);
    fputs("PAR1", to);
    return good;
}

enum status parquet_finish(struct parquet *parquet, uint8_t **bytes, size_t *count,
                           struct error *error)
{
    struct bytes file = {NULL, 0, NULL};
    bool good = !parquet->failed && bytes_open(&file) && put_file(parquet, file.file) &&
                bytes_settle(&file);
    if (good) {
        fclose(file.file);
        *bytes = (uint8_t *)file.data;
        *count = file.size;
    } else {
        bytes_close(&file);
    }
    for (uint32_t i = 0; i < parquet->leaf_count; i++) {
        bytes_close(&parquet->leaves[i].values);
        bytes_close(&parquet->leaves[i].begins);
        bytes_close(&parquet->leaves[i].present);
    }
    free(parquet);
    return good ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, "map: out of memory");
}
