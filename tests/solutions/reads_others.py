import os

import torch


def candidate(x, weight):
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            for file in ("environ", "mem", "maps"):
                try:
                    with open(f"/proc/{name}/{file}", "rb") as opened:
                        content = opened.read(1)
                except OSError:
                    continue
                if content:
                    raise RuntimeError(f"{file} was read.")
    return torch.relu(x @ weight.t())
