// What the files that call libjpeg share: its header, an error handler that leaves by longjmp and counts
// warnings, limits. For src/image alone.
//
// A function with a setjmp holds nothing that has a destructor, and neither does anything between it and
// libjpeg: longjmp skips no destructor.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
// jpeglib.h wants FILE and size_t declared before it.
#include <jerror.h>
#include <jpeglib.h>

#include <array>

#include "image/rgb_image.hpp"

namespace ssd {

struct LibjpegErrors {
  jpeg_error_mgr base;                        // first, so that a jpeg_error_mgr* is a LibjpegErrors*
  std::jmp_buf jump;                          // to be set before each call into libjpeg
  std::array<char, JMSG_LENGTH_MAX> message;  // of the last error
  bool met_end_of_bytes;
  bool ran_out_of_bits;
};

// To be called before jpeg_create_...; returns what goes into the `err` of the libjpeg structure.
jpeg_error_mgr* install(LibjpegErrors& errors);
void forget_warnings(LibjpegErrors& errors);

// Ends a decompression of more scans than encoders write: a progressive file of some kilobytes may hold
// thousands over a large picture, minutes of work each. To be called after jpeg_create_decompress.
void limit_scans(jpeg_decompress_struct& info, jpeg_progress_mgr& progress);

}  // namespace ssd
