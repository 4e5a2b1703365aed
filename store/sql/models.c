/*
 * The registry of models. See models.h.
 *
 * Moving a pointer is one transaction, queued jobs included. Jobs that come into the queue later
 * under another version (an attempt that failed, a submission that was on its way) are moved when
 * they are claimed, so that no lease after the move names what the tier does not point to.
 */
#include "store/sql/models.h"

#include "base/units.h"
#include "schemas/scenario.h"
#include "store/door/invariants.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FOLLOWERS_CHUNK = 256 };

/* A version with its row; 0: there is none. */
struct found_version {
    int64_t id;
    struct model_version version;
};

static int64_t wall_s(const struct sql_store *store)
{
    return clock_wall_ns(store->clock) / NS_PER_S;
}

static enum status find_version(struct db *db, const char *name, struct found_version *out,
                                struct error *error)
{
    struct query query = query_begin(db, STATEMENT_MODEL_FIND);

    memset(out, 0, sizeof *out);
    query_text(&query, name);
    if (query_row(&query)) {
        record_read(&query, RECORD_MODEL, &out->version);
        out->id = query_take_int(&query);
    }
    return query_end(&query, error);
}

static enum status need_version(struct db *db, const char *name, struct found_version *out,
                                struct error *error)
{
    TRY(find_version(db, name, out, error));
    return out->id != 0 ? STATUS_OK
                        : error_set(error, STATUS_NOT_FOUND, "the store has no model \"%s\"", name);
}

/* ---- adding ---- */

struct add_call {
    struct sql_store *store;
    const struct model_version *version;
};

static bool same_version(const struct model_version *a, const struct model_version *b)
{
    return strcmp(a->hash, b->hash) == 0 && strcmp(a->health_hash, b->health_hash) == 0 &&
           a->tier == b->tier && strcmp(a->precision, b->precision) == 0 &&
           strcmp(a->sampler, b->sampler) == 0 && a->agents_ticks == b->agents_ticks &&
           a->map_ticks == b->map_ticks && a->none_ticks == b->none_ticks &&
           strcmp(a->parents, b->parents) == 0 && strcmp(a->data_note, b->data_note) == 0;
}

/* Stores the event under the next id, which it gets. */
static enum status add_event(struct db *db, const struct found_version *model,
                             struct model_event *event, struct error *error)
{
    struct digest digest;
    struct query next = query_begin(db, STATEMENT_MODEL_EVENT_NEXT);

    if (query_row(&next)) {
        event->id = query_take_int(&next);
        event->after_outcome = query_take_int(&next);
    }
    TRY(query_end(&next, error));
    memcpy(event->model, model->version.name, sizeof event->model);
    TRY(invariants_check(&invariants_model_event, event, error));
    digest_model_event(event, &digest);
    struct query query = query_begin(db, STATEMENT_MODEL_EVENT_ADD);
    query_int(&query, model->id);
    query_blob(&query, digest.bytes, sizeof digest.bytes);
    record_write(&query, RECORD_MODEL_EVENT, event);
    return query_run(&query, error);
}

static enum status insert_version(struct db *db, const struct model_version *version, int64_t now_s,
                                  struct error *error)
{
    struct digest digest;
    struct model_version kept = *version;

    kept.added_s = now_s;
    kept.state = MODEL_CANDIDATE;
    kept.canary_percent = 0;
    TRY(invariants_check(&invariants_model, &kept, error));
    digest_model(&kept, &digest);
    struct query query = query_begin(db, STATEMENT_MODEL_INSERT);
    query_blob(&query, digest.bytes, sizeof digest.bytes);
    record_write(&query, RECORD_MODEL, &kept);
    return query_run(&query, error);
}

static enum status add_op(struct db *db, void *context, struct error *error)
{
    const struct add_call *call = context;
    const struct model_version *version = call->version;
    struct found_version known;
    struct model_event event = {.kind = MODEL_ADDED, .at_s = wall_s(call->store)};
    TRY(find_version(db, version->name, &known, error));

