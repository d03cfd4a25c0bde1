"""Random inference programs from seeds: a model family, a planted fault or none, a way to mark steps. What each program
must be told stands in its recipe; what was really gained by its fix is measured (tests/suite/seeds.py)."""
