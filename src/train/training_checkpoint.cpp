#include "train/training_checkpoint.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "checkpoint/backbone_name.hpp"
#include "checkpoint/class_count.hpp"
#include "checkpoint/file_names.hpp"
#include "checkpoint/own_section.hpp"
#include "checkpoint/state_dict.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "model/model_tensors.hpp"

namespace ssd {
namespace {

TensorValue tensor_value(const torch::Tensor& tensor) {
  const bool is_integer = tensor.scalar_type() == torch::kLong;
  const auto plain = tensor.detach().to(torch::kCPU, is_integer ? torch::kLong : torch::kFloat).contiguous();
  const auto* bytes = static_cast<const std::byte*>(plain.data_ptr());
  return make_tensor(is_integer ? DType::int64 : DType::float32, plain.sizes().vec(),
                     {bytes, bytes + plain.nbytes()});
}

torch::ScalarType scalar_type_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return torch::kDouble;
    case DType::float32:
      return torch::kFloat;
    case DType::float16:
      return torch::kHalf;
    case DType::bfloat16:
      return torch::kBFloat16;
    case DType::int64:
      return torch::kLong;
    case DType::int32:
      return torch::kInt;
    case DType::int16:
      return torch::kShort;
    case DType::int8:
      return torch::kChar;
    case DType::uint8:
      return torch::kByte;
    default:
      return torch::kBool;
  }
}

