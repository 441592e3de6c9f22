#include <gtest/gtest.h>

#include "lockstep/core/error.h"
#include "lockstep/core/subnormals.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/train/prepare/trainer_checks.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace lockstep::train {
namespace {

// With the flags of the processor that a program linked with -ffast-math sets.
TEST(PortableBits, AreRefusedInAProcessWithoutSubnormalNumbers) {
  EXPECT_FALSE(flushes_subnormals());
  TrainerOptions options{.global_batch = 8};
  options.rule = optim::sgd({});
  options.compile.kernels.bits = kernels::KernelOptions::Bits::Portable;
  const std::vector<data::Field> fields{{"image", Shape{4}, DType::F32}};
  EXPECT_NO_THROW(check_trainer_options(options, fields, 1));
#if defined(__x86_64__)
  for (const unsigned flag : {0x8000u, 0x40u}) {  // results, operands
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | flag);
    const bool seen = flushes_subnormals();
    std::string error;
    try {
      check_trainer_options(options, fields, 1);
    } catch (const Error& e) {
      error = e.what();
    }
    _mm_setcsr(before);
    EXPECT_TRUE(seen);
    EXPECT_NE(error.find("makes zeros of subnormal numbers"), std::string::npos) << error;
  }
#endif
}

}  // namespace
}  // namespace lockstep::train
