"""No `inferscope run` around it: the script asks for the recorder itself, and the report is there when it ends.
Try it with:

    python examples/alone.py
"""

import inferscope
from inferscope import scope


def squares(count: int) -> int:
    with scope("squares", tags={"count": count}):
        return sum(number * number for number in range(count))


def main() -> None:
    inferscope.start()
    print(sum(squares(100_000) for _ in range(20)))
    inferscope.stop()
    print(f"report: {inferscope.report_path()}")


if __name__ == "__main__":
    main()
