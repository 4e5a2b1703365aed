/*
 * Parameter value distributions to grids: every combination of the values that a file lists.
 *
 * Each <Deterministic...Distribution> is an axis, whose rows assign one or several parameters; the
 * last axis varies fastest. Invariant: the number of points is bounded before any is made.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GRID_MAX 1000000000000LL /* of which some may be taken */

enum { AXES_MAX = 64, ROWS_MAX = 4096 };

static enum status add_row(struct osc_context *context, const struct osc_element *element,
                           struct osc_axis *axis, uint32_t count, struct osc_parameter *items)
{
    if (axis->row_count == ROWS_MAX) {
        return osc_fail(context, element, "expected at most %d values, found more", ROWS_MAX);
    }
    axis->rows[axis->row_count++] = (struct osc_row){count, items};
    return STATUS_OK;
}

static enum status add_value(struct osc_context *context, const struct osc_element *element,
                             const char *name, const char *value, struct osc_axis *axis)
{
    struct osc_parameter *item = osc_alloc(context, 1, sizeof *item);
    if (item == NULL) {
        return STATUS_LIMIT;
    }
    *item = (struct osc_parameter){name, value};
    return add_row(context, element, axis, 1, item);
}

static enum status read_range(struct osc_context *context, const struct osc_element *element,
                              const char *name, struct osc_axis *axis)
{
    const struct osc_element *range;
    double low = NAN;
    double high = NAN;
    double step = NAN;
    TRY(osc_required_child(context, element, "Range", &range));
    TRY(osc_number(context, range, "lowerLimit", true, -1e12, 1e12, &low));
    TRY(osc_number(context, range, "upperLimit", true, -1e12, 1e12, &high));
    TRY(osc_number(context, element, "stepWidth", true, 1e-12, 1e12, &step));
    if (high < low || (high - low) / step > ROWS_MAX) {
        return osc_fail(context, element,
                        "expected 1 to %d values from %g in steps of %g, found "
                        "an upper limit of %g",
                        ROWS_MAX, low, step, high);
    }
    uint32_t count = (uint32_t)floor((high - low) / step + 1e-9) + 1;
    for (uint32_t i = 0; i < count; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.12g", low + i * step);
        char *copy = arena_copy_text(context->arena, text, strlen(text));
        TRY(copy != NULL ? add_value(context, element, name, copy, axis) : STATUS_LIMIT);
    }
    return STATUS_OK;
}

static enum status read_single(struct osc_context *context, const struct osc_element *element,
                               struct osc_axis *axis)
{
    const char *name;
    const struct osc_element *form = element->first;
    TRY(osc_required_text(context, element, "parameterName", &name));
    if (form == NULL) {
        return osc_fail(context, element, "expected values, found none");
    }
    if (osc_is(form, "DistributionRange")) {
        return read_range(context, form, name, axis);
    }
    if (!osc_is(form, "DistributionSet")) {
        return osc_unsupported(context, form);
    }
    const struct osc_element *at = osc_child(form, "Element");
    for (; at != NULL; at = osc_next(at)) {
        const char *value;
        TRY(osc_required_text(context, at, "value", &value));
        TRY(add_value(context, at, name, value, axis));
    }
    return STATUS_OK;
}

static enum status read_multi(struct osc_context *context, const struct osc_element *element,
                              struct osc_axis *axis)
{
    const struct osc_element *sets;
    TRY(osc_required_child(context, element, "ValueSetDistribution", &sets));
    const struct osc_element *set = osc_child(sets, "ParameterValueSet");
    for (; set != NULL; set = osc_next(set)) {
        struct osc_parameter *items = osc_alloc(context, OSC_PARAMETERS_MAX, sizeof *items);
        uint32_t count = 0;
        if (items == NULL) {
            return STATUS_LIMIT;
        }
        const struct osc_element *at = osc_child(set, "ParameterAssignment");
        for (; at != NULL; at = osc_next(at)) {
            if (count == OSC_PARAMETERS_MAX) {
                return osc_fail(context, at, "expected at most %d assignments, found more",
                                OSC_PARAMETERS_MAX);
            }
            TRY(osc_required_text(context, at, "parameterRef", &items[count].name));
            TRY(osc_required_text(context, at, "value", &items[count].value));
            count++;
        }
        TRY(add_row(context, set, axis, count, items));
    }
    return STATUS_OK;
}

enum status osc_grid_read(struct osc_context *context, const struct osc_element *distribution,
                          struct osc_grid *out)
{
    const struct osc_element *file;
    const struct osc_element *list;
    const char *relative;
    *out = (struct osc_grid){.count = 1};
    TRY(osc_required_child(context, distribution, "ScenarioFile", &file));
    TRY(osc_required_text(context, file, "filepath", &relative));
    osc_find_path(context, relative, "", out->scenario_path);
    list = osc_child(distribution, "Deterministic");
    if (list == NULL) {
        return osc_unsupported(context, distribution->last);
    }
    out->axes = osc_alloc(context, AXES_MAX, sizeof *out->axes);
    if (out->axes == NULL) {
        return STATUS_LIMIT;
    }
    for (const struct osc_element *at = list->first; at != NULL; at = at->next) {
        if (out->axis_count == AXES_MAX) {
            return osc_fail(context, at, "expected at most %d distributions, found more", AXES_MAX);
        }
        struct osc_axis *axis = &out->axes[out->axis_count++];
        axis->rows = osc_alloc(context, ROWS_MAX, sizeof *axis->rows);
        if (axis->rows == NULL) {
            return STATUS_LIMIT;
        }
        TRY(osc_is(at, "DeterministicSingleParameterDistribution")  ? read_single(context, at, axis)
            : osc_is(at, "DeterministicMultiParameterDistribution") ? read_multi(context, at, axis)
                                                                    : osc_unsupported(context, at));
        if (axis->row_count == 0) {
            return osc_fail(context, at, "expected at least one value, found none");
        }
        out->count *= axis->row_count;
        if (out->count > LIMIT_SUITE_SCENARIOS && context->options->combinations == 0) {
            return osc_fail(context, at,
                            "expected at most %d combinations or --combinations N, which takes N "
                            "of them, found more",
                            LIMIT_SUITE_SCENARIOS);
        }
        if (out->count > GRID_MAX) {
            return osc_fail(context, at, "expected at most %lld combinations, found more",
                            GRID_MAX);
        }
    }
    return STATUS_OK;
}
