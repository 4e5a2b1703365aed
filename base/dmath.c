/* The functions that have their bodies in base/dmath_inline.h, and those that only hosts need. */
#include "base/dmath.h"

#include "base/dmath_inline.h"

void dmath_sincos(double x_rad, double *sin_out, double *cos_out)
{
    inline_sincos(x_rad, sin_out, cos_out);
}

double dmath_atan(double x)
{
    return inline_atan(x);
}

double dmath_exp(double x)
{
    return inline_exp(x);
}

double dmath_wrap_angle(double x_rad)
{
    return inline_wrap_angle(x_rad);
}

double dmath_sin(double x_rad)
{
    double s;
    double c;
    dmath_sincos(x_rad, &s, &c);
    return s;
}

double dmath_cos(double x_rad)
{
    double s;
    double c;
    dmath_sincos(x_rad, &s, &c);
    return c;
}

double dmath_tan(double x_rad)
{
    double s;
    double c;
    dmath_sincos(x_rad, &s, &c);
    return s / c;
}

double dmath_atan2(double y, double x)
{
    if (x == 0.0 && y == 0.0) {
        return 0.0;
    }
    if (fabs(x) >= fabs(y)) {
        double a = dmath_atan(y / x);
        if (x > 0) {
            return a;
        }
        return y < 0 ? a - PI_RAD : a + PI_RAD;
    }
    double a = dmath_atan(x / y);
    return y > 0 ? PI_RAD / 2 - a : -PI_RAD / 2 - a;
}

double dmath_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int exponent = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    /* log m = 2 atanh((m-1)/(m+1)), |argument| <= 0.172: next term 2*0.172^23/23 < 1e-18. */
    double t = (m - 1.0) / (m + 1.0);
    double z = t * t;
    double p = 0.0;
    for (int k = 10; k >= 0; k--) {
        p = 1.0 / (2 * k + 1) + z * p;
    }
    return exponent * LN2_HIGH + (exponent * LN2_LOW + 2.0 * t * p);
}
