"""Writes pycocotools_results.json beside this folder: what pycocotools makes of every case of cocoeval and eval_cases.

Run in an environment with pycocotools 2.0.11 and numpy. For each case: the twelve stats with all their digits, the
lines that summarize() prints, and the CRC-32 (zlib) of the little-endian float64 bytes of the arrays precision, recall
and scores in C order.
"""

import contextlib
import io
import json
import pathlib
import zlib

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

DATA = pathlib.Path(__file__).resolve().parents[2]


def load_detections(truth, path):
    detections = json.loads(path.read_text())
    if detections:
        return truth.loadRes(detections)
    empty = COCO()  # loadRes cannot take an empty list
    empty.dataset = {**truth.dataset, "annotations": []}
    empty.createIndex()
    return empty


def evaluate(truth_path, detections_path):
    lines = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(truth_path))
        evaluation = COCOeval(truth, load_detections(truth, detections_path), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        with contextlib.redirect_stdout(lines):
            evaluation.summarize()
    crc32 = {
        name: zlib.crc32(np.ascontiguousarray(evaluation.eval[name], dtype="<f8").tobytes())
        for name in ("precision", "recall", "scores")
    }
    return {"stats": [float(x) for x in evaluation.stats], "lines": lines.getvalue(), "crc32": crc32}


def cases():
    expected = json.loads((DATA / "cocoeval/expected.json").read_text())
    for name, case in expected.items():
        if not name.startswith("_"):
            yield name, DATA / "cocoeval" / case["gt"], DATA / "cocoeval" / case["dt"]
    for folder in sorted((DATA / "eval_cases").iterdir()):
        if folder.is_dir():
            yield folder.name, folder / "gt.json", folder / "dt.json"


results = {name: evaluate(truth, detections) for name, truth, detections in cases()}
(DATA / "cocoeval/pycocotools_results.json").write_text(json.dumps(results, indent=1) + "\n")
