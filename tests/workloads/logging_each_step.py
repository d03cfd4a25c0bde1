"""Planted: the server writes a log line for every one of its requests after every step, through `logging` into a file.
Fix: these lines are debug lines, and the level is above them."""

from __future__ import annotations

import logging
import os
import tempfile

from frame import Workload, main
from parts import encoder, tokens

EXPECT = "logging-in-step"


class LoggingEachStep(Workload):
    STEPS = 60

    def setup(self) -> None:
        self.model, self.tokens = encoder(self), tokens(self)
        self.log = logging.getLogger("server")
        self.log.propagate = False
        descriptor, file = tempfile.mkstemp(prefix="server-", suffix=".log")
        handler = logging.FileHandler(file)
        # Only this process writes it, and nobody reads it afterwards.
        os.close(descriptor)
        os.unlink(file)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(funcName)s %(message)s"))
        self.log.addHandler(handler)

    def begin(self, fixed: bool) -> None:
        self.log.setLevel(logging.WARNING if fixed else logging.INFO)

    def planted(self) -> None:
        chosen = self.model(self.tokens).argmax(-1).tolist()
        for number in range(self.size(400, 20)):
            self.log.info("request %d of %d: token %d, state %s", number, len(chosen), chosen[0], "running")

    fixed = planted


if __name__ == "__main__":
    main(LoggingEachStep)
