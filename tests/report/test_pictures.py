"""Pictures on the page: PNG without a library, and nothing else."""

import base64
import struct
import zlib

import numpy as np
import pytest

from surelearn.report.charts import draw
from surelearn.report.document import Chart
from surelearn.report.pictures import LONGEST_SIDE, MOST_BYTES, png, shades, signed


def decoded(text):
    """Pixels of a PNG, read by its own specification."""
    content = base64.b64decode(text)
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts = 8, {}
    while at < len(content):
        (size,) = struct.unpack(">I", content[at : at + 4])
        kind, inside = content[at + 4 : at + 8], content[at + 8 : at + 8 + size]
        (summed,) = struct.unpack(">I", content[at + 8 + size : at + 12 + size])
        assert summed == zlib.crc32(kind + inside)
        parts[kind] = inside
        at += 12 + size
    width, height, depth, color, *_ = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    assert depth == 8
    lines = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape((height, width, 3) if color == 2 else (height, width))


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (4, 7, 3), (96, 2)])
def test_pixels_come_back(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    np.testing.assert_array_equal(decoded(png(pixels)), pixels)


def test_pillow_reads_it_alike():
    image = pytest.importorskip("PIL.Image")
    import io

    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 3)).astype(np.uint8)
    read = np.asarray(image.open(io.BytesIO(base64.b64decode(png(pixels)))))
    np.testing.assert_array_equal(read, pixels)


def test_large_images_are_thinned_out():
    assert max(decoded(png(np.zeros((500, 70), np.uint8))).shape) <= LONGEST_SIDE


def test_colors_say_the_sign():
    red, blue = signed([0.5, -0.5], 1.0)
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert shades([np.nan], 0, 1).tolist() == [0]


def page(pictures, **how):
    names = [f"<b>{i}" for i in range(len(pictures))]
    return draw(
        Chart(kind="pictures", title="t", data={"names": names, "pictures": pictures, **how})
    )


def test_what_is_no_png_is_not_drawn():
    good = png(np.zeros((2, 2), np.uint8))
    wrong = [
        'x" onerror="alert(1)',
        base64.b64encode(b"GIF89a" + b"0" * 40).decode(),
        good + '"',
        7,
        None,
    ]
    html = str(page([good, *wrong]))
    assert html.count("<img") == 1
    assert "onerror" not in html
    assert "&lt;b&gt;0" in html


def test_pictures_do_not_fill_a_page():
    noise = np.random.default_rng(0).integers(0, 256, (96, 96, 3)).astype(np.uint8)
    assert len(page([png(noise)] * 40)) < MOST_BYTES + 20_000


def test_pairs_stay_together():
    good = png(np.zeros((2, 2), np.uint8))
    assert str(page([good] * 4, pairs=True)).count('class="pair"') == 2
