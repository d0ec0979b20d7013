"""A network of the package is attacked, and a pipeline in front of it is attacked by somebody who knows it."""

import evenkeel as ek

model = ek.shipped("segmenter")  # or ek.load("net.onnx")
shield = ek.Pipeline(model, defence="equivariance", answer="vote", defence_steps=2)
scene = ek.scenes.render(7, size=(64, 128))

plain = model.predict(scene.image)
attacked = ek.attack(model, scene.image, scene.labels, "apgd-ce", epsilon=4 / 255, steps=5)
repaired = shield(attacked.image)
knowing = ek.attack(shield, scene.image, scene.labels, "apgd-ce", epsilon=4 / 255, steps=1, draws=2, final_draws=2)

for what, said in [
    ("clean", plain),
    ("attacked", attacked.prediction),
    ("attacked, defended", repaired.prediction),
    ("attacked through the defence, defended", knowing.prediction),
]:
    print(f"{what:40} mIoU {ek.metrics.miou(said, scene.labels, model.classes):.3f}")
