// A ColorTransform in fixed point, for color.cpp alone.
#pragma once

#include <array>
#include <cstdint>

namespace ssd {

inline constexpr int kFixedColorBits = 12;  // behind the point

struct FixedColor {
  std::array<std::array<std::int32_t, 3>, 3> matrix{};
  std::int32_t offset = 0;  // with the half that rounds
};

}  // namespace ssd
