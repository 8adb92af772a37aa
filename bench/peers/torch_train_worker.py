"""PyTorch's training step: torch_train_worker.py NETWORK BATCH LOSS OPTIMIZER MODEL FOLDER MODE.

MODE is eager or compiled. One thread; the networks are those of tests/training/networks.py, those
of bench/models/survey_networks.py with "survey_" in front, and the perceptron; MODEL and FOLDER,
which other workers need, are not used.
"""

import pathlib
import sys

import protocol
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/training"), str(ROOT / "bench/models")]


def network_of(name, batch):
    """The module in training mode, and a batch of inputs."""
    if name.startswith("survey_"):
        import survey_networks
        network = survey_networks.NETWORKS[name.removeprefix("survey_")]
        return network.make(), network.batch(batch)
    if name == "mlp":
        layers = [torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)]
        return torch.nn.Sequential(*layers), torch.rand(batch, 784) * 2 - 1
    import networks
    spec = networks.NETWORKS[name]
    model = spec.make().train()
    if batch == 1:  # PyTorch refuses statistics of one value; those of a map are no trouble
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.eval()
    return model, torch.rand(batch, *spec.shape) * 2 - 1


def main():
    name, batch, loss_name, optimizer_name = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]
    mode = sys.argv[7]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    protocol.imports_done()
    model, x = network_of(name, batch)
    with torch.no_grad():
        regression = loss_name == "mse"
        target = torch.zeros_like(model(x)) if regression else torch.zeros(batch, dtype=torch.long)
    loss_of = torch.nn.MSELoss() if loss_name == "mse" else torch.nn.CrossEntropyLoss()
    if optimizer_name == "adam":
        optimizer = torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    else:
        momentum = 0.9 if optimizer_name == "momentum" else 0.0
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=momentum, fused=True)

    def forward():
        return loss_of(model(x), target)
    if mode == "compiled":
        import torch._inductor.config as config
        config.cpp.threads = 1
        forward = torch.compile(forward, dynamic=False)

    def step():
        optimizer.zero_grad()
        forward().backward()
        optimizer.step()
    for _ in range(3):
        step()
    protocol.serve(step, version=torch.__version__)


if __name__ == "__main__":
    main()
