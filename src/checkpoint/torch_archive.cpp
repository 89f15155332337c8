#include "checkpoint/torch_archive.hpp"

#include <charconv>
#include <utility>

#include "checkpoint/pickle_format.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/pickle_writer.hpp"
#include "core/utf8.hpp"
#include "checkpoint/zip_reader.hpp"
#include "core/error.hpp"

namespace ssd {
namespace {

// Fixed, so that the file's contents do not depend on the name it is written under; torch.save's name for a
// stream.
constexpr std::string_view kTopFolder = "archive/";

// Versions of the archive that torch reads (caffe2/serialize/versions.h); torch.save has written 3 since 1.6.
constexpr int kOldestVersion = 1, kNewestVersion = 10, kWrittenVersion = 3;

std::string text_record(const ZipReader& zip, const std::string& name) {
  const auto* entry = zip.find(name);
  SSD_VALIDATE(entry != nullptr && entry->bytes <= 64, "zip entry '{}' is missing or too long",
               printable(name));
  const auto bytes = zip.read(name);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The folder that all entries lie in, with its slash.
std::string top_folder(const ZipReader& zip) {
  SSD_VALIDATE(!zip.entries().empty(), "the zip archive is empty");
  const auto& first = zip.entries().begin()->first;
  const auto folder = first.substr(0, first.find('/') + 1);
  for (const auto& [name, entry] : zip.entries()) {
    SSD_VALIDATE(!folder.empty() && name.starts_with(folder),
                 "a zip archive, but not one of torch.save: '{}' and '{}' lie in no common folder",
                 printable(first), printable(name));
  }
  return folder;
}

void check_kind(const ZipReader& zip, const std::string& folder) {
  SSD_VALIDATE(zip.find(folder + "constants.pkl") == nullptr,
               "it is a TorchScript archive; save the state_dict with torch.save instead");
  SSD_VALIDATE(zip.find(folder + "data.pkl") != nullptr,
               "a zip archive, but not one of torch.save: data.pkl is missing");
  const auto text = text_record(zip, folder + "version");
  int version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  SSD_VALIDATE(version >= kOldestVersion && version <= kNewestVersion,
               "the archive has version '{}' ({} to {} are read)", printable(text), kOldestVersion,
               kNewestVersion);
  if (zip.find(folder + "byteorder") == nullptr) return;  // older torch: little-endian
  const auto order = text_record(zip, folder + "byteorder");
  SSD_VALIDATE(order == "little", "its byte order is '{}' (only 'little' is read)", printable(order));
}

void fill(const ZipReader& zip, const std::string& folder, NamedStorage& storage) {
  const auto name = folder + "data/" + storage.key;
  const auto* entry = zip.find(name);
  SSD_VALIDATE(entry != nullptr, "zip entry '{}', a tensor's data, is missing", printable(name));
  SSD_VALIDATE(entry->bytes == storage.bytes(), "zip entry '{}' has {} bytes, {} elements of {} take {}",
               printable(name), entry->bytes, storage.elements, dtype_name(storage.dtype), storage.bytes());
  *storage.storage = *make_storage(zip.read(name));
}

}  // namespace

Value read_torch_archive(const ByteSource& source) {
  const ZipReader zip(source);
  const auto folder = top_folder(zip);
  check_kind(zip, folder);
  const auto name = folder + "data.pkl";
  SSD_VALIDATE(zip.find(name)->bytes <= kMaxPickleBytes, "data.pkl has {} bytes (at most {})",
               zip.find(name)->bytes, kMaxPickleBytes);
  const auto bytes = zip.read(name);
  auto pickle = read_pickle(bytes);
  SSD_VALIDATE(pickle.consumed == bytes.size(), "data.pkl goes on after its end");
  for (auto& storage : pickle.storages) fill(zip, folder, storage);
  return std::move(pickle.root);
}

void write_torch_archive(const Value& root, ZipWriter::Sink sink) {
  const auto pickle = write_pickle(root);
  ZipWriter zip(std::move(sink));
  const std::string folder(kTopFolder);
  zip.add(folder + "data.pkl", pickle.bytes);
  zip.add(folder + ".format_version", "1");
  zip.add(folder + ".storage_alignment", "64");
  zip.add(folder + "byteorder", "little");
  for (std::size_t i = 0; i < pickle.storages.size(); ++i) {
    zip.add(fmt::format("{}data/{}", folder, i), pickle.storages[i]->bytes);
  }
  zip.add(folder + "version", fmt::format("{}\n", kWrittenVersion));
  zip.finish();
}

}  // namespace ssd
