"""The PyTorch side of training_step.py: the units above conv5_4/dw, and one SGD step on them.

The network is the same as the bundle's head: MobileNetV1 alpha 1.0 above its replay layer, with
ReLU6, padding at the bottom and right before the stride of 2, a classifier without bias, soft
targets, and weight decay on kernels and classifier only.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn
from torch.nn import functional

from lrtflite.bundle.manifest import Training

# Units above conv5_4/dw: kind, input channels, output channels, stride.
UNITS = (
    ("pointwise", 512, 512, 1),
    ("depthwise", 512, 512, 1),
    ("pointwise", 512, 512, 1),
    ("depthwise", 512, 512, 2),
    ("pointwise", 512, 1024, 1),
    ("depthwise", 1024, 1024, 1),
    ("pointwise", 1024, 1024, 1),
)
LATENT = (512, 8, 8)
R_MAX, D_MAX, EPSILON = 3.0, 5.0, 1e-5


class BatchRenorm(nn.Module):
    """Batch Renorm in training mode, computed as in the bundle.

    It uses one scale and shift per channel, which is faster than the formula's
    (x - mean) / sigma * r + d.
    """

    mean: torch.Tensor
    variance: torch.Tensor

    def __init__(self, channels: int, *, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.gamma = nn.Parameter(torch.ones(channels))
        self.beta = nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean((0, 2, 3))
        variance = x.var((0, 2, 3), unbiased=False)
        sigma = torch.sqrt(variance + EPSILON)
        with torch.no_grad():
            moving_sigma = torch.sqrt(self.variance + EPSILON)
            r = (sigma / moving_sigma).clamp(1.0 / R_MAX, R_MAX)
            d = ((mean - self.mean) / moving_sigma).clamp(-D_MAX, D_MAX)
            count = x.numel() / len(mean)
            self.mean += self.rate * (mean - self.mean)
            self.variance += self.rate * (variance * (count / (count - 1.0)) - self.variance)
        scale = self.gamma * r / sigma
        shift = self.gamma * d + self.beta - scale * mean
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)


def training_step(
    norm: str, order: str, *, batch: int, classes: int, training: Training
) -> Callable[[], Any]:
    """Return a function that takes one full SGD step on random latents.

    `norm` is `renorm` or `batchnorm`; `order`, of the axes in memory, is `nhwc` or `nchw`.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layout = torch.channels_last if order == "nhwc" else torch.contiguous_format
    model = torch_network(norm, classes=classes, rate=training.values["moment_rate"])
    model.to(memory_format=layout)
    optimizer = sgd(model, training)
    latents = torch.empty(batch, *LATENT, memory_format=layout).normal_().relu_()
    targets = torch.eye(classes)[torch.arange(batch) % classes]

    def step() -> Any:
        optimizer.zero_grad()
        loss: Any = functional.cross_entropy(model(latents), targets)
        loss.backward()
        optimizer.step()
        return loss

    return step


def torch_network(norm: str, *, classes: int, rate: float) -> Any:
    """Return an nn.Sequential, typed as Any because torch's hints lack `to(memory_format=)`."""
    layers: list[nn.Module] = []
    for kind, channels, filters, stride in UNITS:
        if stride == 2:
            layers.append(nn.ZeroPad2d((0, 1, 0, 1)))
        if kind == "pointwise":
            layers.append(nn.Conv2d(channels, filters, 1, bias=False))
        else:
            layers.append(
                nn.Conv2d(
                    channels,
                    filters,
                    3,
                    stride=stride,
                    padding=1 if stride == 1 else 0,
                    groups=channels,
                    bias=False,
                )
            )
        if norm == "renorm":
            layers.append(BatchRenorm(filters, rate=rate))
        else:
            layers.append(nn.BatchNorm2d(filters, eps=EPSILON, momentum=rate))
        layers.append(nn.ReLU6(inplace=True))
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(filters, classes, bias=False)]
    return nn.Sequential(*layers)


def sgd(model: Any, training: Training) -> torch.optim.SGD:
    """Return SGD with the bundle's rates: a separate lr for the classifier, no decay of norms."""
    *trunk, classifier = model
    weights = [layer.weight for layer in trunk if isinstance(layer, nn.Conv2d)]
    norms = [p for layer in trunk if not isinstance(layer, nn.Conv2d) for p in layer.parameters()]
    rates = training.values
    decay = rates["weight_decay"]
    return torch.optim.SGD(
        [
            {"params": weights, "lr": rates["trunk_lr"], "weight_decay": decay},
            {"params": norms, "lr": rates["trunk_lr"]},
            {"params": classifier.parameters(), "lr": rates["lr"], "weight_decay": decay},
        ],
        momentum=rates["momentum"],
    )
