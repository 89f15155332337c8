#!/usr/bin/env python3
"""A set of the size of COCO train2017, made from a few photos: packed, verified, described, and an epoch of it
read by the training loader; and its JSON read.

    coco_scale.py [--scale 0.1] [--ranks N] [--pycocotools PYTHON] BUILD WORK PHOTOS...

BUILD: the build folder, where ssd_preprocess and the targets bench_annotations and bench_epoch were built. WORK: a
folder that is made, filled (at full scale with 20 GB of shards; the pictures are hard links) and removed. PHOTOS:
folders of JPEG files. Prints time and peak memory of each step."""

import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import time

IMAGES = 118_287  # of train2017
ANNOTATIONS = 860_001
CATEGORIES = 80
POLYGONS = 2000  # different ones


def jpeg_size(path):
    """Width and height in the frame header."""
    with open(path, "rb") as stream:
        data = stream.read()
    at = 2
    while at + 9 < len(data):
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length
    raise ValueError(f"{path}: no frame header")


def find_photos(folders):
    paths = [os.path.join(f, name) for f in folders for name in sorted(os.listdir(f)) if name.endswith((".jpg", ".jpeg"))]
    if not paths:
        sys.exit(f"no JPEG file in {folders}")
    return [(path, *jpeg_size(path)) for path in paths]


def make_set(work, photos, image_count, annotation_count):
    """Each photo is copied once and linked under new names; annotations are spread over the images at random."""
    chance = random.Random(1)
    images = os.path.join(work, "images")
    masters = os.path.join(work, "masters")
    os.makedirs(images)
    os.makedirs(masters)
    copies = []
    for i, (path, width, height) in enumerate(photos):
        copy = os.path.join(masters, f"{i}.jpg")
        shutil.copyfile(path, copy)
        copies.append((copy, width, height))
    polygons = [
        "[" + ",".join(f"{chance.uniform(0, 640):.2f}" for _ in range(chance.randrange(20, 100))) + "]"
        for _ in range(POLYGONS)
    ]
    source_bytes = 0
    annotations = os.path.join(work, "instances.json")
    with open(annotations, "w") as out:
        out.write('{"info":{},"licenses":[],"images":[')
        for i in range(image_count):
            copy, width, height = copies[i % len(copies)]
            os.link(copy, os.path.join(images, f"{i:012}.jpg"))
            source_bytes += os.path.getsize(copy)
            out.write("," if i else "")
            out.write(f'{{"license":1,"file_name":"{i:012}.jpg","coco_url":"http://images.example.org/{i:012}.jpg",')
            out.write(f'"height":{height},"width":{width},"date_captured":"2013-11-14 17:02:52","id":{i}}}')
        out.write('],"annotations":[')
        for k in range(annotation_count):
            image = chance.randrange(image_count)
            _, width, height = copies[image % len(copies)]
            w, h = chance.uniform(2, width / 2), chance.uniform(2, height / 2)
            x, y = chance.uniform(0, width - w), chance.uniform(0, height - h)
            out.write("," if k else "")
            out.write(f'{{"segmentation":[{polygons[k % POLYGONS]}],"area":{w * h * 0.7:.4f},"iscrowd":0,')
            out.write(f'"image_id":{image},"bbox":[{x:.2f},{y:.2f},{w:.2f},{h:.2f}],')
            out.write(f'"category_id":{chance.randrange(CATEGORIES) + 1},"id":{k + 1}}}')
        out.write('],"categories":[')
        out.write(",".join(f'{{"supercategory":"c","id":{c + 1},"name":"class {c + 1}"}}' for c in range(CATEGORIES)))
        out.write("]}")
    return annotations, images, source_bytes


def run(what, command):
    """Time, CPU time and peak memory of a command; its output goes through."""
    start = time.monotonic()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{what}: {command[0]} failed")
    seconds, cpu = time.monotonic() - start, usage.ru_utime + usage.ru_stime
    print(f"== {what}: {seconds:.1f} s, {cpu:.1f} s of CPU, peak {usage.ru_maxrss / 1024:.0f} MiB", flush=True)


PYCOCOTOOLS = """
import sys, resource
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
from pycocotools.coco import COCO
import time
start = time.monotonic()
COCO(sys.argv[1])
print(f'pycocotools: {time.monotonic() - start:.2f} s,'
      f' peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB')
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json-scale", type=float, help="of the annotations alone; default: as --scale")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2, help="that read the epoch")
    parser.add_argument("--pycocotools", help="a Python that has it")
    parser.add_argument("build")
    parser.add_argument("work")
    parser.add_argument("photos", nargs="+")
    options = parser.parse_args()
    programs = os.path.join(options.build, "bin")
    if os.path.exists(options.work):
        sys.exit(f"'{options.work}' exists")
    try:
        images = max(1, round(IMAGES * options.scale))
        annotations, folder, source_bytes = make_set(
            options.work, find_photos(options.photos), images, round(ANNOTATIONS * (options.json_scale or options.scale)))
        print(f"== {images} images of {source_bytes / 1e9:.2f} GB, JSON of {os.path.getsize(annotations) / 1e6:.0f} MB",
              flush=True)
        run("read the JSON", [os.path.join(options.build, "tests/bench/bench_annotations"), annotations])
        if options.pycocotools:
            run("read the JSON by pycocotools", [options.pycocotools, "-c", PYCOCOTOOLS, annotations])
        packer = os.path.join(programs, "ssd_preprocess")
        launcher = ["mpirun", "--bind-to", "none", "-n", str(options.ranks)] if options.ranks > 1 else []
        shards = os.path.join(options.work, "shards")
        source = ["--split", "train", "--annotations", annotations, "--images", folder]
        run("pack", [*launcher, packer, *source, shards])
        size = sum(entry.stat().st_size for entry in os.scandir(shards))
        print(f"== shards of {size / 1e9:.3f} GB: {100 * (size / source_bytes - 1):+.2f} % of the pictures' files",
              flush=True)
        run("verify", [*launcher, packer, "--verify", shards])
        run("verify beside the source", [*launcher, packer, "--verify", *source, shards])
        run("info", [packer, "--info", shards])
        run("read an epoch", [os.path.join(options.build, "tests/bench/bench_epoch"), shards, str(options.threads)])
    finally:
        shutil.rmtree(options.work, ignore_errors=True)


if __name__ == "__main__":
    main()
