"""What the README shows is true."""

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import nd4jlike as nd

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language):
    """Contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def test_there_are_two_commands():
    """The first installs and does the main job, the second installs and passes the tests; CI runs both."""
    main_job, tests = blocks("sh")
    assert "nd4jlike demo" in main_job
    assert "pytest" in tests


def test_the_examples_print_what_they_say(capsys, tmp_path, monkeypatch):
    """Each `print` of the examples ends in a comment that says what it prints."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in blocks("python"):
        exec(compile(example, "README.md", "exec"), names)
    printed = capsys.readouterr().out.splitlines()
    comments = [line.partition("# ")[2] for line in "".join(blocks("python")).splitlines() if line.startswith("print(")]
    assert len(printed) == 7
    assert printed == comments
    layer = depthwise_layer()
    calls = []
    names["my_library"] = SimpleNamespace(depthwise=lambda *arguments: calls.append(arguments))
    assert names["depthwise"](nd.zeros((1, 4, 5, 3), "int8"), layer).shape == (1, 4, 5, 3)
    assert calls[0][3:] == (1, 4, 5, 3, 1, 1)


def depthwise_layer():
    """Make what the function of the example asks of a layer."""
    return SimpleNamespace(output_shape=(1, 4, 5, 3), dtype="int8", weights=np.ones((3, 3, 3, 1), np.int8), stride=(1, 1))


def test_the_drawn_layouts():
    """The pictures are those that the text says, and are there; that they are what the code draws is a clause of ADR 0011."""
    d = nd.ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (2, 4), (1, 2))
    assert (d.padded_shape, d.offset, d.strides) == ((5, 8), 10, (8, 1))
    blocked = nd.ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
    assert blocked.padded_shape == (1, 24, 5, 4)
    pictures = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", README)
    assert [path for _, path in pictures] == ["adr/0011-padded.svg", "adr/0011-blocked.svg"]
    assert all((ROOT / path).is_file() for _, path in pictures)
