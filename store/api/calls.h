/*
 * Calls of a store: the one table of the functions of store.h with a status, that whoever treats
 * them alike walks or expands: the HTTP client and server, the client that repeats calls, the store
 * in PostgreSQL that asks again. A row says what a function takes, and how it travels over HTTP
 * (schemas/openapi.yaml describes the same to people).
 *
 * A function whose question and answer are texts, numbers and records of the vocabulary below needs
 * no line at either end of HTTP. One that takes anything else (IN) is written out there, and so is
 * one of which its row names another handler than `call`.
 */
#ifndef SWERVE_STORE_API_CALLS_H
#define SWERVE_STORE_API_CALLS_H

#include "store/api/store.h"

typedef char store_suite_id[LIMIT_ID_BYTES];

/* Who has a call, and what it does. */
enum store_call_kind {
    STORE_KIND_ORDER = 0,
    STORE_KIND_ASK = 1,  /* reads the database at one moment: may be asked again at no cost */
    STORE_KIND_HERE = 2, /* of a store in the same process alone: no client has it */
    STORE_KIND_ORDER_HERE = STORE_KIND_HERE,
    STORE_KIND_ASK_HERE = STORE_KIND_HERE | STORE_KIND_ASK,
};

/*
 * ROUTED(function, kind, method, path, roles, lane, body, handler, arguments ..)
 * PLAIN(function, kind, arguments ..) has no path of its own.
 * store/server/http_routes.c says what roles, lanes and bodies are, and has the routes that are no
 * calls of the store; store/wire/http_wire.h has the codecs.
 *
 * Arguments, in the order of the function's parameters:
 *   PATH(name)              a text in place of the path's next star
 *   PATH_ID(name)           a number there
 *   MAYBE(name)             a text in the query, which may be NULL
 *   AFTER(what)             a page's begin by name, `after` in the query; `what` there are pages of
 *   AFTER_ID(min)           likewise by number, of at least `min`
 *   MEMBER(name)            a number in the body
 *   BODY(type, codec)       a record that is the body
 *   NAMED(type, codec, what, member)  likewise, whose member is in the path too
 *   NUMBER(name)            the answer's one number
 *   RECORD(type, codec)     the answer is one record
 *   ROWS(type, name, codec, usual, most)  the answer's list of records; `max` in the query; 0: no
 *                           query, so many at `most`
 *   IN(type, name)          anything else, or either way
 * Of no parameter:
 *   KEYS(names ..)          members of the query that a handler takes by itself
 *   EMPTY                   the body is an object without members
 *   ACTOR(type)             the record's actor is who asks, where that is known
 *   TENANT, WORKER          the path's first text is a suite, or a worker, of who asks
 *   HELD                    its number is a job that workers of who asks hold, all the while
 *   LACKING(text)           said where a store does not have the function
 */
