"""One-shot Tuner's predictor: ranks the candidates of a task without measuring them.

Ryu, Park and Sung, "One-Shot Tuner for Deep Learning Compilers", CC 2022. A network takes the
features of a program and a vector of the task (shapes, dtypes, flops). It is trained on records of
other tasks to rank programs, with pairs weighted by their difference in throughput.

Differences from the paper: features are those of MetaSchedule, which describe statements, so that a
program is a set of statements. A small network is applied to each statement joined with the task's
vector, and another to the sum and maximum over statements. The records may come from any tuner;
`tuners/oneshot.py` describes suitable ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import TuningError
from ..candidate import Candidate
from ..interfaces import CostModel, Space
from ..measurement import Measurement, normalised_throughput
from ..task import Task
from .arrays import load_arrays, save_arrays
from .pooling import features_of_rows, task_vector
from .ranking import import_torch, one_thread, rank_loss, train

_KIND = "one-shot predictor"


class Predictor(CostModel):
    """A network over statements and the task's vector, trained to rank.

    `tasks` must contain the tasks of all training rows; `predict` accepts any task.

    Raises:
        MissingExtraError: torch is not installed.
    """

    def __init__(
        self,
        space: Space,
        tasks: Iterable[Task] = (),
        *,
        seed: int = 0,
        width: int = 96,
        epochs: int = 60,
        learning_rate: float = 2e-3,
    ) -> None:
        self.space = space
        self.tasks = {task.task_id: task for task in tasks}
        self.seed, self.width, self.epochs = seed, width, epochs
        self.learning_rate = learning_rate
        self._torch = import_torch()
        self._network: Any = None
        self._centre = self._scale = np.zeros(0, np.float32)

    def fit(self, measurements: Sequence[Measurement]) -> None:
        """Fit from scratch on all rows with features.

        Raises:
            TuningError: the task of a row is unknown, or no row has features.
        """
        torch = self._torch
        unknown = {row.task_id for row in measurements} - set(self.tasks)
        if unknown:
            raise TuningError(
                f"The rows belong to {len(unknown)} tasks that are unknown to the predictor, such "
                f"as `{min(unknown)}`. Pass the tasks of all rows to the constructor."
            )
        features = features_of_rows(self.space, measurements)
        valid = [i for i, matrix in enumerate(features) if matrix is not None and len(matrix)]
        if not valid:
            raise TuningError(
                "None of the rows has features. Use records with features, or a space that "
                "computes them."
            )
        rows = [measurements[i] for i in valid]
        inputs = [
            self._join(self.tasks[row.task_id], features[i])
            for i, row in zip(valid, rows, strict=True)
        ]
        everything = np.concatenate(inputs)
        self._centre = everything.mean(axis=0)
        self._scale = np.maximum(everything.std(axis=0), 1e-3)
        labels = torch.as_tensor(normalised_throughput(rows), dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._network = _make_network(torch, everything.shape[1], self.width)
            scaled = [self._scaled(joined) for joined in inputs]

            def loss_of(groups: list[np.ndarray]) -> Any:
                joined = np.concatenate(groups)
                scores = self._network([scaled[index] for index in joined])
                parts = scores.split([len(group) for group in groups])
                losses = [
                    rank_loss(part, labels[torch.as_tensor(group)])
                    for part, group in zip(parts, groups, strict=True)
                ]
                return torch.stack(losses).mean()

            train(
                self._network,
                [row.task_id for row in rows],
                loss_of,
                epochs=self.epochs,
                learning_rate=self.learning_rate,
                seed=self.seed,
            )

    def predict(self, task: Task, candidates: Sequence[Candidate]) -> tuple[np.ndarray, None]:
        """Return scores in the order of speed, on an arbitrary scale."""
        features = self.space.features_of(candidates)
        means = np.array([-np.inf if matrix is None else 0.0 for matrix in features])
        valid = np.flatnonzero(np.isfinite(means))
        if self._network is None or not len(valid):
            return means, None
        inputs = [self._join(task, features[index]) for index in valid]
        if inputs[0].shape[1] != len(self._centre):
            raise TuningError(
                f"The predictor was trained on vectors of length {len(self._centre)}, but this "
                f"space computes length {inputs[0].shape[1]}. Train it on records of this feature "
                "set."
            )
        with self._torch.no_grad(), one_thread():
            scores = self._network([self._scaled(joined) for joined in inputs])
        means[valid] = scores.numpy()
        return means, None

    def save(self, path: str | Path) -> None:
        """Write the trained network as `.npz` arrays with a JSON header.

        Raises:
            TuningError: the predictor has not been fitted.
        """
        if self._network is None:
            raise TuningError("The predictor has not been fitted. Call `fit` before `save`.")
        arrays = {
            f"weight.{key}": tensor.numpy() for key, tensor in self._network.state_dict().items()
        }
        header = {
            "kind": _KIND,
            "width": self.width,
            "feature_set": self.space.feature_set,
            "version": 1,
        }
        arrays.update(centre=self._centre, scale=self._scale)
        save_arrays(path, arrays, header)

    @classmethod
    def load(cls, path: str | Path, space: Space) -> Predictor:
        """Return a saved predictor.

        Raises:
            TuningError: the file is not a predictor, or has another feature set than the space.
        """
        arrays, header = load_arrays(path, _KIND)
        if header.get("feature_set") != space.feature_set:
            raise TuningError(
                f"`{path}` was trained on the features `{header.get('feature_set')}`, but the "
                f"space computes `{space.feature_set}`. Train a predictor on records of the latter."
            )
        torch = import_torch()
        try:
            predictor = cls(space, width=int(header["width"]))
            predictor._centre, predictor._scale = arrays.pop("centre"), arrays.pop("scale")
            with torch.device("meta"):  # sizes come from the file: allocate nothing for them
                predictor._network = _make_network(torch, len(predictor._centre), predictor.width)
            predictor._network.load_state_dict(_weights(torch, arrays), assign=True)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise TuningError(
                f"`{path}` is not a valid predictor: {error}. Train and save it again."
            ) from error
        predictor._network.eval()
        return predictor

    def _join(self, task: Task, features: np.ndarray | None) -> np.ndarray:
        """Return float32 [statements, f + 44]: each statement joined with the task's vector."""
        assert features is not None  # noqa: S101 - the caller removes candidates without features
        vector = np.broadcast_to(task_vector(task), (len(features), 44))
        return np.concatenate([features, vector], axis=1).astype(np.float32)

    def _scaled(self, joined: np.ndarray) -> Any:
        return self._torch.as_tensor((joined - self._centre) / self._scale).float()


def _weights(torch: Any, arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {
        key.removeprefix("weight."): torch.from_numpy(array.copy()) for key, array in arrays.items()
    }


def _make_network(torch: Any, size: int, width: int) -> Any:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = torch.nn.Linear
            self.statement = torch.nn.Sequential(
                layer(size, width), torch.nn.ReLU(), layer(width, width), torch.nn.ReLU()
            )
            self.program = torch.nn.Sequential(
                layer(2 * width, width), torch.nn.ReLU(), layer(width, 1)
            )

        def forward(self, programs: list[Any]) -> Any:
            """Return scores [programs] of a list of float32 [statements, size] programs."""
            counts = torch.tensor([len(program) for program in programs])
            owner = torch.repeat_interleave(torch.arange(len(programs)), counts)
            hidden = self.statement(torch.cat(programs))
            summed = hidden.new_zeros(len(programs), width).index_add(0, owner, hidden)
            index = owner[:, None].expand_as(hidden)
            largest = torch.zeros_like(summed).scatter_reduce(0, index, hidden, "amax")
            return self.program(torch.cat([summed, largest], dim=1))[:, 0]

    return Network()
