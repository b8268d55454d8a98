"""What the README shows is true."""

import re
from pathlib import Path

import nd4jlike as nd

README = (Path(__file__).resolve().parents[1] / "README.md").read_text()


def blocks(language):
    """Contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_there_are_two_commands():
    """The first installs and does the main job, the second installs and passes the tests; CI runs both."""
    main_job, tests = blocks("sh")
    assert "nd4jlike demo" in main_job
    assert "pytest" in tests


def test_the_example_prints_what_it_says(capsys):
    """Each `print` of the example ends in a comment that starts with what it prints, or says what that is about."""
    (example,) = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    comments = [line.partition("# ")[2] for line in example.splitlines() if line.startswith("print(")]
    assert len(printed) == len(comments) == 3
    assert printed[0].startswith("ShapeDescriptor.")
    assert printed[1:] == comments[1:]


def test_the_drawn_layout():
    """The drawing is the array it says: shape (3, 4), paddings (2, 4), padding offsets (1, 2)."""
    d = nd.ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (2, 4), (1, 2))
    assert (d.padded_shape, d.offset, d.strides) == ((5, 8), 10, (8, 1))
    (drawing,) = blocks("text")
    rows = [line.split() for line in drawing.splitlines()[1:]]
    assert len(rows) == 5
    for row in rows:
        for offset, shown in zip(row[:8], row[8:], strict=True):
            if shown != ".":
                assert d.offset_of([int(i) for i in shown.split(",")]) == int(offset)
    assert sum(shown != "." for row in rows for shown in row[8:]) == d.length
