// The names of enumeration values in options: one specialisation per enumeration of the framework.
#pragma once

#include "lockstep/optim/rule_table.h"
#include "lockstep/parallel/exchange/allreduce_path.h"
#include "lockstep/train/options/option_value.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

// The values of an enumeration that counts from 0, by a table of their names in this order.
template <class E, std::size_t n>
constexpr std::array<NamedValue<E>, n> named_in_order(const std::array<std::string_view, n>& names) {
  std::array<NamedValue<E>, n> all{};
  for (std::size_t i = 0; i < n; ++i) all[i] = {static_cast<E>(i), names[i]};
  return all;
}

template <>
struct Choices<data::Remainder> {
  static constexpr std::array kAll{NamedValue{data::Remainder::Keep, "keep"},
                                   NamedValue{data::Remainder::Drop, "drop"}};
};

template <>
struct Choices<data::Unreadable> {
  static constexpr std::array kAll{NamedValue{data::Unreadable::Stop, "stop"},
                                   NamedValue{data::Unreadable::Replace, "replace"}};
};

template <>
struct Choices<data::MissingValues> {
  static constexpr std::array kAll{NamedValue{data::MissingValues::Error, "error"},
                                   NamedValue{data::MissingValues::Skip, "skip"},
                                   NamedValue{data::MissingValues::Mean, "mean"}};
};

template <>
struct Choices<data::FieldScaling> {
  static constexpr auto kAll = named_in_order<data::FieldScaling>(data::kFieldScalingNames);
};

template <>
struct Choices<data::SymmetryKind> {
  static constexpr auto kAll = named_in_order<data::SymmetryKind>(data::kSymmetryKindNames);
};

template <>
struct Choices<data::AutoAugment> {
  static constexpr std::array kAll{NamedValue{data::AutoAugment::None, "none"},
                                   NamedValue{data::AutoAugment::RandAugment, "ra"}};
};

template <>
struct Choices<data::PixelSource> {
  static constexpr std::array kAll{NamedValue{data::PixelSource::Auto, "auto"},
                                   NamedValue{data::PixelSource::ImageNet, "imagenet"},
                                   NamedValue{data::PixelSource::Measured, "measured"}};
};

template <>
struct Choices<data::ReservoirPolicy> {
  static constexpr std::array kAll{NamedValue{data::ReservoirPolicy::Uniform, "uniform"},
                                   NamedValue{data::ReservoirPolicy::Recent, "recent"}};
};

template <>
struct Choices<Precision> {
  static constexpr std::array kAll{NamedValue{Precision::F32, "f32"}, NamedValue{Precision::F64, "f64"},
                                   NamedValue{Precision::BF16, "bf16"},
                                   NamedValue{Precision::BF16Emulated, "bf16-emulated"}};
};

template <>
struct Choices<kernels::KernelOptions::ConvMath> {
  using ConvMath = kernels::KernelOptions::ConvMath;
  static constexpr std::array kAll{NamedValue{ConvMath::Fast, "fast"}, NamedValue{ConvMath::Accurate, "accurate"},
                                   NamedValue{ConvMath::Exact, "exact"}};
};

template <>
struct Choices<kernels::KernelOptions::Bits> {
  using Bits = kernels::KernelOptions::Bits;
  static constexpr std::array kAll{NamedValue{Bits::Fast, "fast"}, NamedValue{Bits::Portable, "portable"}};
};

template <>
struct Choices<plan::Recompute> {
  static constexpr std::array kAll{NamedValue{plan::Recompute::None, "none"},
                                   NamedValue{plan::Recompute::Norms, "norms"},
                                   NamedValue{plan::Recompute::Blocks, "blocks"}};
};

template <>
struct Choices<optim::Rule> {
  static constexpr auto kAll = [] {
    std::array<NamedValue<optim::Rule>, optim::kRules.size()> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = {optim::kRules[i].rule, optim::kRules[i].name};
    return all;
  }();
};

