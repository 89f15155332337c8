#include "data/sample.hpp"

#include <gtest/gtest.h>

#include "support/count_allocations.hpp"
#include "support/files.hpp"
#include "support/one_sample.hpp"
#include "support/tiny_set.hpp"

namespace ssd {
namespace {

using test::OneSample;
using test::record_with_box;
using test::with_restarts;

TEST(SampleMaker, allocates_nothing_once_its_buffers_have_grown) {
  const TemporaryFolder folder;
  // With and without restart segments, and one that is stored turned.
  std::vector<test::TinyRecord> records = {with_restarts(record_with_box(1, 500, 375, {50, 60, 300, 200})),
                                           record_with_box(2, 320, 240, {10, 10, 100, 100}),
                                           with_restarts(record_with_box(3, 240, 330, {10, 10, 100, 100}))};
  std::swap(records[2].record.image.width, records[2].record.image.height);
  records[2].record.orientation = 6;
  test::write_tiny_set(folder.path(), Split::train, records);
  const ShardSet set = ShardSet::open(folder.path(), Split::train);
  SampleMaker maker(set);
  OneSample sample;
  const auto make_all = [&] {
    for (std::uint32_t epoch = 0; epoch < 20; ++epoch) {
      for (std::uint32_t record = 0; record < 3; ++record) sample.make(maker, record, epoch);
    }
  };
  make_all();
  reset_bytes_allocated();
  make_all();
  EXPECT_EQ(bytes_allocated(), 0U);  // of operator new; libjpeg has memory of its own
}

}  // namespace
}  // namespace ssd
