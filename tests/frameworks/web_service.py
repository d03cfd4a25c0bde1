"""The workload of test_frameworks.py: an aiohttp server and its clients in one event loop; each request
computes with NumPy."""

import asyncio

import numpy as np
from aiohttp import ClientSession, web
from inferscope import scope

WEIGHTS = np.random.default_rng(0).standard_normal((128, 128))


async def infer(request: web.Request) -> web.Response:
    number = int(request.query["number"])
    with scope("handle", tags={"number": number}):
        with scope("compute"):
            vector = np.full(128, float(number))
            for _ in range(20):
                vector = np.tanh(WEIGHTS @ vector)
        with scope("wait"):
            await asyncio.sleep(0.005)
        return web.json_response({"number": number, "sum": float(vector.sum())})


async def main() -> None:
    application = web.Application()
    application.router.add_get("/infer", infer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]

    async def ask(session: ClientSession, number: int) -> int:
        with scope("client"):
            async with session.get(f"http://127.0.0.1:{port}/infer", params={"number": number}) as response:
                return (await response.json())["number"]

    async with ClientSession() as session:
        answers = await asyncio.gather(*(ask(session, number) for number in range(200)))
    await runner.cleanup()
    print(sorted(answers) == list(range(200)))


if __name__ == "__main__":
    asyncio.run(main())