template <>
struct Choices<optim::RowRule> {
  using RowRule = optim::RowRule;
  static constexpr std::array kAll{NamedValue{RowRule::Sgd, "sgd"}, NamedValue{RowRule::Adagrad, "adagrad"},
                                   NamedValue{RowRule::AdagradRowwise, "rowwise-adagrad"},
                                   NamedValue{RowRule::Adam, "adam"}, NamedValue{RowRule::Ftrl, "ftrl"}};
};

template <>
struct Choices<parallel::RowPlacement> {
  using Placement = parallel::RowPlacement;
  static constexpr std::array kAll{NamedValue{Placement::Hash, "hash"}, NamedValue{Placement::Range, "range"}};
};

template <>
struct Choices<parallel::TableExchange> {
  using Exchange = parallel::TableExchange;
  static constexpr std::array kAll{NamedValue{Exchange::Auto, "auto"}, NamedValue{Exchange::Rows, "rows"},
                                   NamedValue{Exchange::Blocks, "blocks"}};
};

template <>
struct Choices<optim::ScheduleOptions::Kind> {
  using Kind = optim::ScheduleOptions::Kind;
  static constexpr std::array kAll{NamedValue{Kind::Constant, "constant"},
                                   NamedValue{Kind::Step, "step"},
                                   NamedValue{Kind::Cosine, "cosine"},
                                   NamedValue{Kind::OneCycle, "one-cycle"},
                                   NamedValue{Kind::CosineRestarts, "cosine-restarts"},
                                   NamedValue{Kind::Polynomial, "polynomial"},
                                   NamedValue{Kind::Exponential, "exponential"},
                                   NamedValue{Kind::InverseSqrt, "inverse-sqrt"},
                                   NamedValue{Kind::Plateau, "plateau"}};
};

template <>
struct Choices<parallel::AllreducePath> {
  static constexpr auto kAll = named_in_order<parallel::AllreducePath>(parallel::kAllreducePathNames);
};

template <>
struct Choices<SharingDomain> {
  static constexpr std::array kAll{NamedValue{SharingDomain::Node, "node"}, NamedValue{SharingDomain::Numa, "numa"}};
};

template <>
struct Choices<parallel::Wire> {
  static constexpr std::array kAll{NamedValue{parallel::Wire::Exact, "f32"}, NamedValue{parallel::Wire::BF16, "bf16"},
                                   NamedValue{parallel::Wire::F16, "f16"}};
};

template <>
struct Choices<ParallelOptions::Overlap> {
  using Overlap = ParallelOptions::Overlap;
  static constexpr std::array kAll{NamedValue{Overlap::Auto, "auto"}, NamedValue{Overlap::Thread, "thread"},
                                   NamedValue{Overlap::Steps, "steps"}};
};

template <>
struct Choices<plan::Unused> {
  static constexpr std::array kAll{NamedValue{plan::Unused::Error, "error"},
                                   NamedValue{plan::Unused::Ignore, "ignore"}};
};

template <>
struct Choices<LogLevel> {
  static constexpr std::array kAll{NamedValue{LogLevel::Trace, "trace"}, NamedValue{LogLevel::Debug, "debug"},
                                   NamedValue{LogLevel::Info, "info"},   NamedValue{LogLevel::Warning, "warning"},
                                   NamedValue{LogLevel::Error, "error"}, NamedValue{LogLevel::Off, "off"}};
};

template <>
struct Choices<OnMismatch> {
  static constexpr std::array kAll{NamedValue{OnMismatch::Repair, "repair"},
                                   NamedValue{OnMismatch::RollBack, "rollback"}, NamedValue{OnMismatch::Stop, "stop"}};
};

template <>
struct Choices<GuardAction> {
  static constexpr std::array kAll{NamedValue{GuardAction::Log, "log"}, NamedValue{GuardAction::Skip, "skip"},
                                   NamedValue{GuardAction::Stop, "stop"}};
};

}  // namespace lockstep::train
