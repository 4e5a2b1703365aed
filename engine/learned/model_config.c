/*
 * The configuration text of a world model: every member once and in its range, none unknown, so
 * that what was trained and what is run cannot differ by a word that one side ignored.
 */
#include "engine/learned/model_internal.h"
#include "schemas/scene.h"

#include <string.h>

static bool take_uint(struct scan *scan, const char *key, uint64_t least, uint64_t most,
                      uint32_t *out)
{
    uint64_t value = 0;
    if (!scan_integer(scan, &value)) {
        return false;
    }
    if (value < least || value > most) {
        return scan_fail(scan, STATUS_BAD_INPUT, "%s: expected %llu to %llu, found %llu", key,
                         (unsigned long long)least, (unsigned long long)most,
                         (unsigned long long)value);
    }
    *out = (uint32_t)value;
    return true;
}

static bool take_tier(struct scan *scan, struct model_config *config)
{
    char text[LIMIT_ID_BYTES];
    if (!scan_string(scan, text, sizeof text, NULL)) {
        return false;
    }
    if (strcmp(text, "student") != 0 && strcmp(text, "teacher") != 0) {
        return scan_fail(scan, STATUS_BAD_INPUT,
                         "tier: expected \"student\" or \"teacher\", found \"%s\"", text);
    }
    config->tier = strcmp(text, "student") == 0 ? TIER_STUDENT : TIER_TEACHER;
    return true;
}

/* Counts the times; steps is one less. */
static bool take_schedule(struct scan *scan, struct model_config *config)
{
    uint32_t count = 0;
    scan_expect(scan, '[');
    for (bool first = true; scan_element(scan, &first);) {
        if (count > MODEL_STEPS_MAX) {
            return scan_fail(scan, STATUS_LIMIT, "schedule: more than %d steps", MODEL_STEPS_MAX);
        }
        if (!scan_number(scan, &config->schedule[count])) {
            return false;
        }
        count++;
    }
    if (scan->status == STATUS_OK && count < 2) {
        return scan_fail(scan, STATUS_BAD_INPUT, "schedule: expected at least two times, found %u",
                         count);
    }
    config->steps = count - 1;
    return scan->status == STATUS_OK;
}

static bool take_joint(struct scan *scan, struct model_config *config, uint32_t *count)
{
    scan_expect(scan, '[');
    for (bool first = true; scan_element(scan, &first);) {
        uint32_t joint = 0;
        if (*count == MODEL_LAYERS_MAX) {
            return scan_fail(scan, STATUS_LIMIT, "joint: more than %d layers", MODEL_LAYERS_MAX);
        }
        if (!take_uint(scan, "joint", 0, 1, &joint)) {
            return false;
        }
        config->joint[(*count)++] = joint != 0;
    }
    return scan->status == STATUS_OK;
}

static bool take_horizon(struct scan *scan, struct model_config *config)
{
    static const char *const names[CONDITIONING_COUNT] = {"agents", "map", "none"};
    char key[16];
    unsigned seen = 0;
    scan_expect(scan, '{');
    for (bool first = true; scan_member(scan, &first, key, sizeof key);) {
        uint32_t which = 0;
        while (which < CONDITIONING_COUNT && strcmp(key, names[which]) != 0) {
            which++;
        }
        if (which == CONDITIONING_COUNT || (seen & 1u << which) != 0) {
            return scan_fail(scan, STATUS_BAD_INPUT,
                             "horizon_ticks: expected agents, map and none once each, found "
                             "\"%s\"%s",
                             key, which < CONDITIONING_COUNT ? " twice" : "");
        }
        seen |= 1u << which;
        if (!take_uint(scan, key, 0, LIMIT_HORIZON_TICKS, &config->horizon_ticks[which])) {
            return false;
        }
    }
    if (scan->status == STATUS_OK && seen != (1u << CONDITIONING_COUNT) - 1) {
        return scan_fail(scan, STATUS_BAD_INPUT,
                         "horizon_ticks: expected agents, map and none, found fewer");
    }
    return scan->status == STATUS_OK;
}

/* A word of two. */
static bool take_type(struct scan *scan, const char *key, enum model_type *out)
{
    char text[LIMIT_ID_BYTES];
    if (!scan_string(scan, text, sizeof text, NULL)) {
        return false;
    }
    if (strcmp(text, "bf16") != 0 && strcmp(text, "e4m3") != 0) {
        return scan_fail(scan, STATUS_BAD_INPUT, "%s: expected \"bf16\" or \"e4m3\", found \"%s\"",
                         key, text);
    }
    *out = strcmp(text, "e4m3") == 0 ? MODEL_E4M3 : MODEL_BF16;
    return true;
}

