/*
 * Checks of the slots' records before a tick: page numbers and cells become addresses on the device
 * without another look, and slots run side by side.
 */
#include "kernels/cuda/module/module.cuh"

#include <stdio.h>

static bool pages_valid(const struct device_session *session, const struct device_slot *slot)
{
    bool valid = slot->page_count <= session->weights.window &&
                 slot->write_page < session->options.page_count;
    for (uint32_t i = 0; valid && i < slot->page_count; i++) {
        valid = slot->page[i] < session->options.page_count && slot->page[i] != slot->write_page;
    }
    return valid;
}

/* Whether the cells that gates name lie in the window. */
static bool gates_valid(const struct device_slot *slot)
{
    bool valid = slot->gate_count <= AGENT_GATES_MAX;
    for (uint32_t i = 0; valid && i < slot->gate_count; i++) {
        const struct agent_gate *gate = &slot->gates[i];
        valid = gate->row_first <= gate->row_end && gate->row_end <= AGENT_CELLS &&
                gate->col_first <= gate->col_end && gate->col_end <= AGENT_CELLS;
    }
    return valid;
}

/* A slot that reads or writes what another one writes. */
static int refuse_page(struct device_text *why, uint32_t slot, const char *does, uint32_t page)
{
    snprintf(why->text, sizeof why->text,
             "slot %u: expected pages that no other slot writes in this tick, found that it %s "
             "page %u, which another one writes",
             slot, does, page);
    return DEVICE_FAULT_INPUT;
}

/* Slots of a tick run side by side, so nobody may write or read what another one writes: in either
 * order it would be somebody's false past. Their page numbers are valid. */
static int check_written(const struct device_session *session, struct device_text *why)
{
    const struct device_slot *slots = session->host_slots;
    const uint32_t count = session->options.slot_count;
    int fault = DEVICE_OK;
    uint32_t seen = 0;
    for (; seen < count && fault == DEVICE_OK; seen++) {
        const struct device_slot *slot = &slots[seen];
        if (slot->active && !module_bit_set(session->written, slot->write_page)) {
            fault = refuse_page(why, seen, "writes", slot->write_page);
        }
    }
    for (uint32_t i = 0; i < count && fault == DEVICE_OK; i++) {
        for (uint32_t k = 0; slots[i].active && k < slots[i].page_count; k++) {
            if (module_bit_is_set(session->written, slots[i].page[k])) {
                fault = refuse_page(why, i, "reads", slots[i].page[k]);
            }
        }
    }
    for (uint32_t i = 0; i < seen; i++) {
        if (slots[i].active) {
            session->written[slots[i].write_page / 64] = 0;
        }
    }
    return fault;
}

int module_slots_check(const struct device_session *session, struct device_text *why)
{
    for (uint32_t i = 0; i < session->options.slot_count; i++) {
        const struct device_slot *slot = &session->host_slots[i];
        if (slot->active && !pages_valid(session, slot)) {
            snprintf(why->text, sizeof why->text,
                     "slot %u: expected at most %u pages below %u, none of them the written one "
                     "(%u), found %u pages",
                     i, session->weights.window, session->options.page_count, slot->write_page,
                     slot->page_count);
            return DEVICE_FAULT_INPUT;
        }
        const uint32_t steps = session->weights.steps;
        const bool agents = slot->conditioning == CONDITION_AGENTS;
        if (slot->active && slot->skipped > steps - !agents) {
            snprintf(why->text, sizeof why->text,
                     "slot %u: expected at most %u steps to be left out, of the sampler's %u, "
                     "found %u",
                     i, steps - !agents, steps, slot->skipped);
            return DEVICE_FAULT_INPUT;
        }
        if (slot->active && !gates_valid(slot)) {
            snprintf(why->text, sizeof why->text,
                     "slot %u: expected at most %d gates within the window, found %u, or one "
                     "beyond it",
                     i, AGENT_GATES_MAX, slot->gate_count);
            return DEVICE_FAULT_INPUT;
        }
    }
    return check_written(session, why);
}
