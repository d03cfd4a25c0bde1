"""`python -m inferscope ...` is the `inferscope` command."""

import os
import sys

from ._binary import find


def main() -> int:
    binary = find()
    if binary is None:
        print("inferscope: the command is not installed here; install the package with pip", file=sys.stderr)
        return 1
    os.execv(binary, ["inferscope", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
