"""A WSGI service of the standard library, asked by its own client in another thread. Planted: each request loads the
model anew."""

import pickle
import threading
import urllib.request
from wsgiref.simple_server import WSGIRequestHandler, make_server

from marks import request
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

REQUESTS, TEXTS, WORDS = 40, 4000, 200_000
known = [" ".join(f"word{number}" for number in range(first, WORDS, 10)) for first in range(10)]
classify = make_pipeline(CountVectorizer(), LogisticRegression())
stored = pickle.dumps(classify.fit(known, [number % 2 for number in range(10)]))


class Silent(WSGIRequestHandler):
    def log_message(self, *_arguments):
        pass


def load():
    return pickle.loads(stored)


def application(environ, start_response):
    with request():
        first = int(environ["QUERY_STRING"])
        answers = load().predict([f"word{first + number} word{7 * number}" for number in range(TEXTS)])
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [str(answers.sum()).encode()]


with make_server("127.0.0.1", 0, application, handler_class=Silent) as server:
    thread = threading.Thread(target=server.serve_forever, name="server")
    thread.start()
    answers = []
    for number in range(REQUESTS):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/?{number}") as answer:
            answers.append(answer.read().decode())
    server.shutdown()
    thread.join()
print(*answers)
