#include "image/libjpeg.hpp"

namespace ssd {
namespace {

constexpr int kMostScans = 500;  // encoders write about ten

LibjpegErrors& errors_of(j_common_ptr info) {
  return *reinterpret_cast<LibjpegErrors*>(info->err);
}

[[noreturn]] void leave_with_error(j_common_ptr info) {
  auto& errors = errors_of(info);
  info->err->format_message(info, errors.message.data());
  std::longjmp(errors.jump, 1);
}

void count_warning(j_common_ptr info, int level) {
  if (level >= 0) return;
  auto& errors = errors_of(info);
  ++errors.base.num_warnings;
  errors.met_end_of_bytes |= errors.base.msg_code == JWRN_JPEG_EOF;
  errors.ran_out_of_bits |= errors.base.msg_code == JWRN_HIT_MARKER;
}

void stop_at_too_many_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto& errors = errors_of(info);
  std::snprintf(errors.message.data(), errors.message.size(), "more than %d scans", kMostScans);
  std::longjmp(errors.jump, 1);
}

}  // namespace

jpeg_error_mgr* install(LibjpegErrors& errors) {
  auto* base = jpeg_std_error(&errors.base);
  base->error_exit = leave_with_error;
  base->emit_message = count_warning;
  return base;
}

void forget_warnings(LibjpegErrors& errors) {
  errors.base.num_warnings = 0;
  errors.met_end_of_bytes = false;
  errors.ran_out_of_bits = false;
}

void limit_scans(jpeg_decompress_struct& info, jpeg_progress_mgr& progress) {
  progress.progress_monitor = stop_at_too_many_scans;
  info.progress = &progress;
}

}  // namespace ssd
