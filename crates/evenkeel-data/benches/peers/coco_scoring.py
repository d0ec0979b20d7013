"""The pycocotools side of benches/coco_scoring.rs: coco_scoring.py FOLDER prints seconds, megabytes and the twelve numbers."""
import contextlib, io, json, sys, time
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def resident_megabytes(line):
    with open("/proc/self/status") as status:
        return next(int(l.split()[1]) for l in status if l.startswith(line)) / 1024


before = resident_megabytes("VmRSS:")
start = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()):
    truth = COCO(sys.argv[1] + "/truth.json")
    score = COCOeval(truth, truth.loadRes(sys.argv[1] + "/results.json"), "segm")
    score.evaluate()
    score.accumulate()
    score.summarize()
seconds = time.perf_counter() - start
megabytes = resident_megabytes("VmHWM:") - before
print(json.dumps(dict(seconds=seconds, megabytes=megabytes, figures=[float(v) for v in score.stats])))
