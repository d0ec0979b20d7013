"""A torchvision classifier, on whatever device it is, behind the same method."""

import torch
import torchvision

import evenkeel as ek

torch.manual_seed(0)
module = torchvision.models.resnet18(weights=None).eval()  # yours has weights
model = ek.from_torch(
    module,
    task="classification",
    output="fc",
    feature="layer4",
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
image = torch.rand(3, 64, 64)
shield = ek.Pipeline(model, defence=ek.defence("equivariance", steps=2), detector="variance", threshold=0.0)
verdict = shield(image)
attacked = ek.attack(shield, image, verdict.prediction, "pgd", epsilon=4 / 255, steps=2, final_draws=2)
print(model, verdict.prediction, attacked.prediction)
print(type(attacked.image), attacked.image.shape, f"{(attacked.image - image).abs().max() * 255:.2f}/255")