// A tensor of a file, of the file's shape and dtype.
torch::Tensor torch_tensor(const TensorValue& value) {
  const auto bytes = contiguous_bytes(value);
  auto tensor = torch::empty(value.shape, scalar_type_of(value.dtype));
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
  return tensor;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

// Parameters in the order of torch's optimizer: those without weight decay, then those with it, each in the
// order of the module.
struct PlacedParameter {
  const ArenaBlock* block;
  const ArenaEntry* entry;
};

std::vector<std::vector<PlacedParameter>> optimizer_groups(const Ssd300& model, const ParameterArena& arena) {
  std::unordered_map<std::string, PlacedParameter> placed;
  for (const auto& block : arena.blocks()) {
    for (const auto& entry : block.entries) placed[entry.name] = {&block, &entry};
  }
  std::vector<std::vector<PlacedParameter>> groups(2);
  for (const auto& tensor : model_tensors(model)) {
    if (tensor.is_parameter)
      groups[placed.at(tensor.name).entry->has_weight_decay ? 1 : 0].push_back(placed.at(tensor.name));
  }
  return groups;
}

Value optimizer_value(const StateSnapshot& snapshot, const TrainingFacts& facts) {
  Dict state;
  List groups;
  const double rate = learning_rate(facts.schedule, facts.position.epoch, facts.position.iteration);
  std::int64_t index = 0;
  for (std::size_t g = 0; g < snapshot.momentum.size(); ++g) {
    List indices;
    for (const auto& momentum : snapshot.momentum[g]) {
      Dict slot;
      slot.set("momentum_buffer", tensor_value(momentum));
      state.set(index, std::move(slot));
      indices.items.emplace_back(index++);
    }
    Dict group;
    group.set("weight_decay", g == 0 ? 0.0 : facts.sgd.weight_decay);
    group.set("lr", rate);
    group.set("momentum", facts.sgd.momentum);
    group.set("dampening", std::int64_t{0});
    group.set("nesterov", false);
    group.set("maximize", false);
    group.set("foreach", Value());
    group.set("differentiable", false);
    group.set("fused", Value());
    group.set("initial_lr", full_learning_rate(facts.schedule));
    group.set("params", std::move(indices));
    groups.items.emplace_back(std::move(group));
  }
  Dict optimizer;
  optimizer.set("state", std::move(state));
  optimizer.set("param_groups", std::move(groups));
  return optimizer;
}

Value scheduler_value(const TrainingFacts& facts) {
  Dict milestones(Dict::Kind::counter);
  std::map<int, std::int64_t> times;  // a milestone that is named twice divides twice
  for (const int epoch : facts.schedule.milestone_epochs) ++times[epoch];
  for (const auto& [epoch, count] : times) milestones.set(std::int64_t{epoch}, count);
  const double full = full_learning_rate(facts.schedule);
  auto after_warmup = facts.schedule;
  after_warmup.warmup_iterations = 0;
  const double rate = learning_rate(after_warmup, facts.position.epoch, 0);
  Dict scheduler;
  scheduler.set("milestones", std::move(milestones));
  scheduler.set("gamma", 0.1);
  scheduler.set("base_lrs", List{{full, full}});
  scheduler.set("last_epoch", facts.position.epoch);
  scheduler.set("_step_count", facts.position.epoch + 1);
  scheduler.set("_is_initial", false);
  scheduler.set("_get_lr_called_within_step", false);
  scheduler.set("_last_lr", List{{rate, rate}});
  return scheduler;
}

Value own_value(const TrainingFacts& facts) {
  auto own = make_own_section();
  Dict sampler;
  sampler.set("iteration_in_epoch", facts.position.iteration_in_epoch);
  sampler.set("batch_size", std::int64_t{facts.schedule.batch_size});
  if (facts.scaler) {
    Dict scaler;
    scaler.set("scale", facts.scaler->scale);
    scaler.set("good_steps", facts.scaler->good_steps);
    scaler.set("skipped_steps", facts.scaler->skipped_steps);
    own.set("loss_scaler", std::move(scaler));
  }
  own.set("sampler", std::move(sampler));
  own.set("seed", static_cast<std::int64_t>(facts.seed));
  own.set("configuration", facts.configuration);
  own.set("data_digest", facts.data_digest);
  own.set("world_size", std::int64_t{facts.schedule.world_size});
  own.set("threads", std::int64_t{facts.compute_threads});
  own.set("cpu_features", facts.cpu);
  return own;
}

// Where the numbers of a model's tensor are kept: the master weights of a parameter, or the buffer itself.
std::map<std::string, torch::Tensor> places_of(const Ssd300& model, const ParameterArena& arena) {
  std::map<std::string, torch::Tensor> places;
  for (const auto& tensor : model_tensors(model)) places[tensor.name] = tensor.tensor;
  for (const auto& block : arena.blocks()) {
    for (const auto& entry : block.entries) places[entry.name] = arena.master_of(block, entry);
  }
  return places;
}

// tensor: as it is used here; a double may have been finite in the file.
std::int64_t count_not_finite(const torch::Tensor& tensor) {
  if (!tensor.is_floating_point()) return 0;
  return tensor.numel() - torch::isfinite(tensor).sum().item<std::int64_t>();
}

void expect_finite(const char* what, const CheckpointItem& root, const std::string& name,
                   const torch::Tensor& tensor) {
  const auto count = count_not_finite(tensor);
  SSD_VALIDATE(
      count == 0,
      "{} '{}': tensor '{}' has {} of {} values that are not finite (nan or infinite), as a training "
      "that diverged leaves them; take another file",
      what, root.source(), name, count, tensor.numel());
}

void check_class_count(const CheckpointItem& root, const Ssd300& model) {
  const int classes = count_classes(root);
  SSD_VALIDATE(classes == model.class_count() - 1,
               "checkpoint '{}': it is of a network for {} classes and the background, the data set has {} "
               "classes; take "
               "the data set it was trained on, or start anew without --checkpoint",
               root.source(), classes, model.class_count() - 1);
}

// The tensors of torchvision's ResNet in a file, under its own names: those below the prefix that its first
// block is found with, which is empty where the file is the ResNet alone.
std::vector<NamedTensor> resnet_in(const CheckpointItem& root) {
  constexpr std::string_view kFirstBlock = "layer1.0.conv1.weight";
  auto tensors = state_dict_of(root);
  std::vector<std::string> prefixes;
  for (const auto& entry : tensors) {
    if (entry.name.ends_with(kFirstBlock))
      prefixes.push_back(entry.name.substr(0, entry.name.size() - kFirstBlock.size()));
  }
  SSD_VALIDATE(
      !prefixes.empty(),
      "backbone '{}': tensor '{}' is not one of a ResNet, and no other is '{}'; torchvision's names are "
      "expected (a checkpoint of an SSD300 is given as --checkpoint)",
      root.source(), tensors.front().name, kFirstBlock);
  SSD_VALIDATE(prefixes.size() == 1,
               "backbone '{}': it holds {} ResNets, below '{}' and '{}'; save one of them alone",
               root.source(), prefixes.size(), prefixes[0], prefixes.size() > 1 ? prefixes[1] : "");
  const auto& prefix = prefixes[0];
  std::erase_if(tensors, [&](const NamedTensor& entry) { return !entry.name.starts_with(prefix); });
  for (auto& entry : tensors) entry.name.erase(0, prefix.size());
  return tensors;
}

void load_weights(const CheckpointItem& root, Ssd300& model, ParameterArena& arena) {
  const auto tensors = state_dict_of(root);
  if (std::any_of(tensors.begin(), tensors.end(),
                  [](const auto& item) { return item.name == "conf.0.bias"; })) {
    check_class_count(root, model);
  }
  auto places = places_of(model, arena);
  for (const auto& [name, tensor] : tensors) {
    const auto place = places.find(name);
    SSD_VALIDATE(place != places.end(),
                 "checkpoint '{}': tensor '{}' is not one of SSD300 with {}; see --backbone", root.source(),
                 name, backbone_name(model.backbone()));
    SSD_VALIDATE(place->second.sizes() == at::IntArrayRef(tensor.shape),
                 "checkpoint '{}': tensor '{}' has shape {}, SSD300 with {} needs {}; see --backbone",
                 root.source(), name, shape_text(tensor.shape), backbone_name(model.backbone()),
                 shape_text(place->second.sizes()));
    place->second.copy_(torch_tensor(tensor));
    expect_finite("checkpoint", root, name, place->second);
    places.erase(place);
  }
  // Older files have no counter of batches.
  std::erase_if(places, [](const auto& item) { return item.first.ends_with("num_batches_tracked"); });
  SSD_VALIDATE(places.empty(), "checkpoint '{}': {} tensors are missing, the first is '{}'; see --backbone",
               root.source(), places.size(), places.empty() ? "" : places.begin()->first);
  arena.copy_masters_to_weights();
}

void load_momentum(const CheckpointItem& optimizer, const Ssd300& model, ParameterArena& arena) {
  std::vector<PlacedParameter> parameters;
  for (const auto& group : optimizer_groups(model, arena))
    parameters.insert(parameters.end(), group.begin(), group.end());
  const auto groups = optimizer.at("param_groups").items();
  const auto state = optimizer.at("state");
  std::size_t place = 0;
  for (const auto& group : groups) {
    for (const auto& index : group.at("params").items()) {
      if (place >= parameters.size()) throw optimizer.error("has more parameters than the network");
      const auto& [block, entry] = parameters[place++];
      const auto slot = state.find(index.integer());
      if (!slot) continue;  // never stepped: momentum 0
      const auto buffer = slot->at("momentum_buffer");
      if (buffer.is_none()) continue;
      auto momentum = arena.momentum_of(*block, *entry);
      if (momentum.sizes() != at::IntArrayRef(buffer.tensor().shape)) {
        throw buffer.error(fmt::format("has shape {}, parameter '{}' needs {}",
                                       shape_text(buffer.tensor().shape), entry->name,
                                       shape_text(momentum.sizes())));
      }
      momentum.copy_(torch_tensor(buffer.tensor()));
      if (const auto count = count_not_finite(momentum); count != 0)
        throw buffer.error(fmt::format("has {} values that are not finite", count));
    }
  }
  if (place != parameters.size()) {
    throw optimizer.error(fmt::format("has {} parameters, the network {}", place, parameters.size()));
  }
}

// Where it is another optimizer's state: says how to do without.
void resume_momentum(const CheckpointItem& root, const CheckpointItem& optimizer, const Ssd300& model,
                     ParameterArena& arena) {
  try {
    load_momentum(optimizer, model, arena);
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}: training cannot go on with this optimizer state, which is not that of SGD with "
                    "momentum for this "
                    "network; to start from the weights alone: ssd_checkpoint {} --output weights.pt "
                    "--weights-only, then "
                    "--checkpoint weights.pt",
                    error.what(), root.source()));
  }
}

