"""Networks that torchvision does not have, written for the fixtures with their authors' names of parameters: small-image ResNets, dilated
residual networks, DeepLabV3+."""

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet


def conv_norm(inp, out, kernel=3, stride=1, dilation=1, pad=None, groups=1):
    pad = dilation * (kernel - 1) // 2 if pad is None else pad
    return [nn.Conv2d(inp, out, kernel, stride, pad, dilation, groups, bias=False), nn.BatchNorm2d(out)]


class Block(nn.Module):
    """conv1/bn1 ... and a shortcut: `downsample`, `shortcut`, zeros for new channels, or none at all."""

    def __init__(self, inp, planes, stride=1, dilation=1, bottleneck=False, shortcut="downsample", residual=True):
        super().__init__()
        self.out = planes * 4 if bottleneck else planes
        if bottleneck:
            shapes = [(inp, planes, 1, 1, 1), (planes, planes, 3, stride, dilation), (planes, self.out, 1, 1, 1)]
        else:
            shapes = [(inp, planes, 3, stride, dilation), (planes, planes, 3, 1, dilation)]
        for i, shape in enumerate(shapes, 1):
            conv, norm = conv_norm(*shape)
            setattr(self, f"conv{i}", conv)
            setattr(self, f"bn{i}", norm)
        self.count, self.stride, self.kind, self.residual = len(shapes), stride, None, residual
        if stride != 1 or inp != self.out:
            self.kind = shortcut
            if shortcut != "zeros" and residual:
                setattr(self, shortcut, nn.Sequential(*conv_norm(inp, self.out, 1, stride)))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = F.relu(y) if i < self.count else y
        if not self.residual:
            return F.relu(y)
        if self.kind == "zeros":
            more = (y.shape[1] - x.shape[1]) // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, more, more))
        elif self.kind:
            x = getattr(self, self.kind)(x)
        return F.relu(y + x)


def stage(inp, planes, blocks, stride=1, **options):
    layers = []
    for i in range(blocks):
        layers.append(Block(inp, planes, stride if i == 0 else 1, **options))
        inp = layers[-1].out
    return nn.Sequential(*layers), inp