/* clang-format off */
#define STORE_CALLS(ROUTED, PLAIN)                                                                 \
    ROUTED(scenario_put, ORDER, "PUT", "/v1/scenarios/*", SUBMIT | ADMIN, WORK, SCENARIO,          \
        scenario_put,                                                                              \
        KEYS("tenant"), IN(const char *, hash), IN(const char *, body), IN(size_t, bytes))         \
    PLAIN(scenario_put_as, ORDER,                                                                  \
        IN(const char *, tenant), IN(const char *, hash), IN(const char *, body),                  \
        IN(size_t, bytes))                                                                         \
    ROUTED(scenario_get, ASK, "GET", "/v1/scenarios/*", ALL, MIXED, NONE, scenario_get,            \
        IN(const char *, hash), IN(char **, body), IN(size_t *, bytes))                            \
    ROUTED(submit, ORDER, "POST", "/v1/suites/*/jobs", SUBMIT | ADMIN, WORK, JSON, submit,         \
        IN(const char *, suite), IN(uint32_t, weight), IN(const struct job_spec *, specs),         \
        IN(uint32_t, count), IN(struct store_submit_result *, results))                            \
    PLAIN(submit_as, ORDER,                                                                        \
        IN(const char *, tenant), IN(const char *, suite), IN(uint32_t, weight),                   \
        IN(enum suite_class, of_class), IN(int64_t, budget_uusd),                                  \
        IN(const struct job_spec *, specs), IN(uint32_t, count),                                   \
        IN(struct store_submit_result *, results))                                                 \
    ROUTED(tenants, ASK, "GET", "/v1/tenants", READERS, READS, NONE, call,                         \
        AFTER("tenant"), ROWS(struct tenant, "tenants", wire_tenant, PAGE_MAX, PAGE_MAX))          \
    ROUTED(tenant_set, ORDER, "PUT", "/v1/tenants/*", ADMIN, WORK, JSON, tenant_set,               \
        IN(const struct tenant *, tenant), IN(uint32_t, settings))                                 \
    ROUTED(heartbeat, ORDER, "POST", "/v1/workers/*/heartbeat", WORKERS, WORK, JSON, heartbeat,    \
        IN(const struct store_worker *, worker), IN(const struct store_progress *, progress),      \
        IN(uint32_t, count), IN(int64_t *, cancelled), IN(uint32_t *, cancelled_count),            \
        IN(int64_t *, ttl_ms))                                                                     \
    ROUTED(claim, ORDER, "POST", "/v1/workers/*/claim", WORKERS, WORK, JSON, claim,                \
        IN(const struct store_worker *, worker), IN(int64_t *, claim_id), IN(uint32_t, max),       \
        IN(int64_t, wait_ms), IN(struct job_lease *, leases), IN(uint32_t *, count),               \
        IN(int64_t *, ttl_ms))                                                                     \
    ROUTED(complete, ORDER, "POST", "/v1/completions", WORKERS, WORK, JSON_TEXT, complete,         \
        IN(const struct job_completion *, completions), IN(uint32_t, count),                       \
        IN(struct store_completion_result *, results))                                             \
    ROUTED(awaited, ORDER, "GET", "/v1/workers/*/awaited", ALL, MIXED, NONE, awaited,              \
        KEYS("pool", "since_ms"), IN(const struct store_worker *, worker), IN(int64_t, since_ms),  \
        IN(struct store_awaited *, out))                                                           \
    ROUTED(worker_gone, ORDER, "POST", "/v1/workers/*/gone", WORKERS, WORK, JSON, call,            \
        PATH(worker), WORKER, EMPTY)                                                               \
    ROUTED(partials, ASK, "GET", "/v1/jobs/*/partials", ALL, MIXED, NONE, call,                    \
        PATH_ID(job), ROWS(struct outcome, "outcomes", wire_outcome, PARTIALS_MAX, PARTIALS_MAX),  \
        HELD)                                                                                      \
    ROUTED(suite_status, ASK, "GET", "/v1/suites/*", READERS, READS, NONE, call,                   \
        PATH(suite), RECORD(struct store_suite_status, wire_suite_status))                         \
    ROUTED(suites, ASK, "GET", "/v1/suites", READERS, READS, NONE, call,                           \
        ROWS(store_suite_id, "suites", wire_text_id, LIST_MAX, LIST_MAX))                          \
    ROUTED(outcomes, ASK, "GET", "/v1/outcomes", READERS, READS, NONE, outcomes,                   \
        KEYS("suite", "scenario", "job", "outcome", "verdict"),                                    \
        KEYS("slice", "branches", "after", "limit"),                                               \
        IN(const struct store_outcome_filter *, filter), IN(struct outcome *, out),                \
        IN(uint32_t *, count))                                                                     \
    ROUTED(job, ASK, "GET", "/v1/jobs/*", ALL, MIXED, NONE, call,                                  \
        PATH_ID(job), RECORD(struct store_job, wire_job), HELD)                                    \
    ROUTED(dead_jobs, ASK, "GET", "/v1/suites/*/dead", READERS, READS, NONE, call,                 \
        PATH(suite), AFTER_ID(INT64_MIN),                                                          \
        ROWS(struct store_job, "jobs", wire_job, PAGE_MAX, PAGE_MAX))                              \
    ROUTED(jobs_in_state, ASK, "GET", "/v1/suites/*/jobs", READERS, READS, NONE, call,             \
        PATH(suite), MAYBE(state), AFTER_ID(0),                                                    \
        ROWS(struct store_job, "jobs", wire_job, PAGE_MAX, PAGE_MAX))                              \
    ROUTED(mains, ASK, "GET", "/v1/suites/*/mains", READERS, READS, NONE, call,                    \
        PATH(suite),                                                                               \
        ROWS(struct store_planner_mains, "rows", wire_planner_mains, PAGE_MAX, PAGE_MAX))          \
    ROUTED(ledger, ASK, "GET", "/v1/ledger", READERS, READS, NONE, call,                           \
        MAYBE(suite), ROWS(struct store_ledger_row, "rows", wire_ledger_row, LIST_MAX, LIST_MAX))  \
    ROUTED(price_set, ORDER, "PUT", "/v1/prices/*/*", ADMIN, WORK, JSON, call,                     \
        PATH(pool), PATH(device), MEMBER(price_uusd_per_hour))                                     \
    ROUTED(price_get, ASK, "GET", "/v1/prices/*/*", READERS, READS, NONE, call,                    \
        PATH(pool), PATH(device), NUMBER(price_uusd_per_hour))                                     \
    ROUTED(commits_lost, ASK, "GET", "/v1/losses", READERS, READS, NONE, call,                     \
        NUMBER(commits_lost))                                                                      \
    PLAIN(scenarios_page, ASK,                                                                     \
        IN(const char *, suite), IN(int64_t *, after), IN(store_scenario_visit *, visit),          \
        IN(void *, context))                                                                       \
    ROUTED(demand, ASK, "GET", "/v1/demand", READERS, READS, NONE, call,                           \
        LACKING("this store does not tell what waits in it"),                                      \
        ROWS(struct store_demand, "rows", wire_demand, 0, STORE_DEMAND_ROWS_MAX))                  \
    ROUTED(cancel, ORDER, "POST", "/v1/suites/*/cancel", SUBMIT | ADMIN, WORK, JSON, call,         \
        PATH(suite), EMPTY, TENANT, NUMBER(cancelled))                                             \
    ROUTED(redrives, ASK, "GET", "/v1/redrives", READERS, READS, NONE, call,                       \
        LACKING("this store does not count redrives"), NUMBER(redrives))                           \
    ROUTED(redrive, ORDER, "POST", "/v1/redrives", ADMIN, WORK, JSON, call,                        \
        BODY(struct store_author, wire_author), NUMBER(jobs))                                      \
    ROUTED(models, ASK, "GET", "/v1/models", ALL, MIXED, NONE, call,                               \
        AFTER("model"), ROWS(struct model_version, "models", wire_model, PAGE_MAX, PAGE_MAX))      \
    ROUTED(model_add, ORDER, "PUT", "/v1/models/*", ADMIN, WORK, JSON, call,                       \
        NAMED(struct model_version, wire_model, "model", name))                                    \
    ROUTED(model_event, ORDER, "POST", "/v1/models/*/events", ADMIN, WORK, JSON, call,             \
        NAMED(struct model_event, wire_model_event, "model", model), ACTOR(struct model_event),    \
        RECORD(struct model_event, wire_model_event))                                              \
    ROUTED(model_events, ASK, "GET", "/v1/model-events", READERS, READS, NONE, call,               \
        AFTER_ID(0), ROWS(struct model_event, "events", wire_model_event, PAGE_USUAL, PAGE_MAX))   \
    ROUTED(trust_events, ASK, "GET", "/v1/trust", ALL, MIXED, NONE, call,                          \
        AFTER_ID(0), ROWS(struct trust_event, "events", wire_trust_event, PAGE_USUAL, PAGE_MAX))   \
    ROUTED(trust_event, ORDER, "POST", "/v1/trust", ADMIN, WORK, JSON, call,                       \
        BODY(struct trust_event, wire_trust_event), ACTOR(struct trust_event),                     \
        RECORD(struct trust_event, wire_trust_event))                                              \
    ROUTED(goldens, ASK, "GET", "/v1/goldens", ALL, MIXED, NONE, call,                             \
        AFTER("golden"), ROWS(struct golden_set, "goldens", wire_golden, PAGE_MAX, PAGE_MAX))      \
    ROUTED(golden_add, ORDER, "PUT", "/v1/goldens/*", ADMIN, WORK, JSON, call,                     \
        NAMED(struct golden_set, wire_golden, "golden", name))                                     \
    ROUTED(golden_drop, ORDER, "POST", "/v1/goldens/*/expire", ADMIN, WORK, JSON, call,            \
        EMPTY, PATH(golden))                                                                       \
    ROUTED(label_add, ORDER, "PUT", "/v1/suites/*/labels", SUBMIT | ADMIN, WORK, JSON, label_add,  \
        NAMED(struct label, wire_label, "suite", suite), TENANT)                                   \
    ROUTED(label_drop, ORDER, "POST", "/v1/suites/*/labels/drop", SUBMIT | ADMIN, WORK, JSON,      \
        call, NAMED(struct label, wire_label, "suite", suite), TENANT)                             \
    ROUTED(labels, ASK, "GET", "/v1/labels", READERS, READS, NONE, labels,                         \
        MAYBE(kind), AFTER_ID(0), ROWS(struct label, "labels", wire_label, PAGE_MAX, PAGE_MAX))    \
    ROUTED(planner_keep, ORDER, "PUT", "/v1/suites/*/planners/*", SUBMIT | ADMIN, WORK, FILES,     \
        planner_keep, KEYS("sha256"), IN(const char *, suite), IN(const char *, planner_hash),     \
        IN(const void *, data), IN(size_t, bytes))                                                 \
    ROUTED(planner_kept, ASK, "GET", "/v1/suites/*/planners/*", READERS, READS, NONE,              \
        planner_kept, IN(const char *, suite), IN(const char *, planner_hash),                     \
        IN(void **, data), IN(size_t *, bytes))                                                    \
    ROUTED(artifact_put, ORDER, "PUT", "/v1/artifacts/*", WORKERS, WORK, ARTIFACT, artifact_put,   \
        IN(const void *, data), IN(size_t, bytes), IN(char *, hash))                               \
    ROUTED(artifact_get, ORDER, "GET", "/v1/artifacts/*", ALL, MIXED, NONE, artifact_get,          \
        IN(const char *, hash), IN(void **, data), IN(size_t *, bytes))                            \
    PLAIN(worker_owner, ASK_HERE, IN(const char *, worker), IN(struct store_worker_owner *, out))  \
    PLAIN(outcomes_page, ASK_HERE,                                                                 \
        IN(const struct store_outcome_filter *, filter), IN(struct outcome *, out),                \
        IN(uint32_t *, count), IN(int64_t *, next))                                                \
    PLAIN(stats, ASK_HERE, IN(struct store_stats *, out))                                          \
    PLAIN(suites_page, ASK_HERE,                                                                   \
        IN(const char *, after), IN(store_suite_id *, ids), IN(uint32_t, max),                     \
        IN(uint32_t *, count))                                                                     \
    ROUTED(slices_page, ASK_HERE, "GET", "/v1/suites/*/slices", READERS, READS, NONE, slices,      \
        KEYS("after"), IN(const char *, suite), IN(int64_t, after), IN(struct store_slice *, out), \
        IN(uint32_t *, count), IN(int64_t *, next))                                                \
    PLAIN(suite_tenant, ASK_HERE, IN(const char *, suite), IN(char *, name))                       \
    PLAIN(tenant_sessions, ASK_HERE, IN(const char *, tenant), IN(int64_t *, most))                \
    ROUTED(workers_page, ASK_HERE, "GET", "/v1/workers", READERS, READS, NONE, workers,            \
        KEYS("after", "limit"), IN(const char *, after), IN(struct store_live_worker *, out),      \
        IN(uint32_t, max), IN(uint32_t *, count))                                                  \
    PLAIN(audit_begin, ORDER_HERE, IN(struct store_audit *, entry))                                \
    PLAIN(audit_end, ORDER_HERE, IN(int64_t, id), IN(int64_t, code))                               \
    ROUTED(audit_page, ASK_HERE, "GET", "/v1/log", ADMIN, READS, NONE, call,                       \
        LACKING("this store keeps no log"), AFTER_ID(0),                                           \
        ROWS(struct store_audit, "entries", wire_audit, PAGE_USUAL, PAGE_MAX))                     \
    PLAIN(artifact_write, ORDER_HERE,                                                              \
        IN(size_t, bytes), IN(bool, packed), IN(struct artifact_writer **, out))                   \
    PLAIN(artifact_read, ORDER_HERE,                                                               \
        IN(const char *, hash), IN(bool *, packed), IN(struct artifact_reader **, out),            \
        IN(size_t *, bytes))