// A number of the file that counts something.
std::int64_t count_of(const CheckpointItem& item, std::int64_t least, std::int64_t most) {
  const auto value = item.integer();
  if (value < least || value > most)
    throw item.error(fmt::format("is {}; it must be from {} to {}", value, least, most));
  return value;
}

// The same where nothing depends on it: what is no such number counts as 0.
std::int64_t count_or_none(const CheckpointItem& item, std::int64_t most) {
  const auto value = item.value();
  const auto* number = value.get_if<std::int64_t>();
  return number != nullptr && *number >= 0 && *number <= most ? *number : 0;
}

constexpr std::int64_t kMostIterations = std::int64_t{1} << 53;
constexpr std::int64_t kMostEpochs = std::numeric_limits<std::int32_t>::max();

LossScalerState scaler_of(const CheckpointItem& item) {
  const double scale = item.at("scale").number();
  if (!(scale > 0 && std::isfinite(scale)))
    throw item.at("scale").error(fmt::format("is {}; it must be above 0 and finite", scale));
  return {scale, count_of(item.at("good_steps"), 0, kMostIterations),
          count_of(item.at("skipped_steps"), 0, kMostIterations)};
}

void read_own_section(const CheckpointItem& own, ResumedFacts& facts) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (const auto scaler = own.find("loss_scaler")) facts.scaler = scaler_of(*scaler);
  const auto sampler = own.at("sampler");
  facts.position.iteration_in_epoch = count_of(sampler.at("iteration_in_epoch"), 0, kMostIterations);
  facts.batch_size = static_cast<int>(count_of(sampler.at("batch_size"), 1, kMost));
  facts.seed = static_cast<std::uint64_t>(own.at("seed").integer());
  facts.world_size = static_cast<int>(count_of(own.at("world_size"), 1, kMost));
  facts.compute_threads = static_cast<int>(count_of(own.at("threads"), 1, kMost));
  facts.cpu = own.at("cpu_features").text();
  if (const auto configuration = own.find("configuration")) facts.configuration = configuration->text();
  if (const auto digest = own.find("data_digest")) facts.data_digest = digest->text();
}

}  // namespace

