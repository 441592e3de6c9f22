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
  // Exact: no algorithm that rounds more than a direct sum does (Winograd's transforms).
  enum class ConvMath : std::uint8_t { Fast, Exact };
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

// Returns the index of the chosen offer; called where there are at least two offers.
using KernelChooser = std::function<std::size_t(const KernelRequest&, std::span<const KernelOffer>)>;

}  // namespace lockstep::kernels
