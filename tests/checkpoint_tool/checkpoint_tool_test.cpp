// Conversion, comparison and options of ssd_checkpoint, without the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "checkpoint_tool/compare.hpp"
#include "checkpoint_tool/convert.hpp"
#include "checkpoint_tool/describe.hpp"
#include "checkpoint_tool/flat_tensors.hpp"
#include "checkpoint_tool/tool_options.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorValue floats(std::vector<float> values) {
  const auto bytes = std::as_bytes(std::span(values));
  return make_tensor(DType::float32, {static_cast<std::int64_t>(values.size())},
                     {bytes.begin(), bytes.end()});
}

TensorValue count_of(std::int64_t value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return make_tensor(DType::int64, {}, {bytes.begin(), bytes.end()});
}

Value run_of(std::vector<float> weights, std::vector<float> momentum = {1, 2}) {
  Dict model(Dict::Kind::ordered), slot, state, optimizer, root;
  model.set("w", floats(std::move(weights)));
  model.set("n", count_of(7));
  slot.set("momentum_buffer", floats(std::move(momentum)));
  state.set(0, slot);
  optimizer.set("state", state);
  root.set("epoch", 3);
  root.set("optimizer", optimizer);
  root.set("scheduler", Dict());
  root.set("model", model);
  return root;
}

CheckpointItem item(Value value, const char* name = "a.pt") {
  return {name, std::move(value)};
}

std::vector<double> weights_of(const CheckpointItem& model) {
  return to_doubles(model.at("w").tensor());
}

TEST(Convert, weights_alone_are_the_model_in_its_own_or_another_dtype) {
  const auto root = item(run_of({0.1F, -3, 65504}));
  const auto same = item(convert_checkpoint(root, Part::weights, std::nullopt));
  EXPECT_EQ(same.dict().kind(), Dict::Kind::ordered);
  EXPECT_EQ(same.at("w").tensor().dtype, DType::float32);
  EXPECT_THAT(weights_of(same), ElementsAre(double{0.1F}, -3, 65504));
  const auto half = item(convert_checkpoint(root, Part::weights, DType::float16));
  EXPECT_EQ(half.at("w").tensor().dtype, DType::float16);
  // The half nearest to 0.1: 0x2E66.
  EXPECT_THAT(weights_of(half), ElementsAre(1638.0 / 16384, -3, 65504));
  EXPECT_EQ(half.at("n").tensor().dtype, DType::int64);
  const auto back = item(convert_checkpoint(half, Part::weights, DType::float32));
  EXPECT_THAT(weights_of(back), ElementsAre(1638.0 / 16384, -3, 65504));
}

TEST(Convert, what_a_half_cannot_hold_is_refused_but_infinity_stays) {
  EXPECT_THAT(
      message_of<Error>([] { convert_checkpoint(item(run_of({65520})), Part::weights, DType::float16); }),
      HasSubstr("'w' holds 65520, which float16 cannot"));
  const auto infinite =
      item(convert_checkpoint(item(run_of({INFINITY, NAN})), Part::weights, DType::float16));
  EXPECT_EQ(weights_of(infinite)[0], INFINITY);
  EXPECT_TRUE(std::isnan(weights_of(infinite)[1]));
}

TEST(Convert, without_the_optimizer_everything_else_stays) {
  const auto stripped = item(convert_checkpoint(item(run_of({1, 2})), Part::without_optimizer, std::nullopt));
  EXPECT_EQ(stripped.dict().size(), 2U);
  EXPECT_EQ(stripped.at("epoch").integer(), 3);
  EXPECT_THAT(weights_of(stripped.at("model")), ElementsAre(1, 2));
  const auto bare = convert_checkpoint(item(run_of({1})), Part::weights, std::nullopt);
  EXPECT_THAT(
      message_of<Error>([&] { convert_checkpoint(item(bare), Part::without_optimizer, std::nullopt); }),
      HasSubstr("a state_dict alone"));
}

TEST(Compare, says_what_differs_and_by_how_much) {
  const auto a = item(run_of({1, 2, 3}));
  EXPECT_TRUE(compare_checkpoints(a, item(run_of({1, 2, 3}))).are_equal);
  const auto changed = compare_checkpoints(a, item(run_of({1, 2.5, 3.25}), "b.pt"));
  EXPECT_FALSE(changed.are_equal);
  EXPECT_EQ(changed.text, "model/w: 2 of 3 elements differ, by 0.5 at most\n2 tensors equal, 1 differ\n");
  const auto reshaped = compare_checkpoints(a, item(run_of({1}), "b.pt"));
  EXPECT_THAT(reshaped.text, HasSubstr("model/w: float32 3 and float32 1\n"));
  const auto weights =
      compare_checkpoints(a, item(convert_checkpoint(a, Part::without_optimizer, std::nullopt), "b.pt"));
  EXPECT_THAT(weights.text, HasSubstr("optimizer/state/0/momentum_buffer: only in a.pt\n"));
}

// -0 and 0 are equal numbers of other bits; two equal NaNs are equal.
TEST(Compare, goes_by_bits) {
  EXPECT_FALSE(compare_checkpoints(item(run_of({0.0F})), item(run_of({-0.0F}))).are_equal);
  EXPECT_TRUE(compare_checkpoints(item(run_of({NAN})), item(run_of({NAN}))).are_equal);
  EXPECT_THAT(compare_checkpoints(item(run_of({NAN, 1})), item(run_of({1, 1}))).text,
              HasSubstr("1 of 2 elements differ, by 0 at most, 1 are not finite"));
}

TEST(Describe, lists_every_tensor) {
  const auto text = describe_checkpoint(item(run_of({1, 2, 3})), 1234);
  EXPECT_THAT(text, testing::StartsWith("a.pt: 1234 bytes\nepoch: 3 is next\n"));
  EXPECT_THAT(text, testing::ContainsRegex("model/w +float32 +3 +[0-9a-f]{32}\n"));
  EXPECT_THAT(text, testing::ContainsRegex("model/n +int64 +scalar +[0-9a-f]{32}\n"));
  EXPECT_THAT(text, HasSubstr("3 tensors, 6 elements"));
}

ParsedToolOptions parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ssd_checkpoint");
  return parse_tool_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(ToolOptions, contradictions_are_refused) {
  EXPECT_EQ(parse({"x.pt"}).options->file, "x.pt");
  const auto half = parse({"x.pt", "--output", "y.pt", "--weights-only", "--dtype", "fp16"});
  EXPECT_EQ(half.options->dtype, DType::float16);
  for (const auto& wrong : std::vector<std::vector<const char*>>{
           {},
           {"x.pt", "y.pt"},
           {"x.pt", "--output", "y.pt"},
           {"x.pt", "--weights-only"},
           {"x.pt", "--output", "y.pt", "--weights-only", "--strip-optimizer"},
           {"x.pt", "--dtype", "fp16"},
           {"x.pt", "--output", "y.pt", "--weights-only", "--dtype", "int8"},
           {"x.pt", "--comp", "y.pt"}}) {
    EXPECT_THROW(parse(wrong), UsageError);
  }
}

}  // namespace
}  // namespace ssd
