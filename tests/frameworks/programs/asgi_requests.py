"""An ASGI service (Starlette behind uvicorn) that clients ask at the same time, several requests each. Planted: the
handler asks its store in a call that blocks, so that all others wait, and then a model."""

import asyncio
import socket
import time

import torch
import uvicorn
from marks import request
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

torch.manual_seed(0)
torch.set_num_threads(1)
CLIENTS, EACH = 3, 10
model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 4)).requires_grad_(False)


def features(number):
    """What a client of a database does that knows nothing of asyncio."""
    time.sleep(0.06)
    return torch.full((8, 256), number / 100)


async def answer(asked):
    with request():
        x = features(int(asked.query_params["number"]))
        return PlainTextResponse(f"{float(model(x).sum()):.3f}")


app = Starlette(routes=[Route("/answer", answer)])


async def ask(port, number):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /answer?number={number} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return float(text.splitlines()[-1])


async def client(port, number):
    return sum([await ask(port, EACH * number + place) for place in range(EACH)])


async def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    port = listener.getsockname()[1]
    answers = await asyncio.gather(*(client(port, number) for number in range(CLIENTS)))
    print(f"{sum(answers):.2f}")
    server.should_exit = True
    await serving


asyncio.run(main())
