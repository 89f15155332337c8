// 16-bit floats as raw bits: IEEE half (1-5-10) and bfloat16 (1-8-7), converted in blocks with round to
// nearest even, by vectors with the bits of the scalar functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bfloat16.hpp"

namespace ssd {

float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);

// sum[i] += term[i], each sum rounded to half. No alignment is needed. Equal lengths.
void add_halves(std::uint16_t* sum, const std::uint16_t* term, std::size_t count);
void add_bfloat16s(std::uint16_t* sum, const std::uint16_t* term, std::size_t count);

// out[i] = half(scale * values[i]). The 16-bit form may work in place.
void floats_to_halves(const float* values, float scale, std::uint16_t* out, std::size_t count);
void bfloat16s_to_halves(const std::uint16_t* values, float scale, std::uint16_t* out, std::size_t count);

// out[i] = values[i], exactly.
void halves_to_floats(const std::uint16_t* values, float* out, std::size_t count);
void bfloat16s_to_floats(const std::uint16_t* values, float* out, std::size_t count);

}  // namespace ssd