/* Those from MEMBER_PATCH on may be left out. */
enum member {
    MEMBER_NAME,
    MEMBER_TIER,
    MEMBER_WIDTH,
    MEMBER_LAYERS,
    MEMBER_BEV_CHANNELS,
    MEMBER_CAMERA_CHANNELS,
    MEMBER_WINDOW,
    MEMBER_SCHEDULE,
    MEMBER_JOINT,
    MEMBER_HORIZON,
    MEMBER_PATCH,
    MEMBER_HEADS,
    MEMBER_KV_HEADS,
    MEMBER_HEAD_DIM,
    MEMBER_TYPE,
    MEMBER_REFERENCE_LAYERS,
    MEMBER_REACH,
    MEMBER_PAST,
    MEMBER_PAGES,
    MEMBER_COUNT
};
static const char *const member_names[MEMBER_COUNT] = {
    "name",     "tier",     "width", "layers",           "bev_channels", "camera_channels",
    "window",   "schedule", "joint", "horizon_ticks",    "patch",        "heads",
    "kv_heads", "head_dim", "type",  "reference_layers", "reach",        "past",
    "pages",
};

static bool take_member(struct scan *scan, enum member member, struct model_config *config,
                        uint32_t *joint_count)
{
    const char *key = member_names[member];
    switch (member) {
    case MEMBER_NAME:
        return scan_string(scan, config->name, sizeof config->name, NULL);
    case MEMBER_TIER:
        return take_tier(scan, config);
    case MEMBER_WIDTH:
        return take_uint(scan, key, 32, MODEL_WIDTH_MAX, &config->width);
    case MEMBER_LAYERS:
        return take_uint(scan, key, 1, MODEL_LAYERS_MAX, &config->layers);
    case MEMBER_BEV_CHANNELS:
        return take_uint(scan, key, 32, MODEL_CHANNELS_MAX, &config->bev_channels);
    case MEMBER_CAMERA_CHANNELS:
        return take_uint(scan, key, 32, MODEL_CHANNELS_MAX, &config->camera_channels);
    case MEMBER_WINDOW:
        return take_uint(scan, key, 1, NN_PAGES_MAX, &config->window);
    case MEMBER_SCHEDULE:
        return take_schedule(scan, config);
    case MEMBER_JOINT:
        return take_joint(scan, config, joint_count);
    case MEMBER_PATCH:
        return take_uint(scan, key, 1, WINDOW_PATCH, &config->patch);
    case MEMBER_HEADS:
        return take_uint(scan, key, 1, MODEL_WIDTH_MAX / 16, &config->heads);
    case MEMBER_KV_HEADS:
        return take_uint(scan, key, 1, MODEL_WIDTH_MAX / 16, &config->kv_heads);
    case MEMBER_HEAD_DIM:
        return take_uint(scan, key, 16, NN_WIDE_HEAD_MAX, &config->head_dim);
    case MEMBER_TYPE:
        return take_type(scan, key, &config->type);
    case MEMBER_REFERENCE_LAYERS:
        return take_uint(scan, key, 0, MODEL_LAYERS_MAX, &config->reference_layers);
    case MEMBER_REACH:
        return take_uint(scan, key, 1, MODEL_REACH_MAX, &config->reach);
    case MEMBER_PAST:
        return take_uint(scan, key, 0, NN_PAGES_MAX, &config->past);
    case MEMBER_PAGES:
        return take_type(scan, key, &config->pages);
    default:
        return take_horizon(scan, config);
    }
}

enum status model_config_parse(const char *source, const char *text, size_t bytes,
                               struct model_config *out, struct error *error)
{
    struct model_config config = {0};
    struct scan scan = scan_begin(source, "config", text, bytes, error);
    char key[32];
    unsigned seen = 0;
    uint32_t joint_count = 0;
    scan_expect(&scan, '{');
    for (bool first = true; scan_member(&scan, &first, key, sizeof key);) {
        uint32_t which = 0;
        while (which < MEMBER_COUNT && strcmp(key, member_names[which]) != 0) {
            which++;
        }
        if (which == MEMBER_COUNT || (seen & 1u << which) != 0) {
            scan_fail(&scan, STATUS_BAD_INPUT,
                      "expected a member of the configuration%s, found "
                      "\"%s\"",
                      which < MEMBER_COUNT ? " once" : "", key);
            return scan.status;
        }
        seen |= 1u << which;
        if (!take_member(&scan, (enum member)which, &config, &joint_count)) {
            return scan.status;
        }
    }
    if (!scan_end(&scan)) {
        return scan.status;
    }
    for (uint32_t i = 0; i < MEMBER_PATCH; i++) {
        if ((seen & 1u << i) == 0) {
            return error_set(error, STATUS_BAD_INPUT, "%s: config: expected \"%s\", found none",
                             source, member_names[i]);
        }
    }
    if (joint_count != config.layers) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: joint: expected one entry per layer (%u), found %u", source,
                         config.layers, joint_count);
    }
    model_config_complete(&config);
    TRY(model_config_check(source, &config, error));
    *out = config;
    return STATUS_OK;
}

