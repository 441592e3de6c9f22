// libjpeg-turbo's headers, which expect <cstdio> before them, and jerror.h after jpeglib.h.
#pragma once

// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
