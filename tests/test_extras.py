"""What messages, examples and pages tell a user to install is there to be installed, and what is installed is whole."""

import configparser
import pathlib
import re

import keras_attention
from keras_attention.extras import how_to_install

ROOT = pathlib.Path(keras_attention.__file__).parent
SETUP = configparser.ConfigParser()
SETUP.read(ROOT.parent / "setup.cfg")
EXTRAS = set(SETUP["options.extras_require"])
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


def test_the_command_installs_from_the_folder_of_the_project():
    assert "`pip install '.[plots]'` in the project's folder" in how_to_install("plots")


def test_every_extra_of_a_message_is_one_of_the_package():
    named = {extra for text in TEXTS.values() for extra in re.findall(r"how_to_install\([\"'](\w+)[\"']\)", text)}
    assert {"geometry", "images", "plots", "serving", "translation"} <= named <= EXTRAS


def test_no_message_has_a_command_of_its_own():
    assert [path for path, text in TEXTS.items() if "pip install" in text] == ["extras.py"]


def test_every_command_of_a_page_or_an_example_installs_from_the_folder_of_the_project():
    pages = [
        *ROOT.parent.glob("*.md"),
        *(path for name in ("docs", "examples") for path in (ROOT.parent / name).iterdir()),
    ]
    commands = [
        command
        for path in pages
        if path.suffix in (".md", ".py")
        for command in re.findall(r"pip install ([^`\n&]*)", path.read_text(encoding="utf-8"))
    ]
    assert len(commands) > 10
    for command in commands:
        what, extras = re.match(r"(?:-q )?(?:-e )?'?(\.)(?:\[([\w,]+)\]')?", command).groups()
        assert what == "." and set((extras or "tests").split(",")) <= EXTRAS, command


def test_the_mark_of_a_typed_package_is_installed():
    assert (ROOT / SETUP["options.package_data"]["keras_attention"]).is_file()
