#!/usr/bin/env python3
"""The data path beside Pillow, OpenCV, torchvision, DALI and h5py: all in turn in one run, medians and ratios.

    data_bench.py build/default/tests/bench/bench_data COCO SHARDS PEERS [--repeats 7] [--only D8 R1]

COCO: a folder with annotations/instances_train2017.json and train2017/; SHARDS: what ssd_preprocess made of it.
PEERS: a folder with peer_common.py and pipeline_peers.py, the other implementations' pipelines: function_cases(),
dali_cases(), torchvision_cases(), stage_cases() and aten_resize_cases() that give callables by name.

Rows of one thread compare CPU seconds, rows of two threads wall time. Pin one-thread runs: taskset -c 1.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable

PASSES = 4  # over the photos in one turn
Timing = tuple[float, float]  # wall and CPU milliseconds an image


class Ours:
    """bench_data, which waits for the next case on its input."""

    def __init__(self, program: str, coco: Path, shards: Path) -> None:
        self.process = subprocess.Popen([program, str(coco), str(shards)], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

    def case(self, name: str) -> Callable[[], Timing]:
        def run() -> Timing:
            self.process.stdin.write(f"{PASSES} {name}\n")
            self.process.stdin.flush()
            images, wall, cpu = map(float, self.process.stdout.readline().split())
            return wall / images * 1e3, cpu / images * 1e3
        return run


def peer_cases(threads: list[int]) -> dict[str, Callable[[], Timing]]:
    """The peers' cases by their own names."""
    import peer_common
    import pipeline_peers as peers
    images = [image for image in peer_common.load_images() if peer_common.is_rgb(image)]
    random.seed(1)
    cases = {}
    for name, peer in (("pillow", peers.PillowPeer()), ("opencv", peers.OpenCvPeer())):
        cases |= peers.function_cases(name, peer, images, threads)
        cases |= peers.stage_cases(name, peer, images)
    for make in (peers.torchvision_cases, peers.dali_cases):
        cases |= make(images, threads)
    cases |= peers.aten_resize_cases(images)

    def timed(case: object) -> Callable[[], Timing]:
        def run() -> Timing:
            case.prepare()
            wall_rate, cpu_rate = peer_common.throughput(case.run)
            return 1e3 / wall_rate, 1e3 / cpu_rate
        return run
    return {name: timed(case) for name, case in cases.items()}


def h5py_cases(shards: Path, folder: Path) -> dict[str, Callable[[], Timing]]:
    """Records of the first shard read by h5py, from its own layout and from one of variable length."""
    import h5py
    import numpy
    file = h5py.File(shards / "train-00000-of-00001.h5", "r")
    begins, sizes = file["images/jpeg_offset"][:], file["images/jpeg_bytes"][:]
    with h5py.File(folder / "vlen.h5", "w") as target:
        rows = target.create_dataset("jpeg", (len(begins),), h5py.vlen_dtype(numpy.uint8))
        for i, (begin, size) in enumerate(zip(begins, sizes)):
            rows[i] = file["jpeg"][int(begin):int(begin) + int(size)]
    contiguous, variable = file["jpeg"], h5py.File(folder / "vlen.h5", "r")["jpeg"]

    def timed(read: Callable[[int], object]) -> Callable[[], Timing]:
        def run() -> Timing:
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(PASSES):
                for i in range(len(begins)):
                    read(i)
            count = PASSES * len(begins)
            return (time.perf_counter() - wall) / count * 1e3, (time.process_time() - cpu) / count * 1e3
        return run
    return {"h5py contiguous": timed(lambda i: contiguous[int(begins[i]):int(begins[i]) + int(sizes[i])]),
            "h5py vlen": timed(lambda i: variable[i])}


def settled(run: Callable[[], Timing]) -> Timing:
    """Runs a case, and waits until what it has started in the background (loaders fill their queues) is at rest."""
    timing = run()
    ticks = -1.0
    while ticks != (ticks := busy_ticks()):
        time.sleep(.1)
    return timing


def busy_ticks() -> float:
    """CPU time of this process' threads and children, in ticks of the kernel, but for the polling itself."""
    ticks = 0
    for stat in [*Path("/proc/self/task").glob("*/stat"), *Path(f"/proc/self/task/{os.getpid()}").glob("children")]:
        if stat.name == "children":
            for child in stat.read_text().split():
                ticks += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
        elif stat.parent.name != str(os.getpid()):
            ticks += sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13]))
    return ticks


# Row, what it says, the slower case, the faster case, the goal for their ratio, threads.
ROWS = [
    ("D1", "full decode / parts of photos", "decode", "crop parts", 1.55, 1),
    ("D1", "full decode / as training crops", "decode", "crop", None, 1),
    ("D2", "parts by skipping / by segments", "skip parts", "crop parts", 1.25, 1),
    ("D3", "sample: Pillow + NumPy", "pillow/train/1", "sample", 3.0, 1),
    ("D4", "samples, 2 threads: DALI", "dali/train/2", "loader 2", 1.4, 2),
    ("D5", "samples, 2 workers: torchvision", "torchvision/train/2", "loader 2", 2.5, 2),
    ("D5", "sample: OpenCV", "opencv/train/1", "sample", 1.8, 1),
    ("D5", "samples, 2 threads: OpenCV", "opencv/train/2", "loader 2", 1.8, 2),
    ("D7", "sample: from JPEG / from the cache", "sample", "cached sample", 4.0, 1),
    ("D8", "resize: Pillow", "pillow/stage/resize_whole", "resize whole", 6.0, 1),
    ("D8", "resize: ATen uint8", "aten/stage/resize_whole/planar", "resize whole", 1.2, 1),
    ("R1", "record: raw pread", "read raw", "read record", 0.98, 1),
    ("R1", "record: raw pread and CRC-32", "read raw and check", "read record", 0.98, 1),
    ("R1", "record: h5py contiguous", "h5py contiguous", "read record", 1.1, 1),
    ("R1", "record: h5py vlen", "h5py vlen", "read record", 4.0, 1),
    ("R2", "loader: 1 thread / 2 threads", "loader 1", "loader 2", 1.9, 2),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("program")
    for name in ("coco", "shards", "peers"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="+", help="rows")
    args = parser.parse_args()
    rows = [row for row in ROWS if not args.only or row[0] in args.only]
    wanted = {name for row in rows for name in row[2:4]}

    os.environ["PEER_PASSES"] = str(PASSES)
    sys.path.insert(0, str(args.peers))
    ours = Ours(args.program, args.coco, args.shards)
    with tempfile.TemporaryDirectory() as folder:
        cases: dict[str, Callable[[], Timing]] = {}
        if any("/" in name for name in wanted):
            cases |= peer_cases([1, 2])
        if any(name.startswith("h5py") for name in wanted):
            cases |= h5py_cases(args.shards, Path(folder))
        chosen = {name: cases.get(name) or ours.case(name) for name in wanted}
        print(f"{'':3} {'ms an image':36} {'other':>8} {'here':>8} {'ratio':>7} {'goal':>6}")
        for row, text, slower, faster, goal, threads in rows:
            # The two in turn; the first turn warms up.
            turns = [[settled(chosen[name])[0 if threads > 1 else 1] for name in (slower, faster)]
                     for _ in range(args.repeats + 1)][1:]
            other, here = (statistics.median(times) for times in zip(*turns))
            print(f"{row:3} {text:36} {other:8.4f} {here:8.4f} {other / here:7.2f} {goal or '':>6}", flush=True)


if __name__ == "__main__":
    main()
