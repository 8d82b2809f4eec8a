"""What a message tells a user to install is there to be installed."""

import configparser
import pathlib
import re

import keras_attention
from keras_attention.extras import how_to_install

ROOT = pathlib.Path(keras_attention.__file__).parent
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}


def test_the_command_installs_from_the_folder_of_the_project():
    assert "`pip install '.[plots]'` in the project's folder" in how_to_install("plots")


def test_every_extra_of_a_message_is_one_of_the_package():
    setup = configparser.ConfigParser()
    setup.read(ROOT.parent / "setup.cfg")
    named = {extra for text in TEXTS.values() for extra in re.findall(r"how_to_install\([\"'](\w+)[\"']\)", text)}
    assert {"geometry", "images", "plots", "serving", "translation"} <= named <= set(setup["options.extras_require"])


def test_no_message_has_a_command_of_its_own():
    assert [path for path, text in TEXTS.items() if "pip install" in text] == ["extras.py"]
