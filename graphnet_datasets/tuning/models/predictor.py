"""One-shot Tuner's predictor: which of a task's candidates is fastest, without a measurement of it.

Ryu, Park and Sung, "One-Shot Tuner for Deep Learning Compilers", CC 2022. A network takes the
features of a program together with a vector of the task (shapes, dtypes, flops) and is trained on
records of other tasks to rank, by pairs weighted with how much they differ.

Ours: features are MetaSchedule's per statement, so that a program is a set of statements. Each one
and the task's vector pass a small network, sum and maximum over statements another one. The records
come from any tuner; `tuners/oneshot.py` says which collect well.
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

    `tasks` are those of the rows that it is fitted to; prediction takes any task.

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
        """Train anew on all rows that have features.

        Raises:
            TuningError: a row's task was not given, or no row has features.
        """
        torch = self._torch
        unknown = {row.task_id for row in measurements} - set(self.tasks)
        if unknown:
            raise TuningError(
                f"The predictor is to learn from rows of {len(unknown)} tasks that it was not "
                f"given, `{min(unknown)}` among them. Pass the tasks of all rows."
            )
        features = features_of_rows(self.space, measurements)
        kept = [i for i, each in enumerate(features) if each is not None and len(each)]
        if not kept:
            raise TuningError("No row has features, so that there is nothing to learn from.")
        rows = [measurements[i] for i in kept]
        inputs = [
            self._join(self.tasks[row.task_id], features[i])
            for i, row in zip(kept, rows, strict=True)
        ]
        everything = np.concatenate(inputs)
        self._centre = everything.mean(axis=0)
        self._scale = np.maximum(everything.std(axis=0), 1e-3)
        labels = torch.as_tensor(normalised_throughput(rows), dtype=torch.float32)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            self._network = _make_network(torch, everything.shape[1], self.width)
            scaled = [self._scaled(each) for each in inputs]

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
        """Return scores in the order of speed; their scale means nothing."""
        features = self.space.features_of(candidates)
        means = np.array([-np.inf if each is None else 0.0 for each in features])
        kept = np.flatnonzero(np.isfinite(means))
        if self._network is None or not len(kept):
            return means, None
        inputs = [self._join(task, features[index]) for index in kept]
        if inputs[0].shape[1] != len(self._centre):
            raise TuningError(
                f"The predictor was trained on vectors of {len(self._centre)} numbers and this "
                f"space makes {inputs[0].shape[1]}. Train it on records of this feature set."
            )
        with self._torch.no_grad(), one_thread():
            scores = self._network([self._scaled(each) for each in inputs])
        means[kept] = scores.numpy()
        return means, None

    def save(self, path: str | Path) -> None:
        """Write what was trained as an `.npz` of arrays and a JSON header.

        Raises:
            TuningError: nothing was trained.
        """
        if self._network is None:
            raise TuningError("The predictor was not trained, so that there is nothing to save.")
        arrays = {f"weight.{key}": each.numpy() for key, each in self._network.state_dict().items()}
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
        """Return a predictor that was saved.

        Raises:
            TuningError: the file is none, or of another feature set than the space's.
        """
        arrays, header = load_arrays(path, _KIND)
        if header.get("feature_set") != space.feature_set:
            raise TuningError(
                f"`{path}` was trained on the features `{header.get('feature_set')}` and the space "
                f"makes `{space.feature_set}`. Train it on records of these."
            )
        torch = import_torch()
        try:
            made = cls(space, width=int(header["width"]))
            made._centre, made._scale = arrays.pop("centre"), arrays.pop("scale")
            with torch.device("meta"):  # the file says how large: nothing is allocated for that
                made._network = _make_network(torch, len(made._centre), made.width)
            made._network.load_state_dict(_weights(torch, arrays), assign=True)
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise TuningError(f"`{path}` is a broken predictor: {error}") from error
        made._network.eval()
        return made

    def _join(self, task: Task, features: np.ndarray | None) -> np.ndarray:
        """Return float32 [statements, f + 44]: each statement beside its task."""
        assert features is not None  # noqa: S101 - those without were left out
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
            """Programs are float32 [statements, size] each; the scores are [programs]."""
            counts = torch.tensor([len(each) for each in programs])
            owner = torch.repeat_interleave(torch.arange(len(programs)), counts)
            hidden = self.statement(torch.cat(programs))
            summed = hidden.new_zeros(len(programs), width).index_add(0, owner, hidden)
            index = owner[:, None].expand_as(hidden)
            largest = torch.zeros_like(summed).scatter_reduce(0, index, hidden, "amax")
            return self.program(torch.cat([summed, largest], dim=1))[:, 0]

    return Network()