/* clang-format on */

/* ---- expanding it ---- */

/* each(one, argument) of each argument of a row. */
#define STORE_EACH(each, one, ...) \
    STORE_EACH_OF(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)(each, one, __VA_ARGS__)
#define STORE_EACH_OF(a, b, c, d, e, f, g, h, count, ...) STORE_EACH_##count
#define STORE_EACH_1(each, one, a) each(one, a)
#define STORE_EACH_2(each, one, a, ...) each(one, a) STORE_EACH_1(each, one, __VA_ARGS__)
#define STORE_EACH_3(each, one, a, ...) each(one, a) STORE_EACH_2(each, one, __VA_ARGS__)
#define STORE_EACH_4(each, one, a, ...) each(one, a) STORE_EACH_3(each, one, __VA_ARGS__)
#define STORE_EACH_5(each, one, a, ...) each(one, a) STORE_EACH_4(each, one, __VA_ARGS__)
#define STORE_EACH_6(each, one, a, ...) each(one, a) STORE_EACH_5(each, one, __VA_ARGS__)
#define STORE_EACH_7(each, one, a, ...) each(one, a) STORE_EACH_6(each, one, __VA_ARGS__)
#define STORE_EACH_8(each, one, a, ...) each(one, a) STORE_EACH_7(each, one, __VA_ARGS__)

