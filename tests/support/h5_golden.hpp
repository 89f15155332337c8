// Golden numbers out of an HDF5 file, for tests: whole datasets and scalar attributes. Throws
// std::runtime_error.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ssd::test {

template <class T>
hid_t h5_memory_type() {
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
}

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path) : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {
    if (file_ < 0) throw std::runtime_error("cannot open " + path);
  }
  ~GoldenFile() { H5Fclose(file_); }
  GoldenFile(const GoldenFile&) = delete;
  GoldenFile& operator=(const GoldenFile&) = delete;

  bool has(const std::string& name) const { return H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0; }

  // All elements, row-major.
  template <class T>
  std::vector<T> read(const std::string& name) const {
    const hid_t dataset = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
    if (dataset < 0) throw std::runtime_error("no dataset " + name);
    const hid_t space = H5Dget_space(dataset);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    const herr_t status = H5Dread(dataset, h5_memory_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Sclose(space);
    H5Dclose(dataset);
    if (status < 0) throw std::runtime_error("cannot read " + name);
    return values;
  }

  template <class T>
  T attribute(const std::string& object, const std::string& name) const {
    const hid_t id = H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    T value{};
    const bool is_read = id >= 0 && H5Aread(id, h5_memory_type<T>(), &value) >= 0;
    if (id >= 0) H5Aclose(id);
    if (!is_read) throw std::runtime_error("no attribute " + name + " of " + object);
    return value;
  }

  std::string text_attribute(const std::string& object, const std::string& name) const {
    const hid_t id = H5Aopen_by_name(file_, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0) throw std::runtime_error("no attribute " + name + " of " + object);
    const hid_t type = H5Aget_type(id);
    std::string text(H5Tget_size(type), '\0');
    const bool is_read = H5Aread(id, type, text.data()) >= 0;
    H5Tclose(type);
    H5Aclose(id);
    if (!is_read) throw std::runtime_error("cannot read attribute " + name + " of " + object);
    return text.substr(0, text.find('\0'));
  }

 private:
  hid_t file_;
};

}  // namespace ssd::test
