"""A WSGI service of the standard library, asked by its own client in another thread; a request asks a model."""

import threading
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

from sklearn.dummy import DummyClassifier

model = DummyClassifier().fit([[0], [1], [2]], [0, 1, 1])


class Silent(WSGIRequestHandler):
    def log_message(self, *_arguments):
        pass


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    length = int(environ.get("CONTENT_LENGTH") or 0)
    asked = environ["wsgi.input"].read(length) if length else b"0"
    yield str(model.predict([[int(asked)]])[0]).encode()


with make_server("127.0.0.1", 0, application, handler_class=Silent) as server:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}/secret?token=42"
    for number in range(5):
        body = str(number).encode() if number % 2 else None
        with urllib.request.urlopen(address, data=body) as answer:
            print(answer.status, answer.read().decode())
    server.shutdown()
    thread.join()
