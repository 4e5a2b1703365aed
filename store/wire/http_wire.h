/*
 * Parts that server and client of the HTTP API share: published limits, the mapping of statuses to
 * HTTP codes, percent-coding, and the JSON forms of the store's own records. The API itself is
 * described in schemas/openapi.yaml.
 *
 * Private to the store room.
 */
#ifndef SWERVE_STORE_WIRE_HTTP_WIRE_H
#define SWERVE_STORE_WIRE_HTTP_WIRE_H

#include "schemas/json_record.h"
#include "store/api/store.h"

enum {
    /* Raised when a peer of the version before would refuse what is said now: unknown members and
     * paths are errors. */
    HTTP_API_VERSION = 5,
    HTTP_CONNECTIONS_MAX = 4096, /* further ones are answered 503, or wait */
    HTTP_RETRY_S = 1,            /* Retry-After of 429 and 503 */
    HTTP_HEADER_BYTES_MAX = 32 << 10,
    HTTP_URI_BYTES_MAX = 2048,
    HTTP_JSON_BYTES_MAX = 64 << 20,      /* one JSON body, either way */
    HTTP_DOCUMENT_BYTES_MAX = 192 << 20, /* memory that a JSON body may take when it is parsed */
    HTTP_BUFFERED_BYTES_MAX = 1 << 30,   /* bodies of all requests together */
    HTTP_READER_BYTES_MAX = 256 << 20,   /* of these, answers to those who only read */
    HTTP_UPLOADS_MAX = 64,               /* artifacts on their way in at one time */
    HTTP_DOWNLOADS_MAX = 128,            /* and out .. */
    HTTP_READER_DOWNLOADS_MAX = 96,      /* .. of which to those who only read */
    HTTP_SUBMIT_JOBS_MAX = 16384,        /* jobs of one submit request */
    HTTP_COMPLETIONS_MAX = 1024,         /* of one request */
    HTTP_COMPLETION_OUTCOMES_MAX = 4096, /* of all completions of one request */
    HTTP_PROGRESS_MAX = 4096,            /* entries of one heartbeat */
    HTTP_LIST_MAX = 4096,                /* suites, ledger rows of one reply */
    HTTP_PAGE_MAX = 1000,                /* outcomes, dead jobs of one reply */
    HTTP_WAIT_MS_MAX = 60000,            /* long poll */
    HTTP_WAIT_SLICE_MS = 500,            /* how soon a waiting claim notices a stop */
    HTTP_IDLE_MS = 120000,               /* keep-alive connection without a request */
    HTTP_UNKNOWN_MS = 5000,              /* until the first request of whoever may ask */
    HTTP_REQUEST_MS = 30000,             /* to send a request, or to take a reply .. */
    HTTP_BYTES_PER_MS_MIN = 1 << 10,     /* .. plus its bytes at this rate */
    HTTP_CONNECT_MS = 5000,
};

/* Failures of the transport, told apart from what the store answers. Never leave the room. */
#define HTTP_UNREACHED ((enum status)(STATUS_COUNT + 1)) /* surely not executed */
#define HTTP_LOST ((enum status)(STATUS_COUNT + 2))      /* executed or not: unknown */

int http_code_of(enum status status);

/* {"error": {"status": "bad_input", "text": ".."}}; NULL when memory runs out. */
json_t *http_error_encode(const struct error *error);
/* The status and text of such a body; STATUS_STORE with what was found when it is none. */
enum status http_error_decode(const char *what, int code, const char *body, size_t bytes,
                              struct error *error);

/* Appends `text` percent-coded (RFC 3986 unreserved kept). False: does not fit; always terminated.
 */
bool http_percent_encode(const char *text, char *out, size_t capacity);
/* Decodes bytes [0, bytes); NUL, broken escapes: BAD_INPUT; over capacity - 1: LIMIT. */
enum status http_percent_decode(const char *what, const char *text, size_t bytes, char *out,
                                size_t capacity, struct error *error);

/* Identifiers come from callers, and may be longer than any identifier that the store knows. */
enum status http_id_check(const char *what, const char *id, size_t capacity, struct error *error);

/* At most how much memory a parsed document of this text takes. An array of empty objects takes a
 * hundred times its text. */
size_t http_document_bytes(const char *text, size_t bytes);

/* ---- codecs ---- */

/* The form of one record: an object of the members of a table, or one value alone. */
struct wire_codec {
    size_t bytes; /* sizeof of the record */
    const struct json_field_list *list;
    const struct json_field *field; /* without a list */
};

extern const struct wire_codec wire_submit_result;     /* struct store_submit_result */
extern const struct wire_codec wire_progress;          /* struct store_progress */
extern const struct wire_codec wire_completion_result; /* struct store_completion_result */
extern const struct wire_codec wire_suite_status;      /* struct store_suite_status */
extern const struct wire_codec wire_planner_mains;     /* struct store_planner_mains */
extern const struct wire_codec wire_ledger_row;        /* struct store_ledger_row */
extern const struct wire_codec wire_awaited;           /* struct store_awaited */
extern const struct wire_codec wire_demand;            /* struct store_demand */
extern const struct wire_codec wire_job;               /* struct store_job */
extern const struct wire_codec wire_lease;             /* struct job_lease */
extern const struct wire_codec wire_outcome;           /* struct outcome */
extern const struct wire_codec wire_model;             /* struct model_version */
extern const struct wire_codec wire_model_event;       /* struct model_event */
extern const struct wire_codec wire_tenant;            /* struct tenant */
extern const struct wire_codec wire_trust_event;       /* struct trust_event */
extern const struct wire_codec wire_golden;            /* struct golden_set */
extern const struct wire_codec wire_label;             /* struct label */
extern const struct wire_codec wire_audit;             /* struct store_audit */
extern const struct wire_codec wire_author;            /* struct store_author */
extern const struct wire_codec wire_planner;           /* struct store_planner */
extern const struct wire_codec wire_planner_in_world;  /* .. with in_world */
extern const struct wire_codec wire_live_worker;       /* struct store_live_worker */
extern const struct wire_codec wire_text_id;           /* char[LIMIT_ID_BYTES] */
extern const struct wire_codec wire_i64;               /* int64_t */

/* A new reference for one record, or NULL when memory runs out; strict reading of one, which may be
 * partly written on failure. */
json_t *wire_encode(const struct wire_codec *codec, const void *record);
enum status wire_decode(const struct wire_codec *codec, const struct json_cursor *cursor,
                        void *record, struct error *error);

/* A JSON array of `count` records; NULL when memory runs out. */
json_t *wire_list_encode(const struct wire_codec *codec, const void *records, size_t count);

/* At most `max` records into the caller's array. */
enum status wire_list_decode(const struct wire_codec *codec, const struct json_cursor *cursor,
                             void *records, size_t max, uint32_t *count, struct error *error);

#endif
