// What Python makes of a checkpoint; skipped where python3 has no torch. SSD_TEST_PYTHON names another
// interpreter.
#include <gtest/gtest.h>

#include <cstdlib>

#include "programs/trained_set.hpp"

namespace ssd {
namespace {

std::string python() {
  const char* name = std::getenv("SSD_TEST_PYTHON");
  return name != nullptr ? name : "/usr/bin/python3";
}

TEST(PythonTorch, T6_02_loads_epoch_0_with_weights_only) {
  if (run_program({python(), "-c", "import torch"}).exit_code != 0)
    GTEST_SKIP() << python() << " has no torch";
  const TemporaryFolder folder;
  ASSERT_EQ(test::run_ranks(2, test::short_training(folder.path(), 1)).exit_code, 0);
  const auto script = fmt::format(
      "import torch\n"
      "c = torch.load('{}', weights_only=True)\n"
      "assert list(c)[:6] == ['epoch', 'iteration', 'optimizer', 'scheduler', 'label_map', 'model'], "
      "list(c)\n"
      "assert c['epoch'] == 1 and c['iteration'] == 2, (c['epoch'], c['iteration'])\n"
      "assert len(c['model']) == 174 and all(torch.isfinite(t).all() for t in c['model'].values())\n"
      "shapes = [t.shape for n, t in c['model'].items() if not n.endswith(('running_mean', 'running_var', "
      "'num_batches_tracked'))]\n"
      "flat = [torch.nn.Parameter(torch.empty(s)) for s in shapes]\n"
      "no_decay = [p for p in flat if p.dim() <= 1]; decay = [p for p in flat if p.dim() > 1]\n"
      "sgd = torch.optim.SGD([{{'params': no_decay, 'weight_decay': 0.0}}, {{'params': decay}}], lr=1.0, "
      "momentum=0.9, weight_decay=5e-4)\n"
      "sgd.load_state_dict(c['optimizer'])\n"
      "scheduler = torch.optim.lr_scheduler.MultiStepLR(sgd, [43, 54], gamma=0.1)\n"
      "scheduler.load_state_dict(c['scheduler'])\n"
      "assert all(sgd.state[p]['momentum_buffer'].shape == p.shape for p in flat)\n"
      "print('loaded')\n",
      (folder.path() / "epoch_0.pt").string());
  const auto run = run_program({python(), "-c", script});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "loaded\n");
}

}  // namespace
}  // namespace ssd
