#include "record/hdf5.hpp"

#include <bit>
#include <string_view>

#include "core/error.hpp"
#include "core/log.hpp"

namespace ssd {
namespace {

static_assert(std::endian::native == std::endian::little,
              "shards are read and written in the machine's byte order");

// Before any other call: errors are ours to print, and no clean-up at exit (after a full disk it would write
// again).
void prepare_library() {
  static const bool is_prepared = [] {
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    return true;
  }();
  (void)is_prepared;
}

extern "C" herr_t collect_error_text(unsigned, const H5E_error2_t* error, void* texts) {
  if (error->desc != nullptr) static_cast<std::vector<std::string>*>(texts)->emplace_back(error->desc);
  return 0;
}

// The system's reason where there is one ("errno = 28, error message = 'No space left on device'" within a
// long text), else the innermost text.
std::string take_error_stack() {
  std::vector<std::string> texts;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect_error_text, &texts);
  H5Eclear2(H5E_DEFAULT);
  constexpr std::string_view kMark = "error message = '";
  for (const auto& text : texts) {
    const auto mark = text.find(kMark);
    if (mark == text.npos) continue;
    const auto start = mark + kMark.size();
    return text.substr(start, text.find('\'', start) - start);
  }
  return texts.empty() ? "no reason given" : texts.front();
}

hid_t file_type(Hdf5Number number) {
  switch (number) {
    case Hdf5Number::uint8:
      return H5T_STD_U8LE;
    case Hdf5Number::int32:
      return H5T_STD_I32LE;
    case Hdf5Number::uint32:
      return H5T_STD_U32LE;
    case Hdf5Number::int64:
      return H5T_STD_I64LE;
    case Hdf5Number::uint64:
      return H5T_STD_U64LE;
    case Hdf5Number::float64:
      return H5T_IEEE_F64LE;
  }
  SSD_EXPECT(false);
  return H5I_INVALID_HID;
}

Hdf5Properties properties(hid_t kind) {
  return {H5Pcreate(kind), "H5Pcreate"};
}

Hdf5Properties without_times(hid_t kind) {
  auto result = properties(kind);
  check_hdf5(H5Pset_obj_track_times(result.id(), false), "H5Pset_obj_track_times");
  return result;
}

void switch_locking_off([[maybe_unused]] const Hdf5Properties& access) {
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  check_hdf5(H5Pset_file_locking(access.id(), false, true), "H5Pset_file_locking");
#endif
}

bool has_link(const Hdf5File& file, const std::string& name) {
  for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    if (H5Lexists(file.id(), name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
  return H5Lexists(file.id(), name.c_str(), H5P_DEFAULT) > 0;
}

Hdf5Dataset open_dataset(const Hdf5File& file, const char* name) {
  SSD_VALIDATE(has_link(file, name), "has no dataset '{}'", name);
  return {H5Dopen2(file.id(), name, H5P_DEFAULT), "H5Dopen2"};
}

Hdf5Type text_type(std::size_t byte_count) {
  Hdf5Type type(H5Tcopy(H5T_C_S1), "H5Tcopy");
  check_hdf5(H5Tset_size(type.id(), byte_count), "H5Tset_size");
  check_hdf5(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "H5Tset_strpad");
  check_hdf5(H5Tset_cset(type.id(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

void write_attribute(const Hdf5File& file, const char* name, hid_t type, const void* value) {
  const Hdf5Space space(H5Screate(H5S_SCALAR), "H5Screate");
  const Hdf5Attribute attribute(H5Acreate2(file.id(), name, type, space.id(), H5P_DEFAULT, H5P_DEFAULT),
                                "H5Acreate2");
  check_hdf5(H5Awrite(attribute.id(), type, value), "H5Awrite");
}

Hdf5Attribute open_attribute(const Hdf5File& file, const char* name) {
  SSD_VALIDATE(H5Aexists(file.id(), name) > 0, "has no attribute '{}'", name);
  return {H5Aopen(file.id(), name, H5P_DEFAULT), "H5Aopen"};
}

void expect_scalar(const Hdf5Attribute& attribute, const char* name) {
  const Hdf5Space space(H5Aget_space(attribute.id()), "H5Aget_space");
  SSD_VALIDATE(H5Sget_simple_extent_npoints(space.id()) == 1, "attribute '{}' is not a single value", name);
}

}  // namespace

hid_t check_hdf5_id(hid_t id, const char* call) {
  if (id < 0) throw LibraryError("HDF5", call, take_error_stack());
  return id;
}

void check_hdf5(herr_t status, const char* call) {
  if (status < 0) throw LibraryError("HDF5", call, take_error_stack());
}

void detail::log_failed_close() noexcept {
  try {
    ssd::log_warning("HDF5: closing failed: {}", take_error_stack());
  } catch (...) {
  }
}

Hdf5File create_hdf5_file(const std::filesystem::path& path, std::uint64_t alignment_bytes) {
  prepare_library();
  const auto creation = without_times(H5P_FILE_CREATE);
  const auto access = properties(H5P_FILE_ACCESS);
  check_hdf5(H5Pset_alignment(access.id(), alignment_bytes, alignment_bytes), "H5Pset_alignment");
#if H5_VERSION_GE(1, 10, 2)
  check_hdf5(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18), "H5Pset_libver_bounds");
#endif
  switch_locking_off(access);
  return {H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), "H5Fcreate"};
}

Hdf5File open_hdf5_file(const std::filesystem::path& path) {
  prepare_library();
  const auto access = properties(H5P_FILE_ACCESS);
  switch_locking_off(access);
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), "H5Fopen"};
}

void create_hdf5_group(const Hdf5File& file, const char* name) {
  const auto creation = without_times(H5P_GROUP_CREATE);
  const Hdf5Group group(H5Gcreate2(file.id(), name, H5P_DEFAULT, creation.id(), H5P_DEFAULT), "H5Gcreate2");
}

void write_hdf5_dataset(const Hdf5File& file, const char* name, Hdf5Layout layout, std::uint64_t row_count,
                        std::span<const std::byte> values) {
  const std::array<hsize_t, 2> extents{row_count, layout.columns};
  const Hdf5Space space(H5Screate_simple(layout.columns == 1 ? 1 : 2, extents.data(), nullptr),
                        "H5Screate_simple");
  const auto creation = without_times(H5P_DATASET_CREATE);
  check_hdf5(H5Pset_layout(creation.id(), H5D_CONTIGUOUS), "H5Pset_layout");
  check_hdf5(H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  const auto type = file_type(layout.number);
  Hdf5Dataset dataset(H5Dcreate2(file.id(), name, type, space.id(), H5P_DEFAULT, creation.id(), H5P_DEFAULT),
                      "H5Dcreate2");
  if (row_count > 0)
    check_hdf5(H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), "H5Dwrite");
  dataset.close();
}

std::uint64_t count_hdf5_rows(const Hdf5File& file, const char* name, Hdf5Layout layout) {
  const auto dataset = open_dataset(file, name);
  const Hdf5Type type(H5Dget_type(dataset.id()), "H5Dget_type");
  SSD_VALIDATE(H5Tequal(type.id(), file_type(layout.number)) > 0, "dataset '{}' has another type", name);
  const Hdf5Space space(H5Dget_space(dataset.id()), "H5Dget_space");
  const int rank = layout.columns == 1 ? 1 : 2;
  SSD_VALIDATE(H5Sget_simple_extent_ndims(space.id()) == rank, "dataset '{}' has another shape", name);
  std::array<hsize_t, 2> extents{0, 1};
  check_hdf5(H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr), "H5Sget_simple_extent_dims");
  SSD_VALIDATE(extents[1] == layout.columns, "dataset '{}' has {} columns, not {}", name, extents[1],
               layout.columns);
  // Late allocation: less space than rows means that the file was never finished, and guards the memory asked
  // for.
  const auto row_bytes = H5Tget_size(type.id()) * layout.columns;
  SSD_VALIDATE(H5Dget_storage_size(dataset.id()) / row_bytes == extents[0], "dataset '{}' is not complete",
               name);
  return extents[0];
}

void read_hdf5_rows(const Hdf5File& file, const char* name, Hdf5Layout layout, std::span<std::byte> values) {
  if (values.empty()) return;
  const auto dataset = open_dataset(file, name);
  check_hdf5(H5Dread(dataset.id(), file_type(layout.number), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
             "H5Dread");
}

std::uint64_t hdf5_data_offset(const Hdf5File& file, const char* name) {
  const auto dataset = open_dataset(file, name);
  const Hdf5Properties creation(H5Dget_create_plist(dataset.id()), "H5Dget_create_plist");
  SSD_VALIDATE(H5Pget_layout(creation.id()) == H5D_CONTIGUOUS, "dataset '{}' is not contiguous", name);
  if (H5Dget_storage_size(dataset.id()) == 0) return 0;
  const auto offset = H5Dget_offset(dataset.id());
  if (offset == HADDR_UNDEF) throw LibraryError("HDF5", "H5Dget_offset", take_error_stack());
  return offset;
}

void write_hdf5_attribute(const Hdf5File& file, const char* name, const std::string& text) {
  SSD_EXPECT(!text.empty());
  const auto type = text_type(text.size());
  write_attribute(file, name, type.id(), text.data());
}

void write_hdf5_attribute(const Hdf5File& file, const char* name, std::uint32_t value) {
  write_attribute(file, name, H5T_STD_U32LE, &value);
}

std::string read_hdf5_text_attribute(const Hdf5File& file, const char* name) {
  const auto attribute = open_attribute(file, name);
  expect_scalar(attribute, name);
  const Hdf5Type type(H5Aget_type(attribute.id()), "H5Aget_type");
  SSD_VALIDATE(H5Tget_class(type.id()) == H5T_STRING && H5Tis_variable_str(type.id()) == 0,
               "attribute '{}' is not a text of fixed length", name);
  std::string text(H5Tget_size(type.id()), '\0');
  check_hdf5(H5Aread(attribute.id(), type.id(), text.data()), "H5Aread");
  return text.substr(0, text.find('\0'));
}

std::uint32_t read_hdf5_uint32_attribute(const Hdf5File& file, const char* name) {
  const auto attribute = open_attribute(file, name);
  expect_scalar(attribute, name);
  const Hdf5Type type(H5Aget_type(attribute.id()), "H5Aget_type");
  SSD_VALIDATE(H5Tequal(type.id(), H5T_STD_U32LE) > 0, "attribute '{}' is not a 32-bit number", name);
  std::uint32_t value = 0;
  check_hdf5(H5Aread(attribute.id(), H5T_STD_U32LE, &value), "H5Aread");
  return value;
}

std::string hdf5_versions() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  check_hdf5(H5get_libversion(&major, &minor, &release), "H5get_libversion");
  const auto running = fmt::format("{}.{}.{}", major, minor, release);
  const auto compiled = fmt::format("{}.{}.{}", H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
  return running == compiled ? running : fmt::format("{} (compiled for {})", running, compiled);
}

}  // namespace ssd