    if (known.id != 0) {
        return same_version(&known.version, version)
                   ? STATUS_OK
                   : error_set(error, STATUS_CONFLICT,
                               "model \"%s\": a version of that name is in the store (%.12s, %s); "
                               "versions do not change: give the new one another name",
                               version->name, known.version.hash, known.version.precision);
    }
    TRY(insert_version(db, version, event.at_s, error));
    TRY(find_version(db, version->name, &known, error));
    if (known.id == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": its weights are in the store under another name, with "
                         "precision %s too",
                         version->name, version->precision);
    }
    return add_event(db, &known, &event, error);
}

static enum status need_artifact(struct sql_store *store, const struct model_version *version,
                                 const char *hash, struct error *error)
{
    bool exists = true;
    TRY(hash[0] != '\0' ? artifacts_exists(&store->artifacts, hash, &exists, error) : STATUS_OK);
    return exists
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "model \"%s\": its file %.12s is not in the store; put it there first",
                           version->name, hash);
}

enum status models_add(struct store *base, const struct model_version *version, struct error *error)
{
    struct add_call call = {.store = sql_store_of(base), .version = version};
    TRY(model_version_check(version, error));
    TRY(need_artifact(call.store, version, version->hash, error));
    TRY(need_artifact(call.store, version, version->health_hash, error));
    return sql_store_write(call.store, add_op, &call, error);
}

/* ---- followers ---- */

struct pointers {
    struct found_version promoted;
    struct found_version canary;
    struct found_version shadow; /* with a share */
};

static enum status read_pointers(struct db *db, enum tier tier, struct pointers *out,
                                 struct error *error)
{
    struct query query = query_begin(db, STATEMENT_MODEL_POINTERS);
    struct found_version found;

    memset(out, 0, sizeof *out);
    query_int(&query, (int64_t)tier);
    while (query_row(&query)) {
        memset(&found, 0, sizeof found);
        record_read(&query, RECORD_MODEL, &found.version);
        found.id = query_take_int(&query);
        *(found.version.state == MODEL_CANARY   ? &out->canary
          : found.version.state == MODEL_SHADOW ? &out->shadow
                                                : &out->promoted) = found;
    }
    return query_end(&query, error);
}

/* The job's key and context; a suite that has the key already gets it under one of its own. */
static enum status write_follower(struct db *db, int64_t job_id, struct job_spec *spec,
                                  struct error *error)
{
    int64_t context_id = 0;
    TRY(record_context_id(db, spec, &context_id, error));

    do {
        struct query query = query_begin(db, STATEMENT_FOLLOWER_MOVE);
        query_int(&query, job_id);
        query_text(&query, spec->key);
        query_int(&query, context_id);
        TRY(query_run(&query, error));
        if (db_changes(db) > 0) {
            return STATUS_OK;
        }
        job_key_apart(spec);
    } while (true);
}

static enum status move_follower(struct db *db, const struct pointers *pointers, int64_t job_id,
                                 struct job_spec *spec, bool *moved, struct error *error)
{
    const struct model_version *version =
        model_assigned(spec, pointers->promoted.id != 0 ? &pointers->promoted.version : NULL,
                       pointers->canary.id != 0 ? &pointers->canary.version : NULL);
    char key[SHA256_HEX_BYTES];
    memcpy(key, spec->key, sizeof key);

    *moved = version != NULL && model_job_move(version, spec);
    if (!*moved) {
        return STATUS_OK;
    }
    if (spec->tier == TIER_STUDENT) { /* what was on its way when a freeze came was another */
        struct query unmark = query_begin(db, STATEMENT_FREEZE_UNMARK);
        query_int(&unmark, job_id);
        TRY(query_run(&unmark, error));
    }
    return models_rewrite(db, job_id, key, spec, error);
}