/* Arguments as C has them: how many parameters, and the type and name of each. */
#define STORE_AS_PATH(name) 1, const char *, name
#define STORE_AS_PATH_ID(name) 1, int64_t, name
#define STORE_AS_MAYBE(name) 1, const char *, name
#define STORE_AS_AFTER(what) 1, const char *, after
#define STORE_AS_AFTER_ID(min) 1, int64_t, after
#define STORE_AS_MEMBER(name) 1, int64_t, name
#define STORE_AS_BODY(type, codec) 1, const type *, body
#define STORE_AS_NAMED(type, codec, what, member) 1, const type *, body
#define STORE_AS_NUMBER(name) 1, int64_t *, name
#define STORE_AS_RECORD(type, codec) 1, type *, record
#define STORE_AS_ROWS(type, name, codec, usual, most) \
    3, type *, rows, uint32_t, max, uint32_t *, count
#define STORE_AS_IN(type, name) 1, type, name
#define STORE_AS_KEYS(...) 0,
#define STORE_AS_EMPTY 0,
#define STORE_AS_ACTOR(type) 0,
#define STORE_AS_TENANT 0,
#define STORE_AS_WORKER 0,
#define STORE_AS_HELD 0,
#define STORE_AS_LACKING(text) 0,

/* one(type, name) of each parameter of a row. */
#define STORE_PARAMETERS(one, ...) STORE_EACH(STORE_PARAMETERS_OF, one, __VA_ARGS__)
#define STORE_PARAMETERS_OF(one, argument) STORE_PARAMETERS_IN(one, STORE_AS_##argument)
#define STORE_PARAMETERS_IN(one, ...) STORE_PARAMETERS_COUNTED(one, __VA_ARGS__)
#define STORE_PARAMETERS_COUNTED(one, count, ...) STORE_PARAMETERS_##count(one, __VA_ARGS__)
#define STORE_PARAMETERS_0(one, ...)
#define STORE_PARAMETERS_1(one, type, name) one(type, name)
#define STORE_PARAMETERS_3(one, type_a, a, type_b, b, type_c, c) \
    one(type_a, a) one(type_b, b) one(type_c, c)

