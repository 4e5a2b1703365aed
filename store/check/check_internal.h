/*
 * The parts of a check: check.c (the whole, and what it says), check_queries.c (what one statement
 * can find), check_questions.c (questions of outcomes, audits, successors), check_rows.c (what
 * takes arithmetic: digests, counters, money), check_artifacts.c.
 */
#ifndef SWERVE_STORE_SQLITE_CHECK_INTERNAL_H
#define SWERVE_STORE_SQLITE_CHECK_INTERNAL_H

#include "store/artifacts/artifacts.h"
#include "store/check/check.h"
#include "store/sql/sqlite_db.h"

#include <stddef.h>

enum { CHECK_KINDS_MAX = 64, CHECK_FINDINGS_MAX = 20 };

struct check {
    const struct store_check_options *options;
    struct store_check_summary *summary;
    struct db *db;
    const char *path;   /* of the store, for sentences */
    const char *beside; /* .. whose artifacts are in BESIDE.artifacts; NULL: they are not read */
    struct {
        const char *kind;
        int64_t count;
    } kinds[CHECK_KINDS_MAX];
    size_t kind_count;
};

struct check_references;

/* Reports a fault (or a note), unless there were enough of its kind. */
void check_fault(struct check *check, const char *kind, const char *place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void check_note(struct check *check, const char *kind, const char *place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Looks at all that rows say, inside a read transaction on check->db, then at the artifacts, with
 * the connection closed. For a file, check_integrity comes first. */
enum status check_rows(struct check *check, struct check_references *references,
                       struct error *error);
enum status check_files(struct check *check, struct check_references *references, int64_t begun_s,
                        struct error *error);

/* A statement that failed is a fault of the store's (a damaged page, a sum that overflows), after
 * which other statements may still work. Others are returned. */
enum status check_statement(struct check *check, const char *what, enum status status,
                            const struct error *why, struct error *error);

/* Looks for rows (place, sentence) by one statement, and tells of each: a fault, or a note. */
enum status check_query(struct check *check, bool note, const char *kind, const char *what,
                        const char *sql, struct error *error);

/* Opens the store at check->path in one read transaction, on check->db, which the caller closes on
 * failure, too. BUSY: a program had it to itself for all of options->wait_ms. */
enum status check_begin(struct check *check, struct error *error);

enum status check_integrity(struct check *check, struct error *error);
enum status check_queries(struct check *check, struct error *error);
enum status check_questions(struct check *check, struct error *error);
enum status check_outcomes(struct check *check, struct error *error);
enum status check_money(struct check *check, struct error *error);
enum status check_models(struct check *check, struct error *error);
enum status check_scenarios(struct check *check, struct error *error);

/* The artifacts that rows refer to. */
struct check_reference {
    uint8_t hash[SHA256_BYTES];
    int64_t outcome; /* one of those that refer to it; 0: an attempt */
    bool met;
};
struct check_references {
    struct check_reference *rows; /* owned */
    size_t count;
    size_t capacity;
};
/* Inside the read transaction. */
enum status check_references_read(struct check *check, struct check_references *out,
                                  struct error *error);
/* NULL: nothing refers to it. */
struct check_reference *check_references_find(const struct check_references *references,
                                              const char *hash);
void check_references_finish(struct check_references *references);
/* `begun_s`: files from later on may belong to rows that were not seen. */
enum status check_artifacts(struct check *check, struct check_references *references,
                            int64_t begun_s, struct error *error);

#endif
