"""A recurrent PyTorch network as a world, complete. swerve run smoke --world "exec:python3 scripts/world/recurrent.py"

The network sees its last grid, the conditioning raster and ego's motion, and keeps a hidden map (a convolutional
GRU). Its weights are random and small: load yours where it says so. States are tensors that are never written
in place, so a fork shares them. Rollouts are computed one by one, because a batched convolution may
round differently from a single one, and then a world is not deterministic as it declares.
"""

import sys

import swerve_world

try:
    import torch
except ImportError:
    sys.exit("recurrent.py: needs PyTorch (pip install torch numpy); scripts/world/echo.py is a world without it")

HIDDEN = 8


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = torch.nn.Conv2d(HIDDEN + 10, 2 * HIDDEN, 3, padding=1)
        self.new = torch.nn.Conv2d(HIDDEN + 10, HIDDEN, 3, padding=1)
        self.out = torch.nn.Conv2d(HIDDEN, 4, 1)

    def forward(self, hidden, last, raster, moved):
        seen = torch.cat([last, raster, moved.view(1, 2, 1, 1).expand(1, 2, *last.shape[2:])], 1)
        reset, keep = torch.sigmoid(self.gates(torch.cat([hidden, seen], 1))).chunk(2, 1)
        new = torch.tanh(self.new(torch.cat([reset * hidden, seen], 1)))
        hidden = keep * hidden + (1 - keep) * new
        return hidden, (raster + 0.05 * raster * torch.tanh(self.out(hidden))).clamp(0, 1)


class Recurrent(swerve_world.World):
    name, version, horizon_s = "recurrent", "1.0", 30.0

    def open(self, setup):
        torch.set_num_threads(setup.thread_count)
        torch.manual_seed(1)
        self.network = Network().eval()  # .load_state_dict(torch.load("mine.pt", weights_only=True))

    def reset(self, given):
        return torch.zeros(1, HIDDEN, 192, 96), self.grid(given)

    def grid(self, given):
        return torch.from_numpy(given.raster.bev.copy()).float().unsqueeze(0) / 255

    @torch.inference_mode()
    def step(self, states, batch):
        made = [self.network(hidden, last, self.grid(given), torch.tensor([given.moved_x_m, given.turned_rad]).float())
                for (hidden, last), given in zip(states, batch)]
        return made, [frame[0].numpy() for _, frame in made], [given.raster.cameras for given in batch]


swerve_world.run(Recurrent())
