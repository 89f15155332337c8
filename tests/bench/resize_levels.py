#!/usr/bin/env python3
"""Differences between our resize to 300x300 and Pillow's (bilinear) over photos and random crops of them.

    resize_levels.py build/default/tests/bench/resize_levels FOLDER... [--crops 8]

Takes every .jpg below the folders: as a whole and in crops of a side of 0.1 to 1 of the photo's, cut out before Pillow
resizes them. Prints how many levels differ by how much; fails where one differs by more than 1.
"""

import argparse
import random
import subprocess
import sys
from pathlib import Path

import numpy
from PIL import Image

SIDE = 300


def rectangles(width: int, height: int, crops: int) -> list[tuple[int, int, int, int]]:
    """The whole picture, then random ones."""
    chosen = [(0, 0, width, height)]
    for _ in range(crops):
        w, h = (max(1, round(random.uniform(.1, 1) * side)) for side in (width, height))
        left, top = random.randint(0, width - w), random.randint(0, height - h)
        chosen.append((left, top, left + w, top + h))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--crops", type=int, default=8)
    args = parser.parse_args()
    random.seed(1)
    ours = subprocess.Popen([args.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert ours.stdin and ours.stdout
    photos = sorted(path for folder in args.folders for path in folder.rglob("*.jpg"))
    counts, resized = numpy.zeros(256, int), 0
    for path in photos:
        picture = Image.open(path).convert("RGB")
        chosen = rectangles(*picture.size, args.crops)
        lines = [" ".join(map(str, (*picture.size, len(chosen)))), *(" ".join(map(str, rect)) for rect in chosen), ""]
        ours.stdin.write("\n".join(lines).encode() + picture.tobytes())
        ours.stdin.flush()
        for rect in chosen:
            here = numpy.frombuffer(ours.stdout.read(SIDE * SIDE * 3), numpy.uint8)
            there = numpy.asarray(picture.crop(rect).resize((SIDE, SIDE), Image.Resampling.BILINEAR)).ravel()
            counts += numpy.bincount(numpy.abs(here.astype(int) - there), minlength=256)
            resized += 1
    largest = int(numpy.flatnonzero(counts)[-1]) if photos else 256
    print(f"{len(photos)} photos, {resized} pictures: the largest difference is {largest}; equal "
          f"{100 * counts[0] / counts.sum():.2f} %, by 1 {100 * counts[1] / counts.sum():.2f} %")
    sys.exit(largest > 1)


if __name__ == "__main__":
    main()
