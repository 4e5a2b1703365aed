// Goal: schemas/planner.h is usable from C++11 as documented. Method: it compiles first and alone,
// and a planner written in C++ fills the table and is called through it.
#include "schemas/planner.h"

#include <cstdio>

namespace
{

int open(void **planner, const char *, uint32_t, char *, uint32_t)
{
    *planner = new double(0.5);
    return 0;
}

void close(void *planner)
{
    delete static_cast<double *>(planner);
}

int act(void *planner, uint32_t count, const swerve_observation *, swerve_action *actions,
        uint8_t *, char *, uint32_t)
{
    for (uint32_t i = 0; i < count; i++) {
        actions[i].accel_mps2 = *static_cast<double *>(planner);
    }
    return 0;
}

swerve_planner_ops make_ops()
{
    swerve_planner_ops ops = swerve_planner_ops();
    ops.abi_version = SWERVE_PLANNER_ABI_VERSION;
    ops.wants = SWERVE_WANTS_BEV;
    ops.name = "cpp";
    ops.open = open;
    ops.close = close;
    ops.act = act;
    return ops;
}

const swerve_planner_ops table = make_ops();

} // namespace

extern "C" const swerve_planner_ops *swerve_planner_entry()
{
    return &table;
}

int main()
{
    swerve_planner_entry_fn entry = swerve_planner_entry;
    void *planner = nullptr;
    swerve_observation seen = swerve_observation();
    swerve_action action = swerve_action();
    uint8_t failed = 0;
    bool right = entry()->open(&planner, "", 1, nullptr, 0) == 0 &&
                 entry()->act(planner, 1, &seen, &action, &failed, nullptr, 0) == 0 &&
                 action.accel_mps2 == 0.5;
    entry()->close(planner);
    std::printf("1..1\n%s 1 - a C++ planner fills the table\n", right ? "ok" : "not ok");
    return right ? 0 : 1;
}
