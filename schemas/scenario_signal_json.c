/*
 * Scenario codec: traffic lights and signs of a map and the branches' interventions on them, both
 * ways.
 */
#include "schemas/scenario_members.h"

static enum status decode_phase(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    return members_read(cursor, &signal_phase_members, element, decoder->error);
}

static enum status decode_signal(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                 void *element)
{
    struct traffic_signal *out = element;
    struct error *error = decoder->error;
    *out = (struct traffic_signal){.stop_m = 1.0, .repeats = true};
    struct json_cursor part = json_cursor_member(cursor, "sign");
    bool is_sign = json_cursor_present(&part);
    uint32_t kinds = is_sign ? SIGNAL_IS_SIGN : SIGNAL_IS_LIGHT;
    TRY(members_begin(cursor, &signal_members, kinds, error));
    TRY(decode_id(cursor, "id", true, out->id, error));
    part = json_cursor_member(cursor, "lanes");
    TRY(decode_list(&part, 1, LIMIT_SIGNAL_LANES, decoder, decode_lane_id, sizeof *out->lanes,
                    &out->lanes, &out->lane_count));
    TRY(members_decode(cursor, &signal_members, kinds, out, error));
    if (is_sign) {
        int sign;
        TRY(json_member_choice(cursor, "sign", true, traffic_sign_names + 1, TRAFFIC_SIGN_COUNT - 1,
                               &sign, error));
        out->sign = (enum traffic_sign)(sign + 1);
        return STATUS_OK;
    }
    part = json_cursor_member(cursor, "phases");
    return decode_list(&part, 1, LIMIT_SIGNAL_PHASES, decoder, decode_phase, sizeof *out->phases,
                       &out->phases, &out->phase_count);
}

enum status index_signals(const struct json_cursor *list, struct scenario_decoder *decoder,
                          const struct map *map)
{
    return id_index_build(&decoder->signals, list, decoder, map->signals, map->signal_count,
                          sizeof *map->signals, offsetof(struct traffic_signal, id));
}

enum status decode_signals(const struct json_cursor *list, struct scenario_decoder *decoder,
                           struct map *out)
{
    TRY(decode_list(list, 0, LIMIT_SIGNALS, decoder, decode_signal, sizeof *out->signals,
                    &out->signals, &out->signal_count));
    return index_signals(list, decoder, out);
}

static json_t *encode_phases(struct json_builder *builder, const struct traffic_signal *signal)
{
    json_t *phases = json_array();
    for (uint32_t k = 0; k < signal->phase_count; k++) {
        build_element(builder, phases,
                      members_object(builder, &signal_phase_members, &signal->phases[k]));
    }
    return phases;
}

json_t *encode_signals(struct json_builder *builder, const struct map *map)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        json_t *object = json_object();
        bool is_sign = signal->sign != TRAFFIC_SIGN_NONE;
        build_member(builder, object, "id", json_string(signal->id));
        build_member(builder, object, "lanes",
                     encode_lane_ids(builder, map, signal->lane_count, signal->lanes));
        members_encode(builder, object, &signal_members, is_sign ? SIGNAL_IS_SIGN : SIGNAL_IS_LIGHT,
                       signal);
        if (is_sign) {
            build_member(builder, object, "sign", json_string(traffic_sign_names[signal->sign]));
        } else {
            build_member(builder, object, "phases", encode_phases(builder, signal));
        }
        build_element(builder, list, object);
    }
    return list;
}
