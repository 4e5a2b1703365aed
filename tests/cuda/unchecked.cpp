/*
 * Part of the emulated module that is compiled without calls before its memory accesses: the
 * emulator sees only some of them, so its checks are off from the moment that it is loaded.
 */
#include "tests/simt/simt_control.h"

__attribute__((constructor)) static void unchecked(void)
{
    simt_check(0);
}
