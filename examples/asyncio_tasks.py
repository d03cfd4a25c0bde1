"""Coroutines that interleave on one thread: each task keeps its own nesting of scopes.
Try it with:

    inferscope run examples/asyncio_tasks.py
"""

import asyncio
import hashlib

from inferscope import mark_event, scope


@scope("fetch")
async def fetch(number: int) -> bytes:
    await asyncio.sleep(0.01)  # Stands for the network. The thread is free meanwhile, the scope stays open.
    return str(number).encode() * 1000


@scope("digest")
def digest(body: bytes) -> str:
    for _ in range(200):
        body = hashlib.sha256(body).digest()
    return body.hex()


async def handle(number: int) -> str:
    with scope("request", tags={"number": number}):
        body = await fetch(number)
        if number % 10 == 0:
            mark_event("large_body", metadata={"bytes": len(body)})
        return digest(body)


async def main() -> None:
    answers = await asyncio.gather(*(handle(number) for number in range(50)))
    print(f"{len(set(answers))} different answers")


if __name__ == "__main__":
    asyncio.run(main())
