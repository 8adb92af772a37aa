"""Measures PyTorch's eager training step at another program's command; see worker.c.

torch_train_worker.py NETWORK BATCH LOSS OPTIMIZER. One thread; the networks are those of
tests/training/networks.py, the batch is fixed.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/training"))
import torch  # noqa: E402

import networks  # noqa: E402


def main():
    name, batch, loss_name, optimizer_name = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5]
    torch.set_num_threads(1)
    torch.manual_seed(0)
    spec = networks.NETWORKS[name]
    model = spec.make().train()
    if batch == 1:  # PyTorch refuses statistics of one value; those of a map are no trouble
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm1d):
                module.eval()
    x = torch.rand(batch, *spec.shape) * 2 - 1
    target = x if loss_name == "mse" else torch.zeros(batch, dtype=torch.long)
    loss_of = torch.nn.MSELoss() if loss_name == "mse" else torch.nn.CrossEntropyLoss()
    momentum = 0.9 if optimizer_name == "momentum" else 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=momentum)

    def step():
        optimizer.zero_grad()
        loss = loss_of(model(x), target)
        loss.backward()
        optimizer.step()

    step()
    print("ready", flush=True)
    for line in sys.stdin:
        count = int(line.split()[1])
        for _ in range(count // 8 + 1):
            step()
        processor, wall = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(count):
            step()
        print(time.perf_counter_ns() - wall, time.process_time_ns() - processor, flush=True)


if __name__ == "__main__":
    main()
