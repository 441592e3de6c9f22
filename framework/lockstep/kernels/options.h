// The settings of kernels, for all nodes of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace lockstep::kernels {

struct KernelOffer;
struct KernelRequest;

struct KernelOptions {
  // Fast: any algorithm. Accurate: of Winograd's transforms only F(2x2, 3x3), whose error is near that of a direct sum.
  // Exact: no algorithm that rounds more than a direct sum does.
  enum class ConvMath : std::uint8_t { Fast, Accurate, Exact };
  ConvMath conv_math = ConvMath::Fast;
  // Portable: only kernels whose offers promise the same bits on every processor, with every compiler and any number of
  // threads (KernelOffer::portable).
  enum class Bits : std::uint8_t { Fast, Portable };
  Bits bits = Bits::Fast;
  // The set of kernels that is asked first: "generic", "native" or "onednn"; "": the usual order of sets. The text must
  // outlive the model, as a literal does.
  std::string_view prefer = {};
  bool operator==(const KernelOptions&) const = default;
};

// "fast", "accurate" or "exact".
constexpr std::string_view name_of(KernelOptions::ConvMath math) {
  switch (math) {
    case KernelOptions::ConvMath::Fast:
      return "fast";
    case KernelOptions::ConvMath::Accurate:
      return "accurate";
    case KernelOptions::ConvMath::Exact:
      break;
  }
  return "exact";
}

// Returns the index of the chosen offer; called where there are at least two offers.
using KernelChooser = std::function<std::size_t(const KernelRequest&, std::span<const KernelOffer>)>;

}  // namespace lockstep::kernels