enum status models_rewrite(struct db *db, int64_t job_id, const char *key, struct job_spec *spec,
                           struct error *error)
{
    TRY(write_follower(db, job_id, spec, error));
    if (spec->audit_key[0] == '\0') {
        struct query twins = query_begin(db, STATEMENT_FOLLOWER_TWINS);
        query_text(&twins, key);
        query_text(&twins, spec->key);
        query_int(&twins, job_id);
        TRY(query_run(&twins, error));
    }
    struct query left = query_begin(db, STATEMENT_FOLLOWER_LEFT); /* what is late, is of another */
    query_int(&left, job_id);
    TRY(query_run(&left, error));
    struct query partials = query_begin(db, STATEMENT_PARTIAL_DROP); /* another model's */
    query_int(&partials, job_id);
    return query_run(&partials, error);
}

enum status models_answering(struct db *db, enum tier tier, const struct job_spec *spec,
                             struct model_version *out, bool *found, struct error *error)
{
    struct pointers pointers;
    TRY(read_pointers(db, tier, &pointers, error));
    *found = pointers.promoted.id != 0;
    if (*found) {
        *out = *model_assigned(spec, &pointers.promoted.version,
                               pointers.canary.id != 0 ? &pointers.canary.version : NULL);
    }
    return STATUS_OK;
}

static bool names(const struct job_spec *spec, const struct found_version *found)
{
    const struct model_version *version = &found->version;
    const char *slash = strchr(spec->sampler, '/'); /* behind the conditioning */
    return found->id != 0 && slash != NULL && strcmp(spec->model_hash, version->hash) == 0 &&
           strcmp(slash + 1, version->sampler) == 0;
}

enum status models_points_to(struct db *db, const struct job_spec *spec,
                             struct model_version *promoted, bool *named, struct error *error)
{
    struct pointers pointers;
    TRY(read_pointers(db, spec->tier, &pointers, error));
    *promoted = pointers.promoted.version;
    bool canary = names(spec, &pointers.canary) &&
                  model_assigned(spec, promoted, &pointers.canary.version) != promoted;
    *named = pointers.promoted.id == 0 || names(spec, &pointers.promoted) || canary;
    return STATUS_OK;
}

enum status models_shadow_find(struct db *db, enum tier tier, struct models_shadow *shadow,
                               struct error *error)
{
    struct pointers pointers;
    if (shadow->known && shadow->tier == tier) {
        return STATUS_OK;
    }
    TRY(read_pointers(db, tier, &pointers, error));
    *shadow = (struct models_shadow){
        .known = true, .tier = tier, .id = pointers.shadow.id, .version = pointers.shadow.version};
    return STATUS_OK;
}

enum status models_follow(struct db *db, int64_t job_id, struct job_spec *spec, bool *moved,
                          struct error *error)
{
    struct pointers pointers;

    *moved = false;
    TRY(read_pointers(db, spec->tier, &pointers, error));
    return move_follower(db, &pointers, job_id, spec, moved, error);
}

struct follower {
    int64_t job_id;
    struct job_spec spec;
};

static enum status read_followers(struct db *db, int64_t after,
                                  struct follower followers[FOLLOWERS_CHUNK], uint32_t *count,
                                  struct error *error)
{
    struct query query = query_begin(db, STATEMENT_FOLLOWING_JOBS);

    *count = 0;
    query_int(&query, after);
    query_int(&query, FOLLOWERS_CHUNK);
    while (*count < FOLLOWERS_CHUNK && query_row(&query)) {
        followers[*count].job_id = query_take_int(&query);
        record_read(&query, RECORD_SPEC, &followers[(*count)++].spec);
    }
    return query_end(&query, error);
}

/* ---- events ---- */

struct event_call {
    struct sql_store *store;
    const struct model_event *event;
    struct model_event done;
    struct follower *followers; /* [FOLLOWERS_CHUNK], owned by the caller */
};

