/*
 * The failing half of CHECK(): out of line so that the passing half costs one branch.
 */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: bug: CHECK(%s) does not hold\n", file, line, condition);
    abort();
}