class CifarResNet(nn.Module):
    def __init__(self, blocks, channels, shortcut, bottleneck=False):
        super().__init__()
        self.conv1, self.bn1 = conv_norm(3, channels)
        inp = channels
        for i, count in enumerate(blocks):
            made, inp = stage(inp, channels << i, count, 2 if i else 1, bottleneck=bottleneck, shortcut=shortcut)
            setattr(self, f"layer{i + 1}", made)
        self.stages, self.linear = len(blocks), nn.Linear(inp, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        for i in range(self.stages):
            x = getattr(self, f"layer{i + 1}")(x)
        return self.linear(x.mean((2, 3)))


CHANNELS = (16, 32, 64, 128, 256, 512, 512, 512)


def plain_level(inp, out, count, stride, dilation):
    layers = []
    for i in range(count):
        layers += conv_norm(inp, out, 3, stride if i == 0 else 1, dilation) + [nn.ReLU()]
        inp = out
    return nn.Sequential(*layers), inp


class DRN(nn.Module):
    def __init__(self, blocks, bottleneck, variant, classes=1000):
        super().__init__()
        if variant == "C":
            self.conv1, self.bn1 = conv_norm(3, 16, 7)
            self.relu = nn.ReLU()
        else:
            self.layer0 = nn.Sequential(*conv_norm(3, 16, 7), nn.ReLU())
        inp = 16
        for level in range(1, 9):
            out, count = CHANNELS[level - 1], blocks[level - 1]
            stride, dilation = 2 if level in (2, 3, 4) else 1, {5: 2, 6: 4, 7: 2}.get(level, 1)
            if variant == "D" and level in (1, 2, 7, 8):
                made, inp = plain_level(inp, out, count, stride, dilation)
            else:
                wide = bottleneck and 3 <= level <= 6
                made, inp = stage(inp, out, count, stride, dilation=dilation, bottleneck=wide, residual=level < 7)
            setattr(self, f"layer{level}", made)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Conv2d(512, classes, 1)

    def forward(self, x):
        for child in self.children():
            x = child(x)
        return x.flatten(1)


class DRNSeg(nn.Module):
    def __init__(self, drn, classes=19):
        super().__init__()
        self.base = nn.Sequential(*list(drn.children())[:-2])
        self.seg = nn.Conv2d(512, classes, 1)
        self.up = nn.ConvTranspose2d(classes, classes, 16, 8, 4, groups=classes, bias=False)

    def forward(self, x):
        return self.up(self.seg(self.base(x)))


class ASPP(nn.Module):
    def __init__(self, inp, rates):
        super().__init__()
        branches = [nn.Sequential(*conv_norm(inp, 256, 1), nn.ReLU())]
        branches += [nn.Sequential(*conv_norm(inp, 256, 3, 1, rate), nn.ReLU()) for rate in rates]
        branches.append(nn.Sequential(nn.AdaptiveAvgPool2d(1), *conv_norm(inp, 256, 1), nn.ReLU()))
        self.convs = nn.ModuleList(branches)
        self.project = nn.Sequential(*conv_norm(1280, 256, 1), nn.ReLU())

    def forward(self, x):
        branches = [branch(x) for branch in self.convs]
        branches[4] = branches[4].expand_as(branches[0])
        return self.project(torch.cat(branches, 1))


class PlusHead(nn.Module):
    def __init__(self, inp, early, rates, classes):
        super().__init__()
        self.project = nn.Sequential(*conv_norm(early, 48, 1), nn.ReLU())
        self.aspp = ASPP(inp, rates)
        self.classifier = nn.Sequential(*conv_norm(304, 256), nn.ReLU(), nn.Conv2d(256, classes, 1))

    def forward(self, early, last):
        edges = self.project(early)
        context = F.interpolate(self.aspp(last), edges.shape[2:], mode="bilinear", align_corners=False)
        return self.classifier(torch.cat([edges, context], 1))


class ResNetTrunk(nn.Module):
    def __init__(self, make, dilated):
        super().__init__()
        net = make(replace_stride_with_dilation=dilated)
        for name in ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4"):
            setattr(self, name, getattr(net, name))

    def forward(self, x):
        early = self.layer1(self.maxpool(self.relu(self.bn1(self.conv1(x)))))
        return early, self.layer4(self.layer3(self.layer2(early)))


class Inverted(nn.Module):
    """Pads first, then widens, filters each channel, narrows."""

    def __init__(self, inp, out, stride, dilation, widening):
        super().__init__()
        wide = inp * widening
        layers = [] if widening == 1 else [nn.Sequential(*conv_norm(inp, wide, 1), nn.ReLU6())]
        layers.append(nn.Sequential(*conv_norm(wide, wide, 3, stride, dilation, 0, wide), nn.ReLU6()))
        self.conv = nn.Sequential(*layers, *conv_norm(wide, out, 1))
        self.pad, self.residual = dilation, stride == 1 and inp == out

    def forward(self, x):
        y = self.conv(F.pad(x, (self.pad,) * 4))
        return x + y if self.residual else y


class MobileTrunk(nn.Module):
    ROWS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

    def __init__(self, output_stride):
        super().__init__()
        blocks = [nn.Sequential(*conv_norm(3, 32, 3, 2, pad=0), nn.ReLU6())]
        inp, reached, dilation = 32, 2, 1
        for widening, out, count, stride in self.ROWS:
            first = dilation
            if reached == output_stride:
                dilation, stride = dilation * stride, 1
            else:
                reached *= stride
            for i in range(count):
                blocks.append(Inverted(inp, out, stride if i == 0 else 1, first if i == 0 else dilation, widening))
                inp = out
        named = {str(i): block for i, block in enumerate(blocks)}
        self.low_level_features = nn.Sequential()
        self.high_level_features = nn.Sequential()
        for name, block in named.items():
            (self.low_level_features if int(name) < 4 else self.high_level_features).add_module(name, block)

    def forward(self, x):
        early = self.low_level_features(x)
        return early, self.high_level_features(early)


class DeepLabV3Plus(nn.Module):
    def __init__(self, trunk, output_stride, classes=21):
        super().__init__()
        rates = (12, 24, 36) if output_stride == 8 else (6, 12, 18)
        if trunk == "mobilenet":
            self.backbone, channels = MobileTrunk(output_stride), (320, 24)
        else:
            dilated = [False, output_stride == 8, True]
            self.backbone, channels = ResNetTrunk(getattr(resnet, trunk), dilated), (2048, 256)
        self.classifier = PlusHead(*channels, rates, classes)

    def forward(self, x):
        return F.interpolate(self.classifier(*self.backbone(x)), x.shape[2:], mode="bilinear", align_corners=False)


class GridBlock(Block):
    """The bottleneck of a ResNet whose last stage dilates by 1, 2 and 4 times its dilation."""

    def __init__(self, inp, planes, stride, dilation):
        super().__init__(inp, planes, stride, dilation, bottleneck=True)


class GridTrunk(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.conv1, self.bn1 = conv_norm(3, 64, 7, 2)
        inp = 64
        for i, (count, stride) in enumerate(zip(blocks, (1, 2, 2, 1))):
            dilations = [2, 4, 8] if i == 3 else [1] * count
            layers = []
            for k, dilation in enumerate(dilations):
                layers.append(GridBlock(inp, 64 << i, stride if k == 0 else 1, dilation))
                inp = layers[-1].out
            setattr(self, f"layer{i + 1}", nn.Sequential(*layers))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        early = self.layer1(x)
        return early, self.layer4(self.layer3(self.layer2(early)))


class FlatInverted(nn.Module):
    """Like Inverted, with all layers in one list."""

    def __init__(self, inp, out, stride, dilation, widening):
        super().__init__()
        wide = inp * widening
        layers = [] if widening == 1 else [*conv_norm(inp, wide, 1), nn.ReLU6()]
        layers += [*conv_norm(wide, wide, 3, stride, dilation, 0, wide), nn.ReLU6(), *conv_norm(wide, out, 1)]
        self.conv = nn.Sequential(*layers)
        self.pad, self.residual = dilation, stride == 1 and inp == out

    def forward(self, x):
        y = self.conv(F.pad(x, (self.pad,) * 4))
        return x + y if self.residual else y


class FlatMobileTrunk(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = [nn.Sequential(*conv_norm(3, 32, 3, 2), nn.ReLU6())]
        inp, reached, rate = 32, 2, 1
        for widening, out, count, stride in MobileTrunk.ROWS:
            dilation = 1
            if reached == 16:
                dilation, rate, stride = rate, rate * stride, 1
            else:
                reached *= stride
            for i in range(count):
                blocks.append(FlatInverted(inp, out, stride if i == 0 else 1, dilation, widening))
                inp = out
        self.features = nn.Sequential(*blocks)
        self.low_level_features, self.high_level_features = self.features[:4], self.features[4:]

    def forward(self, x):
        early = self.low_level_features(x)
        return early, self.high_level_features(early)


def aligned(x, like):
    return F.interpolate(x, like.shape[2:], mode="bilinear", align_corners=True)


class Branch(nn.Module):
    def __init__(self, inp, kernel, dilation):
        super().__init__()
        self.atrous_conv, self.bn = conv_norm(inp, 256, kernel, 1, dilation)

    def forward(self, x):
        return F.relu(self.bn(self.atrous_conv(x)))


class AlignedASPP(nn.Module):
    def __init__(self, inp):
        super().__init__()
        for i, (kernel, dilation) in enumerate(((1, 1), (3, 6), (3, 12), (3, 18)), 1):
            setattr(self, f"aspp{i}", Branch(inp, kernel, dilation))
        self.global_avg_pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), *conv_norm(inp, 256, 1), nn.ReLU())
        self.conv1, self.bn1 = conv_norm(1280, 256, 1)

    def forward(self, x):
        branches = [self.aspp1(x), self.aspp2(x), self.aspp3(x), self.aspp4(x)]
        branches.append(aligned(self.global_avg_pool(x), branches[-1]))
        return F.relu(self.bn1(self.conv1(torch.cat(branches, 1))))


class Decoder(nn.Module):
    def __init__(self, early, classes):
        super().__init__()
        self.conv1, self.bn1 = conv_norm(early, 48, 1)
        self.last_conv = nn.Sequential(*conv_norm(304, 256), nn.ReLU(), nn.Dropout(0.5), *conv_norm(256, 256), nn.ReLU(),
                                       nn.Dropout(0.1), nn.Conv2d(256, classes, 1))

    def forward(self, x, early):
        early = F.relu(self.bn1(self.conv1(early)))
        return self.last_conv(torch.cat([aligned(x, early), early], 1))


class AlignedDeepLabV3Plus(nn.Module):
    """DeepLabV3+ with the names of jfzhang95/pytorch-deeplab-xception, at output stride 16."""

    def __init__(self, trunk, classes=21):
        super().__init__()
        if trunk == "mobilenet":
            self.backbone, channels = FlatMobileTrunk(), (320, 24)
        else:
            self.backbone, channels = GridTrunk({"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}[trunk]), (2048, 256)
        self.aspp = AlignedASPP(channels[0])
        self.decoder = Decoder(channels[1], classes)

    def forward(self, x):
        early, last = self.backbone(x)
        return aligned(self.decoder(self.aspp(last), early), x)
