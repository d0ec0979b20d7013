"""A threshold from clean images, then an alarm for each of some that are not."""

import evenkeel as ek

model = ek.shipped("segmenter")
clean = [ek.scenes.render(seed, size=(64, 128)).image for seed in range(8)]
calibration = ek.calibrate(model, clean, "variance", false_alarms=0.125)
shield = ek.Pipeline(model, calibration=calibration)

foggy = [ek.corrupt(image, "fog", 5) for image in clean]
scores = [verdict.score for verdict in shield(clean)] + [verdict.score for verdict in shield(foggy)]
print(f"alarms: {sum(v.alarm for v in shield(clean))} of {len(clean)} clean, {sum(v.alarm for v in shield(foggy))} of {len(foggy)} foggy")
print(f"AUROC {ek.metrics.auroc(scores, [False] * len(clean) + [True] * len(foggy)):.3f}")
