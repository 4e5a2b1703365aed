/*
 * Passes on what the kernels found out about the processor.
 */
#include "engine/bench/machine.h"

#include "kernels/cpu.h"

uint32_t machine_cpu_flags(void)
{
    return cpu_flags_detect();
}
