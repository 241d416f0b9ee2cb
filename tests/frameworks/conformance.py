"""Assignments by which pyright compares the modules of torch and paddle with their protocols.

Nothing here runs. `test_contract.py` checks that no module is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphnet_datasets.frameworks import protocols
    from graphnet_datasets.frameworks.paddle import calibration as paddle_calibration
    from graphnet_datasets.frameworks.paddle import costs as paddle_costs
    from graphnet_datasets.frameworks.paddle import extract as paddle_extract
    from graphnet_datasets.frameworks.paddle import gradients as paddle_gradients
    from graphnet_datasets.frameworks.paddle import input_rules as paddle_input_rules
    from graphnet_datasets.frameworks.paddle import materialize as paddle_materialize
    from graphnet_datasets.frameworks.paddle import observing as paddle_observing
    from graphnet_datasets.frameworks.paddle import operators as paddle_operators
    from graphnet_datasets.frameworks.paddle import oracle as paddle_oracle
    from graphnet_datasets.frameworks.paddle import printer as paddle_printer
    from graphnet_datasets.frameworks.paddle import probing as paddle_probing
    from graphnet_datasets.frameworks.paddle import results as paddle_results
    from graphnet_datasets.frameworks.paddle import runtime as paddle_runtime
    from graphnet_datasets.frameworks.paddle import source as paddle_source
    from graphnet_datasets.frameworks.paddle import tensors as paddle_tensors
    from graphnet_datasets.frameworks.torch import calibration as torch_calibration
    from graphnet_datasets.frameworks.torch import costs as torch_costs
    from graphnet_datasets.frameworks.torch import extract as torch_extract
    from graphnet_datasets.frameworks.torch import fusion as torch_fusion
    from graphnet_datasets.frameworks.torch import gradients as torch_gradients
    from graphnet_datasets.frameworks.torch import input_rules as torch_input_rules
    from graphnet_datasets.frameworks.torch import materialize as torch_materialize
    from graphnet_datasets.frameworks.torch import observing as torch_observing
    from graphnet_datasets.frameworks.torch import operators as torch_operators
    from graphnet_datasets.frameworks.torch import oracle as torch_oracle
    from graphnet_datasets.frameworks.torch import peaks as torch_peaks
    from graphnet_datasets.frameworks.torch import printer as torch_printer
    from graphnet_datasets.frameworks.torch import probing as torch_probing
    from graphnet_datasets.frameworks.torch import profiling as torch_profiling
    from graphnet_datasets.frameworks.torch import regions as torch_regions
    from graphnet_datasets.frameworks.torch import results as torch_results
    from graphnet_datasets.frameworks.torch import runtime as torch_runtime
    from graphnet_datasets.frameworks.torch import source as torch_source
    from graphnet_datasets.frameworks.torch import tensors as torch_tensors
    from graphnet_datasets.validation import paddle_worker, torch_worker

    torch_materialize_module: protocols.Materialize = torch_materialize
    torch_tensors_module: protocols.Tensors = torch_tensors
    torch_operators_module: protocols.Operators = torch_operators
    torch_runtime_module: protocols.RuntimeModule = torch_runtime
    torch_results_module: protocols.Results = torch_results
    torch_printer_module: protocols.Printer = torch_printer
    torch_source_module: protocols.Source = torch_source
    torch_costs_module: protocols.Costs = torch_costs
    torch_calibration_module: protocols.Calibration = torch_calibration
    torch_observing_module: protocols.Observing = torch_observing
    torch_oracle_module: protocols.Oracle = torch_oracle
    torch_profiling_module: protocols.Profiling = torch_profiling
    torch_regions_module: protocols.Regions = torch_regions
    torch_gradients_module: protocols.Derivatives = torch_gradients
    torch_fusion_module: protocols.FusionModule = torch_fusion
    torch_probing_module: protocols.Probing = torch_probing
    torch_extract_module: protocols.Extract = torch_extract
    torch_input_rules_module: protocols.InputRulesModule = torch_input_rules
    torch_peaks_module: protocols.Peaks = torch_peaks
    paddle_materialize_module: protocols.Materialize = paddle_materialize
    paddle_tensors_module: protocols.Tensors = paddle_tensors
    paddle_operators_module: protocols.Operators = paddle_operators
    paddle_runtime_module: protocols.RuntimeModule = paddle_runtime
    paddle_results_module: protocols.Results = paddle_results
    paddle_printer_module: protocols.Printer = paddle_printer
    paddle_source_module: protocols.Source = paddle_source
    paddle_costs_module: protocols.Costs = paddle_costs
    paddle_calibration_module: protocols.Calibration = paddle_calibration
    paddle_observing_module: protocols.Observing = paddle_observing
    paddle_oracle_module: protocols.Oracle = paddle_oracle
    paddle_gradients_module: protocols.Derivatives = paddle_gradients
    paddle_probing_module: protocols.Probing = paddle_probing
    paddle_extract_module: protocols.Extract = paddle_extract
    paddle_input_rules_module: protocols.InputRulesModule = paddle_input_rules
    torch_validation_module: protocols.ValidationModule = torch_worker
    paddle_validation_module: protocols.ValidationModule = paddle_worker
