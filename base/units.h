/*
 * Units: the few conversion constants of the product, each in one place.
 *
 * Suffixes across the code: _ns _ms _s _m _mm _mps _mps2 _rad _rps _bytes _uusd. Money is integer
 * micro-dollars, durations integer nanoseconds; both are divided once, at display.
 */
#ifndef SWERVE_BASE_UNITS_H
#define SWERVE_BASE_UNITS_H

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_HOUR (INT64_C(3600) * NS_PER_S)
#define UUSD_PER_USD INT64_C(1000000)
#define M_PER_MILE 1609.344 /* international mile, exact */
#define MM_PER_M INT64_C(1000)
#define MPS_PER_KPH (1.0 / 3.6)
#define PI_RAD 3.14159265358979323846
#define GRAVITY_MPS2 9.81

/* One simulation tick: every world runs at 10 Hz. */
#define TICK_S 0.1
#define TICK_NS (NS_PER_S / 10)
#define TICK_HZ 10

#endif
