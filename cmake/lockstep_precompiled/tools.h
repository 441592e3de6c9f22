// What the command-line tools include beside the library's list.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "library.h"