/* Queued jobs of a tier that follow are moved, or get jobs of the tier's shadow. */
struct visit {
    struct event_call *call;
    struct tally *tally; /* NULL: they are moved */
    struct pointers pointers;
    struct models_shadow shadow;
};

static enum status visit_follower(struct visit *visit, struct db *db, struct follower *follower,
                                  struct error *error)
{
    bool moved = false;
    if (visit->tally != NULL) {
        return submit_shadow(visit->call->store, visit->tally, &visit->shadow, &follower->spec,
                             error);
    }
    TRY(move_follower(db, &visit->pointers, follower->job_id, &follower->spec, &moved, error));
    visit->call->done.jobs_moved += moved;
    return STATUS_OK;
}

static enum status visit_followers(struct event_call *call, struct db *db, enum tier tier,
                                   struct tally *tally, struct error *error)
{
    struct visit visit = {.call = call, .tally = tally};
    struct follower *followers = call->followers;
    uint32_t found = FOLLOWERS_CHUNK;
    int64_t after = 0;

    TRY(read_pointers(db, tier, &visit.pointers, error));
    TRY(models_shadow_find(db, tier, &visit.shadow, error));
    while (found == FOLLOWERS_CHUNK) {
        TRY(read_followers(db, after, followers, &found, error));
        for (uint32_t i = 0; i < found; i++) {
            after = followers[i].job_id;
            TRY(followers[i].spec.tier == tier ? visit_follower(&visit, db, &followers[i], error)
                                               : STATUS_OK);
        }
    }
    return STATUS_OK;
}

static enum status read_last_event(struct db *db, int64_t model, struct model_event *out,
                                   struct error *error)
{
    struct query query = query_begin(db, STATEMENT_MODEL_EVENT_LAST);

    query_int(&query, model);
    if (query_row(&query)) {
        record_read(&query, RECORD_MODEL_EVENT, out);
    }
    return query_end(&query, error);
}

/* Jobs were asked for as long as the one in place is trusted: another takes them along. */
static enum status check_horizon(const struct model_version *version,
                                 const struct model_version *promoted, struct error *error)
{
    if (model_covers(version, promoted)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_MISMATCH,
                     "model \"%s\" is trusted for %" PRId64 ", %" PRId64 " and %" PRId64
                     " ticks (agents, map, none), \"%s\" for %" PRId64 ", %" PRId64 " and %" PRId64
                     ": jobs that last longer would be flagged; force it, which is recorded",
                     version->name, version->agents_ticks, version->map_ticks, version->none_ticks,
                     promoted->name, promoted->agents_ticks, promoted->map_ticks,
                     promoted->none_ticks);
}

/* The gate: whoever answers production jobs has passed. */
static enum status check_fit(const struct event_call *call, struct db *db,
                             const struct found_version *model, struct error *error)
{
    const struct model_event *event = call->event;
    struct query query = query_begin(db, STATEMENT_MODEL_FIT);
    bool fit = false;
    bool known = false;
    bool evaluated = false;

    query_int(&query, model->id);
    query_int(&query, call->done.at_s);
    if (query_row(&query)) {
        fit = query_take_int(&query) != 0;
        known = query_take_int(&query) != 0;
        evaluated = query_take_int(&query) != 0;
    }
    TRY(query_end(&query, error));
    bool back = known && event->to_state == MODEL_PROMOTED;
    if (event->forced || back) {
        return STATUS_OK;
    }
    if (fit) {
        struct pointers pointers;
        TRY(read_pointers(db, model->version.tier, &pointers, error));
        return pointers.promoted.id == 0
                   ? STATUS_OK
                   : check_horizon(&model->version, &pointers.promoted.version, error);
    }
    return error_set(
        error, STATUS_MISMATCH,
        "model \"%s\": %s; evaluate it (swerve model evaluate), or force it, which is recorded",
        event->model,
        evaluated ? "its last evaluation did not pass, or has expired" : "it was never evaluated");
}

