"""scikit-learn: a pipeline of a scaler and a forest, asked again and again. Nothing is marked."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

random = np.random.default_rng(0)
samples = random.normal(size=(200, 8))
labels = (samples.sum(axis=1) > 0).astype(int)
forest = RandomForestClassifier(n_estimators=5, random_state=0).fit(samples, labels)
scaler = StandardScaler().fit(samples)
both = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5, random_state=0)).fit(samples, labels)

total = 0.0
for _ in range(6):
    total += int(forest.predict(samples).sum())
for _ in range(5):
    total += float(forest.predict_proba(samples)[:, 1].sum())
for _ in range(4):
    total += float(np.abs(scaler.transform(samples)).sum())
for _ in range(3):
    total += int(both.predict(samples).sum())
print(f"{total:.6f}")