void model_config_complete(struct model_config *config)
{
    config->patch = config->patch != 0 ? config->patch : WINDOW_PATCH;
    config->head_dim = config->head_dim != 0 ? config->head_dim : NN_HEAD;
    config->heads = config->heads != 0 ? config->heads : config->width / config->head_dim;
    config->kv_heads = config->kv_heads != 0 ? config->kv_heads : config->heads;
}

uint32_t model_tokens(const struct model_config *config)
{
    return model_tokens_bev(config) + CAMERA_COUNT * model_tokens_camera(config);
}

bool model_wide(const struct model_config *config)
{
    return config->head_dim != NN_HEAD || config->kv_heads != config->heads ||
           config->heads * NN_HEAD != config->width || model_tokens(config) > NN_TOKENS_MAX ||
           config->reach != 0;
}

bool model_plain(const struct model_config *config)
{
    return model_wide(config) || config->type != MODEL_BF16 || config->pages != MODEL_BF16;
}

static enum status check_heads(const char *source, const struct model_config *config,
                               struct error *error)
{
    if (WINDOW_PATCH % config->patch != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: patch: expected 8, 4, 2 or 1, found %u", source,
                         config->patch);
    }
    if (config->head_dim % 16 != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: head_dim: expected a multiple of 16, found %u", source,
                         config->head_dim);
    }
    if (config->heads == 0 || config->heads % config->kv_heads != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: heads: expected a multiple of kv_heads (%u), found %u",
                         source, config->kv_heads, config->heads);
    }
    uint32_t widths[] = {model_query_width(config), model_kv_width(config)};
    static const char *const names[] = {"heads", "kv_heads"};
    for (int i = 0; i < 2; i++) {
        if (widths[i] % 32 != 0 || widths[i] > MODEL_WIDTH_MAX) {
            return error_set(
                error, STATUS_BAD_INPUT,
                "%s: config: %s: expected a multiple of 32 of at most %d numbers, found "
                "%u of %u",
                source, names[i], MODEL_WIDTH_MAX, widths[i] / config->head_dim, config->head_dim);
        }
    }
    return STATUS_OK;
}

/* Of windows; what they hold at most is a row of logits of nn_wide_attention. */
static enum status check_windows(const char *source, const struct model_config *config,
                                 struct error *error)
{
    const uint32_t side = 2 * config->reach + 1;
    bool windows = false;
    for (uint32_t layer = 0; layer < config->layers; layer++) {
        windows = windows || model_layer_window(config, layer);
    }
    if (config->reach != 0 && !windows) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: reach: expected a joint layer, found none", source);
    }
    if (config->past > (config->reach != 0 ? config->window : 0)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: past: expected at most window (%u), and none without reach, "
                         "found %u",
                         source, config->window, config->past);
    }
    if (config->reach != 0 && side * side * (1 + config->past) > NN_WIDE_TOKENS_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: reach: expected windows of at most %d tokens, found %u",
                         source, NN_WIDE_TOKENS_MAX, side * side * (1 + config->past));
    }
    return STATUS_OK;
}

enum status model_config_check(const char *source, const struct model_config *config,
                               struct error *error)
{
    const uint32_t sides[] = {config->width, config->bev_channels, config->camera_channels};
    static const char *const names[] = {"width", "bev_channels", "camera_channels"};
    for (int i = 0; i < 3; i++) {
        if (sides[i] % 32 != 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: config: %s: expected a multiple of 32, found %u", source,
                             names[i], sides[i]);
        }
    }
    TRY(check_heads(source, config, error));
    TRY(check_windows(source, config, error));
    if (config->name[0] == 0) {
        return error_set(error, STATUS_BAD_INPUT, "%s: config: name: expected one, found none",
                         source);
    }
    const double *t = config->schedule;
    if (t[0] != 0.0 || t[config->steps] != 1.0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: config: schedule: expected times from 0 to 1, found %g to %g", source,
                         t[0], t[config->steps]);
    }
    for (uint32_t i = 0; i < config->steps; i++) {
        if (!(t[i] < t[i + 1])) {
            return error_set(error, STATUS_BAD_INPUT,
                             "%s: config: schedule: expected rising times, found %g after %g",
                             source, t[i + 1], t[i]);
        }
    }
    return STATUS_OK;
}

uint32_t model_horizon_ticks(const struct model_config *config, enum conditioning conditioning)
{
    uint32_t ticks = config->horizon_ticks[conditioning_of_network(conditioning)];
    bool beyond = conditioning_foresees(conditioning) && ticks > SCENE_FORESEEN_TICKS;
    return beyond ? SCENE_FORESEEN_TICKS : ticks;
}
