/*
 * Dates, and counting by day. See day.h.
 */
#include "scheduler/day.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_PER_DAY INT64_C(86400000)
enum { YEAR_MAX = 9999, DAYS_PER_ERA = 146097, DAYS_TO_1970 = 719468 };

int64_t day_of_ms(int64_t at_ms)
{
    if (at_ms == 0) {
        return DAY_NOT_KNOWN;
    }
    return at_ms / MS_PER_DAY - (at_ms % MS_PER_DAY < 0 ? 1 : 0);
}

struct date {
    int64_t year;
    int month;
    int day;
};

/* Proleptic Gregorian calendar; years begin in March, so that a leap day is a year's last, and an
 * era is 400 of them (Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013). */
static struct date date_of(int64_t day)
{
    int64_t since = day + DAYS_TO_1970;
    int64_t era = (since >= 0 ? since : since - (DAYS_PER_ERA - 1)) / DAYS_PER_ERA;
    int64_t of_era = since - era * DAYS_PER_ERA;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    struct date date = {.day = (int)(of_year - (153 * month + 2) / 5 + 1),
                        .month = (int)(month < 10 ? month + 3 : month - 9)};
    date.year = year + era * 400 + (date.month <= 2 ? 1 : 0);
    return date;
}

static int64_t day_of_date(const struct date *date)
{
    int64_t year = date->year - (date->month <= 2 ? 1 : 0);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (date->month + (date->month > 2 ? -3 : 9)) + 2) / 5 + date->day - 1;
    return era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - DAYS_TO_1970;
}

static bool is_written(int64_t day)
{
    return day >= 0 && day != DAY_NEVER && date_of(day).year <= YEAR_MAX;
}

const char *day_text(int64_t day, char out[DAY_TEXT_BYTES])
{
    if (!is_written(day)) {
        snprintf(out, DAY_TEXT_BYTES, "not known");
        return out;
    }
    struct date date = date_of(day);
    snprintf(out, DAY_TEXT_BYTES, "%04d-%02d-%02d", (int)date.year % (YEAR_MAX + 1),
             date.month % 100, date.day % 100);
    return out;
}

const char *day_moment_text(int64_t at_ms, char out[DAY_MOMENT_BYTES])
{
    char date[DAY_TEXT_BYTES];
    int64_t day = day_of_ms(at_ms);
    if (!is_written(day)) {
        snprintf(out, DAY_MOMENT_BYTES, "not known");
        return out;
    }
    int second = (int)((at_ms - day * MS_PER_DAY) / 1000);
    snprintf(out, DAY_MOMENT_BYTES, "%.10s %02d:%02d:%02d UTC", day_text(day, date),
             second / 3600 % 24, second / 60 % 60, second % 60);
    return out;
}

enum status day_parse(const char *text, int64_t *day, struct error *error)
{
    struct date date = {0};
    char again[DAY_TEXT_BYTES];
    char rest;
    int year = 0;
    if (strlen(text) == 10 &&
        sscanf(text, "%4d-%2d-%2d%c", &year, &date.month, &date.day, &rest) == 3 && year >= 1970 &&
        date.month >= 1 && date.month <= 12 && date.day >= 1 && date.day <= 31) {
        date.year = year;
        int64_t found = day_of_date(&date);
        if (strcmp(day_text(found, again), text) == 0) { /* no 30th of February */
            *day = found;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "expected a date such as 2026-11-27 (UTC, from 1970 on), found \"%.40s\"",
                     text);
}

/* ---- agreement by day ---- */

static int compare_newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The newest different days, into `out`. */
static void choose_days(const struct day_pair *pairs, uint32_t count, int64_t before,
                        int64_t *scratch, struct day_table *out)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (pairs[i].day != DAY_NOT_KNOWN && pairs[i].day < before) {
            scratch[used++] = pairs[i].day;
        }
    }
    if (used > 0) {
        qsort(scratch, used, sizeof *scratch, compare_newest_first);
    }
    for (uint32_t i = 0; i < used && out->count < DAY_MAX; i++) {
        if (i == 0 || scratch[i] != scratch[i - 1]) {
            out->days[out->count++] = (struct day_agreement){.day = scratch[i]};
        }
    }
}

/* Its index among the days, or their number. */
static uint32_t find_day(const struct day_table *table, int64_t day)
{
    uint32_t low = 0;
    uint32_t high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool newer = table->days[middle].day > day;
        low = newer ? middle + 1 : low;
        high = newer ? high : middle;
    }
    return low < table->count && table->days[low].day == day ? low : table->count;
}

void day_table_make(const struct day_pair *pairs, uint32_t count, int64_t before, int64_t *scratch,
                    struct day_table *out)
{
    struct rate rates[DAY_MAX] = {0};
    memset(out, 0, sizeof *out);
    choose_days(pairs, count, before, scratch, out);
    for (uint32_t i = 0; i < count; i++) {
        const struct day_pair *pair = &pairs[i];
        uint32_t at = find_day(out, pair->day);
        if (pair->day == DAY_NOT_KNOWN) {
            out->not_known++;
        } else if (at < out->count) {
            out->days[at].pairs++;
            out->days[at].agree += pair->agrees;
            out->days[at].optimistic += pair->optimistic;
            rate_add(&rates[at], pair->logical_key, pair->case_key, pair->agrees);
        } else if (pair->day < before) {
            out->older++;
        }
    }
    for (uint32_t i = 0; i < out->count; i++) {
        out->days[i].rate = rate_estimate(&rates[i]);
    }
}
