"""scikit-learn: a forest asked a few rows at a time. Planted: every row and what came of it is logged to a file."""

import logging
import tempfile

import numpy as np
from marks import requests
from sklearn.ensemble import RandomForestClassifier

REQUESTS, ROWS = 60, 300
random = np.random.default_rng(0)
samples = random.normal(size=(400, 8))
forest = RandomForestClassifier(n_estimators=8, random_state=0).fit(samples, (samples.sum(axis=1) > 0).astype(int))
total = 0
with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
    logging.basicConfig(filename=file.name, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    log = logging.getLogger("service")
    for _ in requests(range(REQUESTS)):
        rows = random.normal(size=(ROWS, 8))
        answers = forest.predict(rows)
        for row, answer in zip(rows, answers, strict=True):
            log.info("row %s answer %d", row.round(3), answer)
        total += int(answers.sum())
print(total)
