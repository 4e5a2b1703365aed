/*
 * Scenario codec: traffic lights and signs of a map and the branches' interventions on them, both
 * ways.
 */
#include "schemas/scenario_parts.h"

static enum status decode_phase(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    static const char *const keys[] = {"light", "duration_s", NULL};
    struct signal_phase *out = element;
    int light;
    TRY(json_object_begin(cursor, keys, decoder->error));
    TRY(json_member_choice(cursor, "light", true, traffic_light_names, TRAFFIC_LIGHT_COUNT, &light,
                           decoder->error));
    out->light = (enum traffic_light)light;
    return json_member_number(cursor, "duration_s", true, 0.1, 3600.0, &out->duration_s,
                              decoder->error);
}

static enum status decode_signal(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                 void *element)
{
    static const char *const keys[] = {"id",      "lanes",  "stop_m", "offset_s",
                                       "repeats", "phases", "sign",   NULL};
    static const char *const of_sign[] = {"id", "lanes", "stop_m", "sign", NULL};
    struct traffic_signal *out = element;
    struct error *error = decoder->error;
    *out = (struct traffic_signal){.stop_m = 1.0, .repeats = true};
    struct json_cursor part = json_cursor_member(cursor, "sign");
    bool is_sign = json_cursor_present(&part);
    TRY(json_object_begin(cursor, is_sign ? of_sign : keys, error));
    TRY(decode_id(cursor, "id", true, out->id, error));
    part = json_cursor_member(cursor, "lanes");
    TRY(decode_list(&part, 1, LIMIT_SIGNAL_LANES, decoder, decode_lane_id, sizeof *out->lanes,
                    &out->lanes, &out->lane_count));
    TRY(json_member_number(cursor, "stop_m", false, 0.0, 1000.0, &out->stop_m, error));
    if (is_sign) {
        int sign;
        TRY(json_member_choice(cursor, "sign", true, traffic_sign_names + 1, TRAFFIC_SIGN_COUNT - 1,
                               &sign, error));
        out->sign = (enum traffic_sign)(sign + 1);
        return STATUS_OK;
    }
    TRY(json_member_number(cursor, "offset_s", false, 0.0, 1e6, &out->offset_s, error));
    TRY(json_member_bool(cursor, "repeats", false, &out->repeats, error));
    part = json_cursor_member(cursor, "phases");
    return decode_list(&part, 1, LIMIT_SIGNAL_PHASES, decoder, decode_phase, sizeof *out->phases,
                       &out->phases, &out->phase_count);
}

enum status decode_signals(const struct json_cursor *list, struct scenario_decoder *decoder,
                           struct map *out)
{
    TRY(decode_list(list, 0, LIMIT_SIGNALS, decoder, decode_signal, sizeof *out->signals,
                    &out->signals, &out->signal_count));
    return id_index_build(&decoder->signals, list, decoder, out->signals, out->signal_count,
                          sizeof *out->signals, offsetof(struct traffic_signal, id));
}

enum status decode_signal_members(const struct json_cursor *cursor,
                                  struct scenario_decoder *decoder, struct intervention *out)
{
    struct json_cursor member = json_cursor_member(cursor, "signal");
    int light;
    TRY(id_index_find(&decoder->signals, &member, "a signal", &out->signal, decoder->error));
    TRY(json_member_choice(cursor, "light", true, traffic_light_names, TRAFFIC_LIGHT_COUNT, &light,
                           decoder->error));
    out->light = (enum traffic_light)light;
    return STATUS_OK;
}

json_t *encode_signals(struct json_builder *builder, const struct map *map)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        json_t *object = json_object();
        json_t *phases = signal->sign == TRAFFIC_SIGN_NONE ? json_array() : NULL;
        for (uint32_t k = 0; k < signal->phase_count; k++) {
            json_t *phase = json_object();
            build_member(builder, phase, "light",
                         json_string(traffic_light_names[signal->phases[k].light]));
            build_member(builder, phase, "duration_s", json_real(signal->phases[k].duration_s));
            build_element(builder, phases, phase);
        }
        build_member(builder, object, "id", json_string(signal->id));
        build_member(builder, object, "lanes",
                     encode_lane_ids(builder, map, signal->lane_count, signal->lanes));
        build_member(builder, object, "stop_m", json_real(signal->stop_m));
        if (signal->sign != TRAFFIC_SIGN_NONE) {
            build_member(builder, object, "sign", json_string(traffic_sign_names[signal->sign]));
            build_element(builder, list, object);
            continue;
        }
        build_member(builder, object, "offset_s", json_real(signal->offset_s));
        build_member(builder, object, "repeats", json_boolean(signal->repeats));
        build_member(builder, object, "phases", phases);
        build_element(builder, list, object);
    }
    return list;
}
