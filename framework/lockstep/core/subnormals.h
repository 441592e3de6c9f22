// Whether this process computes with subnormal numbers, those below 2^-126 in f32. A program or library that was linked
// with -ffast-math, -Ofast or Intel's default sets a flag of the processor that makes zeros of them.
#pragma once

namespace lockstep {

// On the calling thread, or on another of OpenMP's threads, which are started if there are none yet.
bool flushes_subnormals();

}  // namespace lockstep