StateSnapshot take_snapshot(const Ssd300& model, const ParameterArena& arena) {
  torch::NoGradGuard no_grad;
  StateSnapshot snapshot;
  const auto places = places_of(model, arena);
  for (const auto& tensor : model_tensors(model)) {
    const auto& place = places.at(tensor.name);
    // .cpu() copies from a GPU; a CPU's buffers change with every step.
    snapshot.model.push_back(
        {tensor.name, tensor.is_parameter || !place.is_cpu() ? place.cpu() : place.clone()});
  }
  const auto groups = optimizer_groups(model, arena);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const auto& [block, entry] : groups[g]) {
      snapshot.momentum[g].push_back(arena.momentum_of(*block, *entry).cpu());
    }
  }
  return snapshot;
}

Value make_checkpoint(const StateSnapshot& state, const TrainingFacts& facts) {
  torch::NoGradGuard no_grad;
  Dict weights(Dict::Kind::ordered);
  for (const auto& [name, tensor] : state.model) weights.set(name, tensor_value(tensor));
  Dict labels;
  labels.set(std::int64_t{0}, "background");
  for (std::size_t i = 0; i < facts.class_names.size(); ++i)
    labels.set(static_cast<std::int64_t>(i + 1), facts.class_names[i]);
  Dict root;
  root.set("epoch", facts.position.epoch);
  root.set("iteration", facts.position.iteration);
  root.set("optimizer", optimizer_value(state, facts));
  root.set("scheduler", scheduler_value(facts));
  root.set("label_map", std::move(labels));
  root.set("model", std::move(weights));
  root.set(kOwnSectionKey, own_value(facts));
  return root;
}

