// Constants that no second cache holds between two calls: while a panel of one is in use, the lines
// of the next are asked for, evenly over the steps of all tiles, so that they are near in time.
#pragma once

#include <cstdint>
#include <string>

#include "ir/target/target_info.h"
#include "passes/schedule/nest.h"

namespace backcast {

/// The packed constant to fetch ahead (NestSchedule::fetched); empty where that gains nothing.
/// `program_bytes`: of all constants of the program, which displace one another.
std::string constant_to_fetch(const loop::Definition& definition, const NestSchedule& schedule,
                              int64_t program_bytes, const TargetInfo& target);

}  // namespace backcast
