"""Pillow's antialiased bilinear resize of cut-out rectangles, as golden data for tests/image/resize_test.cpp.

Needs Pillow and numpy. Run in this folder; writes resize.json and one .rgb file (height, width, 3 bytes) per case.
The source pictures are not stored: the test makes the same pixels by the rule of picture().
"""
import json

import numpy as np
from PIL import Image, __version__


def mix(x):
    x = x.astype(np.uint64)
    x = x ^ (x >> 16)
    x = x * 0x7FEB352D & 0xFFFFFFFF
    x = x ^ (x >> 15)
    x = x * 0x846CA68B & 0xFFFFFFFF
    return x ^ (x >> 16)


def picture(kind, width, height):
    y, x, channel = np.mgrid[0:height, 0:width, 0:3]
    if kind == "noise":
        values = mix((y * width + x) * 3 + channel) >> 24
    elif kind == "checks":  # hard edges, white and black, another pitch in each channel
        values = ((x // (3 + channel) + y // (2 + channel)) % 2) * 255
    else:
        values = (x * (2 + channel) + y * (3 - channel)) % 256
    return values.astype(np.uint8)


CASES = [  # kind, source width, height, rectangle (left, top, right, bottom), output width, height
    ("noise", 640, 97, (0, 0, 640, 97), 300, 37),
    ("noise", 97, 640, (11, 5, 90, 601), 37, 300),
    ("noise", 300, 20, (0, 0, 300, 20), 300, 20),
    ("noise", 60, 50, (7, 9, 33, 28), 75, 64),
    ("noise", 1, 1, (0, 0, 1, 1), 30, 30),
    ("noise", 5000, 4, (0, 0, 5000, 4), 60, 30),
    ("noise", 3, 2000, (1, 0, 2, 2000), 20, 40),
    ("noise", 451, 337, (100, 3, 404, 336), 60, 50),
    ("checks", 640, 97, (0, 0, 640, 97), 300, 37),
    ("checks", 451, 337, (100, 3, 404, 336), 60, 50),
    ("checks", 60, 50, (7, 9, 33, 28), 75, 64),
    ("ramp", 500, 375, (0, 0, 500, 375), 60, 60),
]

cases = []
for number, (kind, width, height, rectangle, out_width, out_height) in enumerate(CASES):
    source = Image.fromarray(picture(kind, width, height), "RGB").crop(rectangle)
    result = source.resize((out_width, out_height), Image.Resampling.BILINEAR)
    name = f"case_{number:02}.rgb"
    np.asarray(result).tofile(name)
    cases.append(dict(file=name, kind=kind, source=[width, height], rectangle=rectangle, output=[out_width, out_height]))
with open("resize.json", "w") as file:
    json.dump({"pillow": __version__, "cases": cases}, file, indent=1)
