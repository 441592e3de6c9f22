// What tests include beside the library's list.
#pragma once

#include <gtest/gtest.h>

#include "library.h"