static enum status set_state(struct db *db, int64_t model, enum model_state state,
                             int64_t canary_percent, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_MODEL_SET);

    query_int(&query, model);
    query_int(&query, (int64_t)state);
    query_int(&query, canary_percent);
    return query_run(&query, error);
}

/* A share for a shadow: nothing is decided by it, so no evaluation is asked for. */
static enum status check_shadow(const struct event_call *call, struct db *db,
                                const struct found_version *model, struct error *error)
{
    struct pointers pointers;
    TRY(read_pointers(db, model->version.tier, &pointers, error));

    if (pointers.shadow.id != 0 && pointers.shadow.id != model->id) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": \"%s\" is the shadow of its tier; move that one first",
                         call->event->model, pointers.shadow.version.name);
    }
    if (pointers.promoted.id == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": no version of its tier is promoted, whose jobs it would "
                         "drive again",
                         call->event->model);
    }
    return call->event->forced ? STATUS_OK
                               : check_horizon(&model->version, &pointers.promoted.version, error);
}

/* Jobs of shadows, once the version is where the event says: those of a shadow that has no share
 * any more end, and one that has a share gets them for queued jobs too. */
static enum status move_shadows(struct event_call *call, struct db *db,
                                const struct found_version *model, struct error *error)
{
    struct tally tally;
    bool casts = call->event->to_state == MODEL_SHADOW && call->event->canary_percent > 0;

    tally_init(&tally, db, call->store->clock);
    TRY(casts ? visit_followers(call, db, model->version.tier, &tally, error)
              : submit_shadows_end(call->store, &tally, model->id, error));
    return tally_flush(&tally, error);
}

/* Who holds the place that the version takes: the promoted one retires, another canary is refused.
 */
static enum status clear_place(const struct event_call *call, struct db *db,
                               const struct found_version *model, struct error *error)
{
    const struct model_event *event = call->event;
    struct pointers pointers;
    TRY(read_pointers(db, model->version.tier, &pointers, error));

    if (event->to_state == MODEL_CANARY && pointers.canary.id != 0 &&
        pointers.canary.id != model->id) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": \"%s\" is the canary of its tier; move that one first",
                         event->model, pointers.canary.version.name);
    }
    if (event->to_state == MODEL_CANARY && pointers.promoted.id == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": no version of its tier is promoted, which would answer the "
                         "other jobs",
                         event->model);
    }
    if (event->to_state == MODEL_PROMOTED && pointers.promoted.id != 0) {
        struct model_event retired = {.kind = MODEL_MOVED,
                                      .from_state = MODEL_PROMOTED,
                                      .to_state = MODEL_RETIRED,
                                      .at_s = call->done.at_s};
        memcpy(retired.actor, event->actor, sizeof retired.actor);
        memcpy(retired.against, event->model, sizeof retired.against);
        TRY(set_state(db, pointers.promoted.id, MODEL_RETIRED, 0, error));
        TRY(add_event(db, &pointers.promoted, &retired, error));
    }
    return STATUS_OK;
}

static enum status move_model(struct event_call *call, struct db *db,
                              const struct found_version *model, struct error *error)
{
    const struct model_event *event = call->event;
    enum model_state from = model->version.state;

    if (from == event->to_state && model->version.canary_percent == event->canary_percent) {
        return read_last_event(db, model->id, &call->done, error);
    }
    if (!model_may_move(from, event->to_state)) {
        return error_set(error, STATUS_CONFLICT, "model \"%s\" is %s%s, and cannot become %s",
                         event->model, model_state_names[from],
                         from == MODEL_PROMOTED ? " until another takes its place" : "",
                         model_state_names[event->to_state]);
    }
    if (event->to_state == MODEL_CANARY || event->to_state == MODEL_PROMOTED) {
        TRY(check_fit(call, db, model, error));
        TRY(clear_place(call, db, model, error));
    }
    TRY(event->to_state == MODEL_SHADOW && event->canary_percent > 0
            ? check_shadow(call, db, model, error)
            : STATUS_OK);
    TRY(set_state(db, model->id, event->to_state, event->canary_percent, error));
    if (from == MODEL_CANARY || event->to_state == MODEL_CANARY ||
        event->to_state == MODEL_PROMOTED) {
        TRY(visit_followers(call, db, model->version.tier, NULL, error));
    }
    if (from == MODEL_SHADOW || event->to_state == MODEL_SHADOW) {
        TRY(move_shadows(call, db, model, error));
    }
    return add_event(db, model, &call->done, error);
}