ResumedFacts load_checkpoint(const CheckpointItem& root, Ssd300& model, ParameterArena& arena,
                             Restore restore) {
  torch::NoGradGuard no_grad;
  load_weights(root, model, arena);
  ResumedFacts facts;
  if (!root.dict().contains("model")) return facts;  // a bare state_dict
  const auto own = own_section_of(root);
  const auto epoch = root.find("epoch"), iteration = root.find("iteration");
  if (restore == Restore::weights) {
    facts.position.epoch = epoch ? count_or_none(*epoch, kMostEpochs) : 0;
    facts.position.iteration = iteration ? count_or_none(*iteration, kMostIterations) : 0;
    return facts;
  }
  if (epoch) facts.position.epoch = count_of(*epoch, 0, kMostEpochs);
  if (iteration) facts.position.iteration = count_of(*iteration, 0, kMostIterations);
  if (const auto optimizer = root.find("optimizer"); optimizer && !optimizer->is_none()) {
    resume_momentum(root, *optimizer, model, arena);
    facts.has_optimizer = true;
  }
  if (own) read_own_section(*own, facts);
  return facts;
}

Backbone backbone_for(const CheckpointItem& root, std::optional<Backbone> asked) {
  const auto name = backbone_name_of(state_dict_of(root), kSsdLayer3);
  if (!name) return asked.value_or(Backbone::resnet50);
  const auto found = backbone_from_name(*name);
  if (asked && *asked != found) {
    throw UsageError(
        fmt::format("--backbone {}: checkpoint '{}' is of an SSD300 with {}; leave --backbone out, it is "
                    "taken from the file",
                    backbone_name(*asked), root.source(), *name));
  }
  return found;
}

std::filesystem::path newest_checkpoint(std::span<const std::filesystem::path> files) {
  SSD_EXPECT(!files.empty());
  if (files.size() == 1) return files.front();
  std::pair<std::int64_t, std::filesystem::path> newest{-1, {}};
  for (const auto& file : files) {
    const auto named = epoch_of_checkpoint_file(file.filename().string());
    const auto epoch = named ? *named : read_checkpoint_file(file).at("epoch").integer() - 1;
    newest = std::max(newest, {epoch, file});
  }
  log_info("{} checkpoints given: going on from the newest, '{}'", files.size(), newest.second.string());
  return newest.second;
}

void load_backbone(const CheckpointItem& root, Ssd300& model) {
  torch::NoGradGuard no_grad;
  // Children of torchvision's ResNet and their places in the feature extractor.
  static const std::array<std::pair<std::string_view, std::string_view>, 5> kPlaces{
      {{"conv1.", "0."}, {"bn1.", "1."}, {"layer1.", "4."}, {"layer2.", "5."}, {"layer3.", "6."}}};
  const std::string prefix = "feature_extractor.feature_extractor.";
  std::map<std::string, torch::Tensor> wanted;
  for (const auto& tensor : model_tensors(model)) {
    if (tensor.name.starts_with(prefix)) wanted[tensor.name] = tensor.tensor;
  }
  const auto tensors = resnet_in(root);
  const auto file_is = backbone_name_of(tensors, kTorchvisionLayer3);
  SSD_VALIDATE(!file_is || *file_is == backbone_name(model.backbone()),
               "backbone '{}': it is a {}, but --backbone is {}; give --backbone {} or another file",
               root.source(), *file_is, backbone_name(model.backbone()), *file_is);
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("layer4.") || name.starts_with("fc.")) continue;
    const auto place = std::find_if(kPlaces.begin(), kPlaces.end(),
                                    [&](const auto& p) { return name.starts_with(p.first); });
    const auto target =
        place == kPlaces.end()
            ? wanted.end()
            : wanted.find(prefix + std::string(place->second) + name.substr(place->first.size()));
    SSD_VALIDATE(target != wanted.end() && target->second.sizes() == at::IntArrayRef(tensor.shape),
                 "backbone '{}': tensor '{}' {} is not one of torchvision's {}; see --backbone",
                 root.source(), name, shape_text(tensor.shape), backbone_name(model.backbone()));
    target->second.copy_(torch_tensor(tensor));
    expect_finite("backbone", root, name, target->second);
    wanted.erase(target);
  }
  std::erase_if(wanted, [](const auto& item) { return item.first.ends_with("num_batches_tracked"); });
  SSD_VALIDATE(wanted.empty(),
               "backbone '{}': {} tensors of {} are missing, the first for '{}'; see --backbone",
               root.source(), wanted.size(), backbone_name(model.backbone()),
               wanted.empty() ? "" : wanted.begin()->first);
}

}  // namespace ssd
