// A JSON file of any size, looked at through a window of bytes in memory. InputFile is thread safe; each thread
// has a window of its own. Both throw Error with the name of the file and the system's text.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace ssd {

// The text of a regular file, without a UTF-8 byte order mark. A gzip-compressed file is unpacked into memory.
// Throws Error for UTF-16 and UTF-32, which Windows programs write.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }
  std::size_t size() const { return size_; }  // bytes of the text, when it was opened
  void read(std::size_t offset, char* bytes, std::size_t count) const;

 private:
  void look_at_first_bytes();
  void unpack();

  std::string name_;
  int descriptor_ = -1;
  std::size_t begin_ = 0;  // of the text
  std::size_t size_ = 0;
};

// Bytes of the file with a place among them, and kPadding zeros behind them.
class FileWindow {
 public:
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kNoLimit = std::size_t{1} << 62;

  explicit FileWindow(const InputFile& file) : file_(file) {}  // the file must outlive it

  // limit: how many bytes the window may come to hold.
  void open(std::size_t offset, std::size_t count, std::size_t limit);

  const char* at() const { return at_; }
  const char* end() const { return bytes_.get() + count_; }
  std::size_t position() const { return offset_ + static_cast<std::size_t>(at_ - bytes_.get()); }
  void move_to(const char* at) { at_ = at; }

  // Makes more of the file visible behind the place; pointers into the window are no longer valid. False
  // where there is no more. Throws Error at the limit.
  bool grow();

  // Goes to the next character that is not white space of JSON and returns it; '\0' at the end of the file.
  char skip_space();

 private:
  void load(std::size_t offset, std::size_t count);

  const InputFile& file_;
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t limit_ = kNoLimit;
  std::size_t offset_ = 0;  // of the window in the file
  std::size_t count_ = 0;
  const char* at_ = nullptr;
};

}  // namespace ssd
