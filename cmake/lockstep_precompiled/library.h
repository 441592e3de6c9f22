// What most sources of the library include anyway. Compiled once, it saves about a fifth of the build; every source
// still includes what it uses (-DLOCKSTEP_PRECOMPILE=OFF shows that, and scripts/tidy.sh builds so).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
