#!/usr/bin/env python3
"""Random small sets, evaluated by ssd_eval and by pycocotools: every bit of all arrays and statistics must agree.

Usage: compare_with_pycocotools.py SSD_EVAL FOLDER CASES [FIRST_CASE]
"""

import contextlib
import io
import json
import random
import subprocess
import sys

import numpy
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

RANGES = [["all", 0, 1e10], ["small", 0, 1024], ["medium", 1024, 9216], ["large", 9216, 1e10]]


def random_box(draw):
    step = draw.choice([1, 8, 8, 0.37])
    return [step * draw.randrange(6), step * draw.randrange(6), step * draw.randrange(14), step * draw.randrange(14)]


def random_truth(draw):
    images = [{"id": i * 7 % 11 - 2} for i in range(draw.randint(1, 8))]
    categories = [{"id": k * 5 % 7, "name": f"class {k}"} for k in range(draw.randint(1, 4))]
    repeats_ids, has_id_0 = draw.random() < 0.25, draw.random() < 0.25
    annotations = []
    for i in range(draw.randrange(25)):
        box = random_box(draw)
        area = draw.choice([box[2] * box[3], box[2] * box[3], 1023.5, 1024, 9216])
        annotations.append({"id": draw.randint(1, 15) if repeats_ids else i + (not has_id_0),
                            "image_id": draw.choice(images)["id"], "category_id": draw.choice(categories)["id"],
                            "bbox": box, "area": area, "iscrowd": int(draw.random() < 0.15),
                            "ignore": draw.randrange(2)})
    return {"images": images, "categories": categories, "annotations": annotations}


def random_results(draw, truth):
    results = []
    for _ in range(draw.randint(1, 60)):  # pycocotools fails on an empty list
        near = draw.choice(truth["annotations"]) if truth["annotations"] and draw.random() < 0.75 else None
        box = list(near["bbox"]) if near else random_box(draw)
        box[draw.randrange(4)] += draw.choice([0, 0, 1, 2, 0.125])
        category = near["category_id"] if near and draw.random() < 0.9 else draw.choice(
            [c["id"] for c in truth["categories"]] + [99])
        results.append({"image_id": near["image_id"] if near else draw.choice(truth["images"])["id"],
                        "category_id": category, "bbox": box,
                        "score": draw.choice([draw.random(), 0.1 * draw.randrange(6)])})
    return results


def random_parameters(draw, truth):
    chosen = {"maxDets": [1, 10, 100], "areas": RANGES, "iouThrs": numpy.linspace(.5, .95, 10),
              "recThrs": numpy.linspace(0, 1, 101), "useCats": 1, "imgIds": [], "catIds": []}
    if draw.random() < 0.5:
        chosen["maxDets"] = [1, 2, draw.randint(3, 6)]
    if draw.random() < 0.25:
        chosen["iouThrs"] = numpy.array(draw.choice([[0.5], [0.75, 0.5, 1.0], [0.1, 0.3, 0.30000000000000004]]))
    if draw.random() < 0.25:
        chosen["recThrs"] = numpy.array([0, 1 / 3, 0.5, 2 / 3, 0.7, 1])
    if draw.random() < 0.25:
        chosen["areas"] = RANGES + [["exactly", 1024, 1024], ["some", 100, 2000], ["tiny", 0, 0]]
    if draw.random() < 0.25:
        chosen["useCats"] = 0
    if draw.random() < 0.25:
        chosen["imgIds"] = sorted(draw.sample([i["id"] for i in truth["images"]], draw.randint(1, len(truth["images"]))))
    if draw.random() < 0.25:
        ids = sorted(c["id"] for c in truth["categories"])
        chosen["catIds"] = sorted(draw.sample(ids, draw.randint(1, len(ids))))
    return chosen


def with_pycocotools(folder, chosen):
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(f"{folder}/gt.json")
        run = COCOeval(truth, truth.loadRes(f"{folder}/dt.json"), "bbox")
        for name in ("maxDets", "iouThrs", "recThrs", "useCats"):
            setattr(run.params, name, chosen[name])
        run.params.areaRng = [[low, high] for _, low, high in chosen["areas"]]
        run.params.areaRngLbl = [name for name, _, _ in chosen["areas"]]
        for name in ("imgIds", "catIds"):
            if chosen[name]:
                setattr(run.params, name, chosen[name])
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


def with_ssd_eval(program, folder, chosen, threads):
    def listed(values):
        return ",".join(repr(float(v)) for v in values)
    command = [program, f"{folder}/gt.json", f"{folder}/dt.json", "--json", f"{folder}/out.json", "--arrays",
               "--threads", str(threads), "--max-dets", ",".join(map(str, chosen["maxDets"])),
               "--iou-thresholds", listed(chosen["iouThrs"]), "--recall-thresholds", listed(chosen["recThrs"]),
               "--area-ranges", ",".join(f"{n}:{low!r}:{high!r}" for n, low, high in chosen["areas"])]
    if not chosen["useCats"]:
        command.append("--class-agnostic")
    if chosen["imgIds"]:
        command.append("--images=" + ",".join(map(str, chosen["imgIds"])))
    if chosen["catIds"]:
        command += ["--categories", ",".join(map(str, chosen["catIds"]))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(f"{folder}/out.json") as file:
        return json.load(file)


def differences(run, ours, chosen):
    found = []
    for name in ("precision", "recall", "scores"):
        mine = numpy.array(ours["arrays"][name], dtype=numpy.float64).reshape(ours["arrays"][name + "_shape"]
                           if name != "scores" else ours["arrays"]["precision_shape"])
        theirs = numpy.ascontiguousarray(run.eval[name])
        if mine.shape != theirs.shape or mine.tobytes() != theirs.tobytes():
            found.append(name)
    stats = list(ours["stats"].values())
    first = 0 if chosen["maxDets"][2] == 100 else 1  # pycocotools' AP is of 100 detections, whatever the limits
    if numpy.array(stats[first:]).tobytes() != numpy.array(run.stats[first:], dtype=numpy.float64).tobytes():
        found.append("stats")
    return found


def main():
    program, folder, cases = sys.argv[1], sys.argv[2], int(sys.argv[3])
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    for case in range(first, first + cases):
        draw = random.Random(case)
        truth = random_truth(draw)
        for name, content in (("gt", truth), ("dt", random_results(draw, truth))):
            with open(f"{folder}/{name}.json", "w") as file:
                json.dump(content, file)
        chosen = random_parameters(draw, truth)
        found = differences(with_pycocotools(folder, chosen),
                            with_ssd_eval(program, folder, chosen, 1 + case % 2), chosen)
        if found:
            sys.exit(f"case {case}: {', '.join(found)} differ; the parameters: {chosen}")
    print(f"{cases} cases agree in every bit")


if __name__ == "__main__":
    main()
