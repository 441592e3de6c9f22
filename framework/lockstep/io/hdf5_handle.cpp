#include "lockstep/io/hdf5_handle.h"

#include <hdf5.h>

#include <type_traits>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

static_assert(std::is_same_v<hid_t, Hdf5Id> && std::is_same_v<herr_t, int>);

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

// Returns the messages of the thread's error stack, outermost call first, each text once.
std::string error_text() {
  std::string text;
  const auto append = [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
    auto& joined = *static_cast<std::string*>(out);
    const std::string_view message = entry->desc ? entry->desc : "";
    if (!message.empty() && joined.find(message) == std::string::npos) {
      if (!joined.empty()) joined += " <- ";
      joined += message;
    }
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "HDF5 gave no reason" : text;
}

}  // namespace

std::unique_lock<std::mutex> lock_hdf5() { return std::unique_lock(hdf5_mutex()); }

Hdf5Session::Hdf5Session() : lock_(hdf5_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::int64_t check_hdf5(std::int64_t code, std::string_view file, std::string_view operation, std::string_view site) {
  if (code < 0) fail(site, "{}: {}: {}", file, operation, error_text());
  return code;
}

}  // namespace lockstep::io
