// Writes a Value as a pickle of protocol 2, in the form that torch.save gives it: tensors are rebuilt by
// torch._utils._rebuild_tensor_v2 from storages named by persistent ids. Python's
// torch.load(weights_only=True) reads it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/value.hpp"

namespace ssd {

struct WrittenPickle {
  std::string bytes;
  std::vector<std::shared_ptr<const Storage>>
      storages;  // the key of a storage is its index here, in decimals
};

// A storage that several tensors share is named once. Throws ContractError for what cannot be written:
// nesting deeper than kMaxDepth, more than kMaxPickleBytes, a storage shared by tensors of different dtypes,
// a tensor that reaches beyond its storage.
WrittenPickle write_pickle(const Value& root);

}  // namespace ssd
