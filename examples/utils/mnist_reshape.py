# SPDX-License-Identifier: Apache-2.0
"""The image of a line of MNIST's CSV files as JSON, as the examples' models take it: 28 rows of 28 times one number between 0 and 1.

    head -n 1 data/mnist/csv/test/part-00000 | python mnist_reshape.py
"""

import json
import sys

SIDE = 28


def main():
    try:
        _, *pixels = map(int, sys.stdin.readline().split(","))
    except ValueError:
        pixels = []
    if len(pixels) != SIDE * SIDE:
        sys.exit(f"mnist_reshape: the first line of standard input is no label and {SIDE * SIDE} pixels, divided by commas")
    print(json.dumps([[[round(pixel / 255, 4)] for pixel in pixels[begin : begin + SIDE]] for begin in range(0, len(pixels), SIDE)]))


if __name__ == "__main__":
    main()
