// What the contract of GradientCommunicator is tested on: each implementation with memory that it can
// average.
#pragma once

#include <cstddef>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "comm/gradient_communicator.hpp"

namespace ssd::test {

class CommunicatorUnderTest {
 public:
  virtual ~CommunicatorUnderTest() = default;

  virtual std::unique_ptr<GradientCommunicator> make() = 0;  // collective
  // Memory of the communicator's kind, freed with this object.
  virtual void* allocate(std::size_t bytes) = 0;
  // Queued where the caller's work is, so that gradients become ready later than start_average is called.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;  // waits for the end
  // What was done that the libraries forbid, and what was not given back; once all communicators are gone.
  virtual std::vector<std::string> complaints() { return {}; }
};

struct Implementation {
  const char* name;
  std::unique_ptr<CommunicatorUnderTest> (*make)(const MpiComm& world);
  // Collective: whether this machine can run it; null: every machine can. And why not.
  bool (*can_run)(const MpiComm& world) = nullptr;
  const char* why_not = "";
};

inline void PrintTo(const Implementation& implementation, std::ostream* out) {
  *out << implementation.name;
}

// Defined by each test program for the implementations that it is about.
std::vector<Implementation> implementations();

}  // namespace ssd::test
