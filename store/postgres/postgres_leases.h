/*
 * Leases that several processes on one PostgreSQL database share (struct lease_peers).
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_LEASES_H
#define SWERVE_STORE_POSTGRES_POSTGRES_LEASES_H

#include "store/sql/lease.h"

extern const struct lease_peers postgres_lease_peers;

#endif
