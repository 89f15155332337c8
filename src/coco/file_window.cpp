#include "coco/file_window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"

namespace ssd {

namespace {

std::size_t size_of_regular(int descriptor, const std::string& name) {
  struct stat status {};
  SSD_VALIDATE(::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode),
               "cannot read '{}': it is not a regular file", name);
  return static_cast<std::size_t>(status.st_size);
}

struct CloseGzip {
  void operator()(gzFile file) const { ::gzclose(file); }
};

}  // namespace

InputFile::InputFile(const std::filesystem::path& path) : name_(path.string()) {
  descriptor_ = ::open(name_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw system_error("read", name_, errno);
  try {
    size_ = size_of_regular(descriptor_, name_);
    look_at_first_bytes();
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

// The marks of Unicode 15, section 23.8; of gzip, RFC 1952, section 2.3.1.
void InputFile::look_at_first_bytes() {
  const auto begins_with = [this](std::string_view mark) {
    std::string bytes(mark.size(), '\0');
    if (size_ < bytes.size()) return false;
    read(0, bytes.data(), bytes.size());
    return bytes == mark;
  };
  if (begins_with("\x1f\x8b")) unpack();
  SSD_VALIDATE(!begins_with("\xff\xfe") && !begins_with("\xfe\xff"),
               "'{}' is UTF-16 or UTF-32, as Windows programs write it; save it as UTF-8", name_);
  // Files that only have the name of a JSON.
  constexpr std::pair<std::string_view, const char*> kOthers[] = {
      {"<", "is HTML or XML, not JSON; was the download refused?"},
      {"PK\x03\x04", "is a ZIP archive; unpack it"},
      {"\xfd"
       "7zXZ",
       "is compressed by xz; unpack it, or compress it by gzip"},
      {"BZh", "is compressed by bzip2; unpack it, or compress it by gzip"},
      {"\x28\xb5\x2f\xfd", "is compressed by zstd; unpack it, or compress it by gzip"},
  };
  for (const auto& [mark, what] : kOthers) SSD_VALIDATE(!begins_with(mark), "'{}' {}", name_, what);
  constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";
  if (begins_with(kUtf8Mark)) {
    begin_ = kUtf8Mark.size();
    size_ -= begin_;
  }
}

// Into a file in memory, so that threads read it as any other.
void InputFile::unpack() {
  const int packed = ::dup(descriptor_);
  const std::unique_ptr<gzFile_s, CloseGzip> file(packed < 0 ? nullptr : ::gzdopen(packed, "rb"));
  if (file == nullptr) throw system_error("unpack", name_, errno);
  const int memory = ::memfd_create("json", MFD_CLOEXEC);
  if (memory < 0) throw system_error("unpack", name_, errno);
  ::close(std::exchange(descriptor_, memory));
  constexpr unsigned kPieceBytes = 1U << 20;
  std::vector<char> piece(kPieceBytes);
  size_ = 0;
  for (;;) {
    const int got = ::gzread(file.get(), piece.data(), kPieceBytes);
    int status = Z_OK;
    const char* text = ::gzerror(file.get(), &status);
    SSD_VALIDATE(got >= 0 && status == Z_OK, "'{}' is damaged or cut off: gzip says: {}; download it again",
                 name_, text);
    if (got == 0) return;
    for (std::size_t written = 0; written < static_cast<std::size_t>(got);) {
      const auto count = ::write(memory, piece.data() + written, static_cast<std::size_t>(got) - written);
      if (count < 0) throw system_error("unpack", name_, errno);
      written += static_cast<std::size_t>(count);
    }
    size_ += static_cast<std::size_t>(got);
  }
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(std::size_t offset, char* bytes, std::size_t count) const {
  offset += begin_;
  while (count != 0) {
    const auto got = ::pread(descriptor_, bytes, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("read", name_, errno);
    SSD_VALIDATE(got != 0, "cannot read '{}': it became shorter while it was read", name_);
    bytes += got;
    offset += static_cast<std::size_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

void FileWindow::open(std::size_t offset, std::size_t count, std::size_t limit) {
  limit_ = limit;
  load(offset, count);
}

bool FileWindow::grow() {
  if (offset_ + count_ == file_.size()) return false;
  constexpr std::size_t kLeast = 4096;
  const auto left = static_cast<std::size_t>(end() - at_);
  const auto wanted = std::max(2 * left, kLeast);
  SSD_VALIDATE(wanted <= limit_, "'{}': no end of a record in {} bytes", file_.name(), left);
  load(position(), wanted);
  return true;
}

char FileWindow::skip_space() {
  for (;;) {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
    if (at_ < end() || !grow()) return *at_;
  }
}

void FileWindow::load(std::size_t offset, std::size_t count) {
  count = std::min(count, file_.size() - offset);
  if (count + kPadding > capacity_) {
    capacity_ = count + kPadding;
    bytes_ = std::make_unique_for_overwrite<char[]>(capacity_);
  }
  file_.read(offset, bytes_.get(), count);
  std::memset(bytes_.get() + count, 0, kPadding);
  offset_ = offset;
  count_ = count;
  at_ = bytes_.get();
}

}  // namespace ssd
