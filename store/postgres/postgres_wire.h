/*
 * Bytes and codes that PostgreSQL sends, without a connection: columns in binary form, SQLSTATEs,
 * and parameters of URLs. Pure functions.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_WIRE_H
#define SWERVE_STORE_POSTGRES_POSTGRES_WIRE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of columns, from PostgreSQL's pg_type.dat. */
enum {
    TYPE_BOOL = 16,
    TYPE_INT8 = 20,
    TYPE_INT2 = 21,
    TYPE_INT4 = 23,
    TYPE_FLOAT4 = 700,
    TYPE_FLOAT8 = 701,
    TYPE_NUMERIC = 1700
};

/* The highest byte first. */
uint64_t postgres_wire_uint(const char *data, int bytes);
/* A sum of 64-bit integers is a numeric: digits to the base of 10,000, the highest first. One that
 * does not fit is the largest or smallest integer. */
int64_t postgres_wire_numeric(const char *data);
/* Of 4 or 8 bytes. */
double postgres_wire_double(const char *data, int bytes);

/* SQLSTATE of a wait for a lock that lasted too long. */
#define POSTGRES_LOCK_TIMEOUT "55P03"

/* Status for a SQLSTATE ("": none), on a connection that is lost or not. */
enum status postgres_wire_status(const char *state, bool lost);

/* Cuts "name=value" out of a URL's parameters; value "" where there is none. */
void postgres_wire_cut(char *url, const char *name, char *value, size_t value_bytes);

/* Puts the bytes that %XX stand for in their place. False: a % without two digits, or byte 0. */
bool postgres_wire_decode(char *value);

#endif
