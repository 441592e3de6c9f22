// The largest of many errors, which a NaN must not hide in.
#pragma once

#include <cmath>

namespace lockstep {

// The larger of two errors, or NaN if one of them is; std::max may drop it.
inline double larger(double worst, double error) { return error <= worst || std::isnan(worst) ? worst : error; }

}  // namespace lockstep
