#!/bin/sh
# Lays out, in the current folder, the networks and images outside this repository that cifar.toml, espnet.toml, answers.toml, yolo.toml and the foreign-*.toml name:
# links to $EVENKEEL_DATA, and a contract beside each network.
#
#     EVENKEEL_DATA=/where/they/are sh outside.sh && evenkeel study run cifar.toml
set -eu
: "${EVENKEEL_DATA:?set it to the folder that holds models/, cifar10/, cityscapes/, camvid/ and coco/}"
evenkeel=${EVENKEEL:-evenkeel}

contract() { # NETWORK, then the flags of `model init`
    network=$1
    shift
    ln -sf "$EVENKEEL_DATA/models/$network" "$network"
    "$evenkeel" model init "$network" --force "$@"
}

cifar() { # NETWORK OUTPUT FEATURE MEAN STD
    contract "$1" --task classification --output "$2" --feature "$3" --order rgb --scale 1 --mean "$4" --std "$5" --resize refuse
}
cifar resnet_2b.onnx 33 29 0.4914,0.4822,0.4465 0.2471,0.2435,0.2616
cifar resnet_4b.onnx 54 50 0.4914,0.4822,0.4465 0.2471,0.2435,0.2616
cifar sri_resnet_a.onnx output 94 0.4914,0.4822,0.4465 0.2023,0.1994,0.2010
cifar resnet20_cifar10.onnx logits /layer3/layer3.2/Relu_1_output_0 0.485,0.456,0.406 0.229,0.224,0.225

contract espnet_p2_q8_city_dynamic.onnx --task semantic --output logits --feature /conv/act/PRelu_output_0 \
    --order bgr --scale 255 --mean 72.3923,82.9089,73.1584 --std 11556.396,11768.9895,11453.274 --resize refuse --multiple 8 --palette cityscapes:20

contract espnetv2_s1.0_city_512x256.onnx --task semantic --output logits --feature /bu_dec_l4/merge_layer/merge_layer.3/Conv_output_0 \
    --order rgb --scale 1 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --resize refuse --palette cityscapes:20
contract drn_small_city_dynamic.onnx --task semantic --output logits --feature /n/seg/Conv_output_0 \
    --order rgb --scale 1 --mean 0,0,0 --std 1,1,1 --resize refuse --multiple 8 --palette cityscapes

contract yolo11n-seg.onnx --task instance --head yolo-seg --ids coco --resize letterbox --size 640x640 \
    --output "output0 + output1" \
    --feature "/model.16/cv2/act/Mul_output_0 + /model.19/cv2/act/Mul_output_0 + /model.22/cv2/act/Mul_output_0" \
    --order rgb --scale 1 --mean 0,0,0 --std 1,1,1

ln -sfn "$EVENKEEL_DATA/cifar10" cifar10
ln -sfn "$EVENKEEL_DATA/coco" coco
ln -sfn "$EVENKEEL_DATA/camvid" camvid
mkdir -p cityscapes
ln -sfn "$EVENKEEL_DATA/cityscapes/leftImg8bit" cityscapes/images
ln -sfn "$EVENKEEL_DATA/cityscapes/labelTrainIds" cityscapes/labels
