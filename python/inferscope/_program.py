"""How this program is named in a trace: interpreter and script, never an argument, for arguments may hold secrets."""

import os
import sys


def program() -> str:
    """For example `python serve.py`, `python -m app`, `python -c`."""
    words = list(getattr(sys, "orig_argv", None) or [sys.executable or "python"])
    interpreter = os.path.basename(words[0]) or "python"
    script = _script(words[1:])
    return f"{interpreter} {script}" if script else interpreter


def _script(words: list[str]) -> str:
    """Reads the interpreter's own options, which may stand together: `-um app`, `-Xdev`, `-W ignore`."""
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "-" or not word.startswith("-"):
            return os.path.basename(word)
        if word.startswith("--"):
            del words[: word == "--check-hash-based-pycs"]
            continue
        for place, letter in enumerate(word[1:], 2):
            rest = word[place:]
            if letter == "c":
                return "-c"
            if letter == "m":
                return "-m " + (rest or "".join(words[:1]))
            if letter in "WX":
                del words[: not rest]
                break
    return ""


def version() -> str:
    return ".".join(str(part) for part in sys.version_info[:3])


def stem() -> str:
    """A word for file names: the script's, or the module's, or `python`."""
    last = program().rsplit(" ", 1)[-1]
    word = last[:-3] if last.endswith(".py") else last
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in word).strip("-.")
    return kept[:40] or "python"
