import torch


def fx_pass(module, example_inputs):
    for node in module.graph.nodes:
        if node.target is torch.relu:
            node.target = torch.nn.functional.relu
    module.recompile()
    return module