static enum status event_op(struct db *db, void *context, struct error *error)
{
    struct event_call *call = context;
    struct found_version model;

    call->done = *call->event;
    call->done.at_s = wall_s(call->store);
    call->done.jobs_moved = 0;
    TRY(need_version(db, call->event->model, &model, error));
    call->done.from_state = model.version.state;
    if (call->event->kind == MODEL_MOVED) {
        call->done.passed = false;
        call->done.expires_s = 0;
        call->done.report_hash[0] = '\0';
        return move_model(call, db, &model, error);
    }
    call->done.to_state = model.version.state;
    call->done.forced = false;
    return add_event(db, &model, &call->done, error);
}

enum status models_event(struct store *base, const struct model_event *event,
                         struct model_event *done, struct error *error)
{
    struct event_call call = {.store = sql_store_of(base), .event = event};
    bool exists = true;
    TRY(model_event_check(event, error));

    if (event->report_hash[0] != '\0') {
        TRY(artifacts_exists(&call.store->artifacts, event->report_hash, &exists, error));
    }
    if (!exists) {
        return error_set(error, STATUS_CONFLICT,
                         "model \"%s\": the report %.12s is not in the store; put it there first",
                         event->model, event->report_hash);
    }
    call.followers = malloc(FOLLOWERS_CHUNK * sizeof *call.followers);
    TRY(memory_check(call.followers, error, "out of memory for jobs that follow a model"));
    enum status status = sql_store_write(call.store, event_op, &call, error);
    free(call.followers);
    if (status == STATUS_OK) {
        *done = call.done;
    }
    return status;
}

/* ---- reading ---- */

/* Records by name, above `after`; `bytes`: of each. */
static enum status page_by_name(struct store *base, enum statement statement, const char *after,
                                enum record kind, size_t bytes, void *out, uint32_t max,
                                uint32_t *count, struct error *error)
{
    struct query query;
    TRY(sql_read_begin(base, statement, &query, error));
    query_text(&query, after);
    query_int(&query, max);
    uint32_t found = record_read_rows(&query, kind, bytes, out, max);
    return sql_read_rows_end(base, &query, found, count, error);
}

enum status models_page(struct store *base, const char *after, struct model_version *out,
                        uint32_t max, uint32_t *count, struct error *error)
{
    return page_by_name(base, STATEMENT_MODEL_PAGE, after, RECORD_MODEL, sizeof *out, out, max,
                        count, error);
}

enum status models_goldens(struct store *base, const char *after, struct golden_set *out,
                           uint32_t max, uint32_t *count, struct error *error)
{
    return page_by_name(base, STATEMENT_GOLDEN_PAGE, after, RECORD_GOLDEN, sizeof *out, out, max,
                        count, error);
}

enum status models_events_page(struct store *base, int64_t after_id, struct model_event *out,
                               uint32_t max, uint32_t *count, struct error *error)
{
    struct query query;
    TRY(sql_read_begin(base, STATEMENT_MODEL_EVENT_PAGE, &query, error));
    query_int(&query, after_id);
    query_int(&query, max);
    uint32_t found = record_read_rows(&query, RECORD_MODEL_EVENT, sizeof *out, out, max);
    return sql_read_rows_end(base, &query, found, count, error);
}
