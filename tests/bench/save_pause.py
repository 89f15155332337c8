#!/usr/bin/env python3
"""How long a checkpoint stops training: the pause of ssd_train's main thread against writing the same file while it waits.

Trains SSD300-ResNet50 for some iterations, each of which saves; the last file is written while nothing else runs. With
--peer CHECKPOINT_PEER and --python an interpreter that has torch, the peer's torch.save is timed in the same folder.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bin", type=Path, help="folder of the programs")
    parser.add_argument("shards", type=Path)
    parser.add_argument("folder", type=Path, help="where checkpoints go; emptied of them")
    parser.add_argument("--backbone", default="resnet50")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--peer", type=Path, help="the script that times torch.save")
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    pauses: list[float] = []
    writes: list[float] = []
    stalls: list[float] = []
    size = 0
    for _ in range(options.runs):
        log = options.folder / "log.json"
        options.folder.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        run = subprocess.run(
            [options.bin / "ssd_train", "--data", options.shards, "--device", "cpu", "--fp16", "--backbone",
             options.backbone, "--batch-size", "2", "--epochs", "1", "--evaluation", "none", "--save", options.folder,
             "--save-every-iterations", "1", "--json-summary", log, "--seed", "1"],
            check=True, capture_output=True, text=True)
        lines = [json.loads(line.split(" ", 1)[1]) for line in log.read_text().splitlines()]
        # The first save touches the spare blocks for the first time.
        pauses += [line["data"]["save_pause_ms"] for line in lines if "save_pause_ms" in line.get("data", {})][1:]
        writes.append(1000 * float(re.findall(r"saved '.*' in ([0-9.]+) s", run.stderr)[-1]))
        size = next(options.folder.glob("epoch_*.pt")).stat().st_size
        if options.peer:
            peer = subprocess.run([options.python, options.peer, options.folder / "peer", "--repeats", "3"], check=True,
                                  capture_output=True, text=True)
            stalls.append(1000 * json.loads(peer.stdout.splitlines()[-1])["stall_s"])
    pause, write = statistics.median(pauses), statistics.median(writes)
    print(f"{size} bytes; {len(pauses)} saves in {options.runs} runs, medians")
    print(f"pause of training        {pause:8.2f} ms (largest {max(pauses):.2f})")
    print(f"own write, undisturbed   {write:8.2f} ms: the pause is {pause / write:.4f} of it")
    if stalls:
        stall = statistics.median(stalls)
        print(f"torch.save of the peer   {stall:8.2f} ms: the pause is {pause / stall:.4f} of it")


if __name__ == "__main__":
    main()
