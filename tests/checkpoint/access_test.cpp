// What callers use to get at the contents: items with their path, the state_dict, the own section, file
// names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/backbone_name.hpp"
#include "checkpoint/checkpoint_item.hpp"
#include "checkpoint/file_names.hpp"
#include "checkpoint/own_section.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/utf8.hpp"
#include "core/error.hpp"
#include "support/files.hpp"

namespace ssd {
namespace {

TensorValue tensor() {
  return make_tensor(DType::uint8, {1}, std::vector<std::byte>(1));
}

CheckpointItem item_of(Value root) {
  return {"x.pt", std::move(root)};
}

CheckpointItem example() {
  Dict group, optimizer, root;
  group.set("lr", 0.5);
  group.set("params", List{{0, 1}});
  optimizer.set("param_groups", List{{group}});
  root.set("optimizer", optimizer);
  root.set("epoch", 3);
  return item_of(root);
}

TEST(CheckpointItem, gives_values_of_their_kind) {
  const auto root = example();
  EXPECT_EQ(root.at("epoch").integer(), 3);
  EXPECT_EQ(root.at("epoch").number(), 3.0);
  const auto group = root.at("optimizer").at("param_groups").items().at(0);
  EXPECT_EQ(group.at("lr").number(), 0.5);
  EXPECT_EQ(group.at("params").items().at(1).integer(), 1);
  EXPECT_FALSE(root.find("scheduler"));
}

TEST(CheckpointItem, names_the_file_and_the_path_of_what_is_wrong) {
  const auto root = example();
  const auto group = root.at("optimizer").at("param_groups").items().at(0);
  EXPECT_EQ(message_of<Error>([&] { group.at("momentum"); }),
            "checkpoint 'x.pt': 'optimizer/param_groups/0/momentum' is missing");
  EXPECT_EQ(message_of<Error>([&] { group.at("lr").integer(); }),
            "checkpoint 'x.pt': 'optimizer/param_groups/0/lr' is of kind float, int expected");
  EXPECT_EQ(message_of<Error>([&] { item_of(List{}).at("epoch"); }),
            "checkpoint 'x.pt': the object in the file is of kind list, dict expected");
  EXPECT_EQ(message_of<Error>([&] { root.at(7); }), "checkpoint 'x.pt': '7' is missing");
}

TEST(Dict, keeps_the_order_and_the_last_value_of_a_key) {
  Dict dict;
  dict.set("b", 1);
  dict.set("a", 2);
  dict.set("b", 3);
  ASSERT_EQ(dict.size(), 2U);
  EXPECT_EQ(*dict.entries()[0].key.get_if<std::string>(), "b");
  EXPECT_EQ(*dict.find("b")->get_if<std::int64_t>(), 3);
  EXPECT_THROW(dict.set(2.5, 0), Error);
}

TEST(Dict, a_copy_finds_its_keys_when_the_original_is_gone) {
  Dict copy;
  {
    Dict original;
    original.set(std::string(100, 'k'), 1);
    copy = original;
  }
  EXPECT_TRUE(copy.contains(std::string(100, 'k')));
}

Dict weights(const std::vector<std::string>& names) {
  Dict dict(Dict::Kind::ordered);
  for (const auto& name : names) dict.set(name, tensor());
  return dict;
}

std::vector<std::string> names_of(const Value& root) {
  std::vector<std::string> names;
  for (const auto& entry : state_dict_of(item_of(root))) names.push_back(entry.name);
  return names;
}

TEST(StateDict, is_the_model_of_a_checkpoint_or_the_object_itself) {
  Dict root;
  root.set("epoch", 1);
  root.set("model", weights({"b", "a"}));
  EXPECT_EQ(names_of(root), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(names_of(weights({"b", "a"})), (std::vector<std::string>{"b", "a"}));
}

TEST(StateDict, loses_the_module_prefix_only_where_every_name_has_it) {
  EXPECT_EQ(names_of(weights({"module.a", "module.b"})), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(names_of(weights({"module.a", "b"})), (std::vector<std::string>{"module.a", "b"}));
}

TEST(StateDict, U13_is_found_below_what_programs_wrap_it_in) {
  const auto below = [](const char* key, Value value) {
    Dict root;
    root.set("epoch", 1);
    root.set(key, std::move(value));
    return root;
  };
  for (const char* key : {"model", "state_dict", "model_state_dict", "module", "backbone"}) {
    EXPECT_EQ(names_of(below(key, weights({"a"}))), std::vector<std::string>{"a"}) << key;
    EXPECT_EQ(state_dict_key(item_of(below(key, weights({"a"})))), key);
  }
  EXPECT_EQ(names_of(below("model", below("state_dict", weights({"module.a"})))),
            std::vector<std::string>{"a"});
  auto named = below("state_dict", weights({"a"}));
  named.set("model", "resnet18");  // the name of an architecture
  EXPECT_EQ(names_of(named), std::vector<std::string>{"a"});
  EXPECT_EQ(state_dict_key(item_of(weights({"a"}))), std::nullopt);
}

TEST(StateDict, U13_loses_what_wrappers_put_in_front_of_the_names) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(weights({"_orig_mod.module.a.b", "_orig_mod.module.c"})), (Names{"a.b", "c"}));
  EXPECT_EQ(names_of(weights({"module._orig_mod.a", "module._orig_mod.b"})), (Names{"a", "b"}));
  EXPECT_EQ(names_of(weights({"model.backbone.a", "model.backbone.b"})), (Names{"a", "b"}));
  EXPECT_EQ(names_of(weights({"backbone.a", "head.b"})), (Names{"backbone.a", "head.b"}));
  EXPECT_EQ(names_of(weights({"body._orig_mod.a", "head.b"})), (Names{"body.a", "head.b"}));
}

TEST(BackboneName, U17_is_told_by_the_blocks_of_the_third_layer) {
  const auto named = [](int blocks, bool is_bottleneck) {
    std::vector<NamedTensor> tensors;
    for (int i = 0; i < blocks; ++i) {
      tensors.push_back({fmt::format("layer3.{}.conv1.weight", i), {}});
      if (is_bottleneck) tensors.push_back({fmt::format("layer3.{}.conv3.weight", i), {}});
    }
    return backbone_name_of(tensors, kTorchvisionLayer3);
  };
  EXPECT_EQ(named(2, false), "resnet18");
  EXPECT_EQ(named(6, false), "resnet34");
  EXPECT_EQ(named(6, true), "resnet50");
  EXPECT_EQ(named(23, true), "resnet101");
  EXPECT_EQ(named(36, true), "resnet152");
  EXPECT_EQ(named(0, false), std::nullopt);
  EXPECT_EQ(named(5, true), std::nullopt);
}

TEST(StateDict, refuses_what_is_no_tensor) {
  Dict root;
  root.set("epoch", 1);
  EXPECT_EQ(
      message_of<Error>([&] { state_dict_of(item_of(root)); }),
      "checkpoint 'x.pt': 'epoch' is of kind int, tensor expected; a state_dict is looked for at the top "
      "and under the keys model, state_dict, model_state_dict, module, backbone, network, net");
  Dict numbered;
  numbered.set(0, tensor());
  EXPECT_THAT(message_of<Error>([&] { state_dict_of(item_of(numbered)); }),
              testing::HasSubstr("has the key 0"));
  EXPECT_THROW(state_dict_of(item_of(Dict())), Error);
  EXPECT_THROW(state_dict_of(item_of(List())), Error);
}

TEST(OwnSection, is_refused_where_it_is_newer_than_this_build) {
  auto section = make_own_section();
  Dict root;
  root.set(kOwnSectionKey, section);
  EXPECT_TRUE(own_section_of(item_of(root)));
  section.set("format_version", kCheckpointFormatVersion + 1);
  root.set(kOwnSectionKey, section);
  EXPECT_THAT(message_of<Error>([&] { own_section_of(item_of(root)); }),
              testing::StartsWith("checkpoint 'x.pt': 'ssd/format_version' is 2 (this build reads 1 to 1)"));
  EXPECT_FALSE(own_section_of(item_of(Dict())));
}

TEST(FileNames, are_parsed_as_they_are_made_and_no_others) {
  EXPECT_EQ(checkpoint_file_name(12), "epoch_12.pt");
  for (const std::int64_t epoch : {0LL, 9LL, 10LL, 9223372036854775807LL}) {
    EXPECT_EQ(epoch_of_checkpoint_file(checkpoint_file_name(epoch)), epoch);
  }
  for (const auto* name :
       {"", "epoch_.pt", "epoch_-1.pt", "epoch_01.pt", "epoch_+1.pt", "epoch_1.pt.old", "epoch_1.PT",
        ".epoch_1.pt.tmp.host.1", "epoch_9223372036854775808.pt", "epoch_1x.pt", "epoch_pt"}) {
    EXPECT_FALSE(epoch_of_checkpoint_file(name)) << name;
  }
}

TEST(FileNames, are_listed_by_number) {
  const TemporaryFolder folder;
  for (const auto* name : {"epoch_10.pt", "epoch_9.pt", "epoch_100.pt", "epoch_9.pt.bak", "log.json"}) {
    write_text(folder.path() / name, "");
  }
  std::vector<std::int64_t> epochs;
  for (const auto& file : list_checkpoint_files(folder.path())) epochs.push_back(file.epoch);
  EXPECT_EQ(epochs, (std::vector<std::int64_t>{9, 10, 100}));
  EXPECT_TRUE(list_checkpoint_files(folder.path() / "none").empty());
  EXPECT_THROW(list_checkpoint_files(folder.path() / "log.json"), Error);
}

TEST(Utf8, is_checked_as_unicode_says) {
  for (const auto* good :
       {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_NO_THROW(validate_utf8(good));
  }
  for (const auto* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xff"}) {
    EXPECT_THROW(validate_utf8(bad), Error);
  }
}

TEST(Utf8, carries_bytes_as_latin1) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(utf8_to_latin1(latin1_to_utf8(all)), all);
  EXPECT_THROW(utf8_to_latin1("\xc4\x80"), Error);  // U+0100
}

}  // namespace
}  // namespace ssd
