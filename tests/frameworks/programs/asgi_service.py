"""An ASGI service (Starlette behind uvicorn) that is asked by clients at the same time. Each request waits for
the others before it asks a model, so that their entries overlap; one request of them fails."""

import asyncio
import socket

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

torch.set_num_threads(1)
model = torch.nn.Linear(4, 1).requires_grad_(False)
torch.nn.init.ones_(model.weight)
torch.nn.init.zeros_(model.bias)
AT_ONCE = 4
here = []
all_here = asyncio.Event()


async def answer(request):
    here.append(request)
    if len(here) >= AT_ONCE:
        all_here.set()
    await all_here.wait()
    first = float(model(torch.ones(1, 4)))
    second = await asyncio.to_thread(lambda: float(model(torch.zeros(1, 4))))
    return PlainTextResponse(f"{first:.0f} {second:.0f}")


async def fail(_request):
    raise ValueError("on purpose")


app = Starlette(routes=[Route("/answer", answer), Route("/fail", fail, methods=["DELETE"])])


async def ask(port, method, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path}?token=42 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n".encode())
    text = (await reader.read()).decode()
    writer.close()
    return text.splitlines()[0].split()[1], text.splitlines()[-1]


async def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    port = listener.getsockname()[1]
    print(await asyncio.gather(*(ask(port, "GET", "/answer") for _ in range(AT_ONCE))))
    print(await ask(port, "DELETE", "/fail"))
    server.should_exit = True
    await serving


asyncio.run(main())
