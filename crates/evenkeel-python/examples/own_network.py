"""A network of one's own in numpy: dark or light, by the mean of the pixels."""

import numpy as np

import evenkeel as ek


class Brightness(ek.Network):
    def run(self, inputs, names):
        def tensor(one, name):
            mean = one.mean()
            return np.array([[1 - mean, mean]], np.float32) if name == "scores" else one

        return [[tensor(one, name) for name in names] for one in inputs]

    def trace(self, inputs, names):
        def gradient(one, row):
            total = np.zeros_like(one)
            for name, cotangent in zip(names, row):
                if cotangent is not None:
                    total += (cotangent[0, 1] - cotangent[0, 0]) / one.size if name == "scores" else cotangent
            return total

        return self.run(inputs, names), lambda rows: [gradient(one, row) for one, row in zip(inputs, rows)]


model = ek.from_network(Brightness(), task="classification", output="scores", feature="image", names=["dark", "light"])
dark = np.full((32, 32, 3), 125, np.uint8)
attacked = ek.attack(model, dark, 0, "pgd", epsilon=8 / 255, steps=8)
print(model.predict(dark).name, "->", attacked.prediction.name)
