/*
 * Reads that outlive their connection: whoever reads a store in PostgreSQL waits, for as long as
 * writers do, while the database is away.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_AGAIN_H
#define SWERVE_STORE_POSTGRES_POSTGRES_AGAIN_H

#include "store/api/store.h"

/* Puts repeating calls in the place of those that read. */
void postgres_again_adapt(struct store_ops *ops);

#endif
