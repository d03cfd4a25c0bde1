"""Four threads that queue up behind one lock: the samples show three of them idle in `acquire` and one at work,
so four threads are no faster than one.

    inferscope run examples/threads.py
"""

import threading

from inferscope import scope, step

lock = threading.Lock()
total = 0


def work(rounds: int) -> None:
    global total  # noqa: PLW0603
    for _ in step(range(rounds), name="round"):
        with scope("locked"), lock:
            total += sum(number * number for number in range(20_000))


def main() -> None:
    threads = [threading.Thread(target=work, args=(50,), name=f"worker-{number}") for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"total {total}")


if __name__ == "__main__":
    main()