/* ---- calls ---- */

#define STORE_CALL_NUMBER(function, ...) STORE_CALL_##function,
enum store_call { STORE_CALLS(STORE_CALL_NUMBER, STORE_CALL_NUMBER) STORE_CALL_COUNT };

enum { STORE_ARGUMENT_BYTES = 8, STORE_ARGUMENTS_MAX = 8 };

/* The arguments of a call between store and error, in places of one size:
 * struct store_args_FUNCTION. */
#define STORE_ARGS_MEMBER(type, name) _Alignas(STORE_ARGUMENT_BYTES) type name;
#define STORE_ARGS_ROUTED(function, kind, method, path, roles, lane, body, handler, ...) \
    STORE_ARGS_PLAIN(function, kind, __VA_ARGS__)
#define STORE_ARGS_PLAIN(function, kind, ...)                      \
    struct store_args_##function {                                 \
        STORE_PARAMETERS(STORE_ARGS_MEMBER, __VA_ARGS__)           \
    };                                                             \
    _Static_assert(sizeof(struct store_args_##function) <=         \
                       STORE_ARGUMENT_BYTES * STORE_ARGUMENTS_MAX, \
                   "room for the arguments of every call");
STORE_CALLS(STORE_ARGS_ROUTED, STORE_ARGS_PLAIN)

/* Calls a function of `ops`, which has it. */
enum status store_call(const struct store_ops *ops, struct store *store, unsigned call,
                       const void *args, struct error *error);
bool store_call_known(const struct store_ops *ops, unsigned call);

/* Makes functions of `ops` hand over their arguments to ops->call: those whose kind has the bits
 * of `kind` among those of `mask`. */
void store_calls_relay(struct store_ops *ops, unsigned mask, unsigned kind);

#endif
