// The HDF5 C library in C++: one move-only class per handle, one check that turns its error stack into
// LibraryError, and the few calls that shards need. No other file calls HDF5. Not thread safe, and neither is
// the library: one thread.
#pragma once

#include <hdf5.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ssd {

// Throw LibraryError with the reason in HDF5's error stack. Return what they were given.
hid_t check_hdf5_id(hid_t id, const char* call);
void check_hdf5(herr_t status, const char* call);

namespace detail {
void log_failed_close() noexcept;
}

// Owns an id. A close that fails in the destructor is logged; where it matters call close().
template <herr_t (*kClose)(hid_t)>
class Hdf5Handle {
 public:
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, const char* call) : id_(check_hdf5_id(id, call)) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0 && kClose(id_) < 0) detail::log_failed_close();
  }

  hid_t id() const { return id_; }
  void close() { check_hdf5(kClose(std::exchange(id_, H5I_INVALID_HID)), "close"); }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

using Hdf5File = Hdf5Handle<H5Fclose>;
using Hdf5Group = Hdf5Handle<H5Gclose>;
using Hdf5Dataset = Hdf5Handle<H5Dclose>;
using Hdf5Space = Hdf5Handle<H5Sclose>;
using Hdf5Type = Hdf5Handle<H5Tclose>;
using Hdf5Attribute = Hdf5Handle<H5Aclose>;
using Hdf5Properties = Hdf5Handle<H5Pclose>;

// A new file with pinned format bounds, without times; raw data of alignment_bytes or more begins at a
// multiple of it.
Hdf5File create_hdf5_file(const std::filesystem::path& path, std::uint64_t alignment_bytes);
// Read only, with file locking off where the library can.
Hdf5File open_hdf5_file(const std::filesystem::path& path);
void create_hdf5_group(const Hdf5File& file, const char* name);

// Element types in the file (little-endian). Arrays give the dataset a second dimension.
enum class Hdf5Number { uint8, int32, uint32, int64, uint64, float64 };

template <class T>
constexpr Hdf5Number hdf5_number() {
  if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>)
    return Hdf5Number::uint8;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return Hdf5Number::int32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return Hdf5Number::uint32;
  else if constexpr (std::is_same_v<T, std::int64_t>)
    return Hdf5Number::int64;
  else if constexpr (std::is_same_v<T, std::uint64_t>)
    return Hdf5Number::uint64;
  else {
    static_assert(std::is_same_v<T, double>);
    return Hdf5Number::float64;
  }
}

// Rows of `columns` numbers each; columns == 1 is a dataset of one dimension.
struct Hdf5Layout {
  Hdf5Number number;
  std::uint64_t columns;
};

template <class T>
struct Hdf5LayoutOf {
  static constexpr Hdf5Layout value{hdf5_number<T>(), 1};
};
template <class T, std::size_t kColumns>
struct Hdf5LayoutOf<std::array<T, kColumns>> {
  static constexpr Hdf5Layout value{hdf5_number<T>(), kColumns};
};

// A contiguous dataset. Returns nothing to hold: it is written and closed.
void write_hdf5_dataset(const Hdf5File& file, const char* name, Hdf5Layout layout, std::uint64_t row_count,
                        std::span<const std::byte> values);
template <class T>
void write_hdf5_dataset(const Hdf5File& file, const char* name, const std::vector<T>& rows) {
  write_hdf5_dataset(file, name, Hdf5LayoutOf<T>::value, rows.size(), std::as_bytes(std::span(rows)));
}

// Throws Error where the dataset is missing or of another type or shape.
std::uint64_t count_hdf5_rows(const Hdf5File& file, const char* name, Hdf5Layout layout);
void read_hdf5_rows(const Hdf5File& file, const char* name, Hdf5Layout layout, std::span<std::byte> values);
template <class T>
void read_hdf5_dataset(const Hdf5File& file, const char* name, std::vector<T>& rows) {
  constexpr auto layout = Hdf5LayoutOf<T>::value;
  rows.resize(count_hdf5_rows(file, name, layout));
  read_hdf5_rows(file, name, layout, std::as_writable_bytes(std::span(rows)));
}

// Where the rows of a contiguous dataset lie in the file; 0 for a dataset without rows.
std::uint64_t hdf5_data_offset(const Hdf5File& file, const char* name);

// Attributes of the root group. Reading throws Error where one is missing or of another type.
void write_hdf5_attribute(const Hdf5File& file, const char* name, const std::string& text);
void write_hdf5_attribute(const Hdf5File& file, const char* name, std::uint32_t value);
std::string read_hdf5_text_attribute(const Hdf5File& file, const char* name);
std::uint32_t read_hdf5_uint32_attribute(const Hdf5File& file, const char* name);

std::string hdf5_versions();  // "1.10.8" or "1.10.8 (compiled for 1.10.7)"

}  // namespace ssd
