# `make demo` and `make test` are all that a newcomer needs; both make their own environment.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
WORKERS ?= 2
# Wheels of torch for CPUs only: set PIP_EXTRA_INDEX_URL or PIP_FIND_LINKS as you would for pip.
INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

CATALOGS = $(VENV)-catalogs
# Filling caches for a GPU needs torch for CUDA, under the Python of the machine with the GPU.
GPU = $(VENV)-gpu
GPU_PYTHON ?= python3.12
CARD ?= h100
DEMO = demo
# Eight small graphs that cover most operators, chosen by `graphnet select` (docs/transforms.md).
DEMO_SAMPLES = @examples/demo.txt

# Containers often say that no bytecode is to be written. The tests start hundreds of processes, each
# of which would compile the library anew, and pytest would rewrite every test file in each worker.
unexport PYTHONDONTWRITEBYTECODE

.DELETE_ON_ERROR:
.PHONY: help demo test quick portable lint docs slow nightly packages soak clean starter subgraphs catalog ship records leaderboard notebook readme benchmarks gpu-tests gpu-folder gpu-records gpu-cache

help:
	@echo "make demo        run eager against inductor on a few graphs, print verdicts and scores, draw them"
	@echo "make test        run the tests"
	@echo "make quick       run the quick tests, for another Python: make quick PYTHON=python3.13 VENV=.venv-3.13"
	@echo "make portable    run the tests of loading, filtering, scoring and plotting, on any system"
	@echo "make lint        run ruff and pyright"
	@echo "make docs        build the documentation, in build/site"
	@echo "make slow        run the tests that take longer than five seconds each"
	@echo "make nightly     run the demo, slow tests, notebooks, README and make soak, and build the leaderboard"
	@echo "make packages    build the source distribution and the wheel, in dist"
	@echo "make soak        run 1,000 random failures, kill a run 50 times, fuzz kernels, definitions and 10,000 inputs"
	@echo "make gpu-tests   run the GPU tests on a CUDA device"
	@echo "make gpu-folder  pack what a bare machine with a GPU needs, in build/gpu_queue/folder"
	@echo "make gpu-records run the next rows of the GPU's queue here, in SECONDS=480"
	@echo "make gpu-cache   compile the rows of the GPU's queue for a CARD (h100, h200), without a GPU"
	@echo "make starter     capture the models of the project's own catalogs, into build/starter"
	@echo "make subgraphs   rebuild the tables of subgraphs beside the embedded dataset"
	@echo "make catalog     capture the full dataset out of all catalogs of models"
	@echo "make ship        put what was captured into the package, as its embedded dataset"
	@echo "make records     time the embedded dataset under every compiler of a CPU, on an idle machine"
	@echo "make leaderboard build the site of the embedded records, in build/leaderboard"
	@echo "make notebook    run the notebooks of examples/ again and store them with their outputs"
	@echo "make readme      run every command of README from the wheel, under each supported Python"
	@echo "make benchmarks  measure the figures of docs/performance.md"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: setup.cfg constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[torch,evaluate,report]'
	@touch $@

$(VENV)/.test: setup.cfg constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[torch,paddle,compilers,tc,tc-cuda,tuning,tuning-gp,tuning-gnn,evaluate,report,ray,builder,dev]'
	@touch $@

$(VENV)/.quick: setup.cfg constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable '.[dev]'
	@touch $@

# One tutorial compiles CUDA and runs Triton's interpreter; neither needs a GPU.
$(VENV)/.slow: $(VENV)/.test
	$(INSTALL) --editable '.[kernels]'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/graphnet run $(DEMO_SAMPLES) --compiler inductor --budget 5 --out $(DEMO)/runs
	$(BIN)/graphnet score $(DEMO)/runs
	$(BIN)/graphnet plot $(DEMO)/runs --out $(DEMO)/plots

# The tests of a file go to one worker, so that fewer of them start processes of the same kind.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not gpu and not network"

# What depends on the version of Python rather than on frameworks and compilers. It runs without
# torch, whose wheels for other versions are large: the few tests that need it are skipped then.
quick: $(VENV)/.quick
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not gpu and not network and not paddle" \
	    tests/isolation tests/sample tests/schema tests/storage tests/cli

# What works on macOS and on ARM, without torch; timing needs Linux.
portable: $(VENV)/.quick
	$(INSTALL) --editable '.[report,dev]'
	$(BIN)/python -m pytest -m "not slow and not gpu and not network and not paddle and not torch" \
	    tests/sample tests/schema tests/storage tests/scores tests/report tests/test_portability.py

slow: $(VENV)/.slow
	$(BIN)/python -m pytest -n $(WORKERS) -m "slow"

nightly:
	$(MAKE) demo slow notebook readme leaderboard soak

packages: $(VENV)/.test
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

# Counts bound the work, so that a busy machine makes the same calls as an idle one.
soak: $(VENV)/.test
	$(BIN)/python benchmarks/soak.py
	$(BIN)/python benchmarks/fuzz_operators.py --only checked --calls 20 --smallest 0.6 --quiet
	$(BIN)/python benchmarks/fuzz_operators.py --only checked --what programs --calls 20 --quiet
	$(BIN)/python benchmarks/fuzz_inputs.py
	$(BIN)/python benchmarks/fuzz_kernels.py --kernels 1800

# Needs a torch for CUDA; nvidia-ml-py reads clocks and throttling. Nothing else may use the GPU.
gpu-tests: $(VENV)/.test
	$(INSTALL) --editable '.[cuda]'
	$(BIN)/python -m pytest -m gpu
	$(BIN)/python benchmarks/device_draws.py

# CACHES is a folder that `python -m builder gpu-cache` filled for the card.
SECONDS ?= 480
QUEUE = build/gpu_queue

$(QUEUE)/rows.parquet: $(VENV)/.test
	$(BIN)/python -m builder gpu-queue --queue $(QUEUE)

gpu-folder: $(QUEUE)/rows.parquet
	$(BIN)/python -m builder gpu-folder $(QUEUE)/folder --queue $(QUEUE) $(if $(CACHES),--caches $(CACHES))

# Continues with the rows that lack a record of this card. On a machine without a checkout, run
# `records.py` of the folder, and add its file with `python -m builder gpu-merge`.
gpu-records: gpu-folder
	$(BIN)/python $(QUEUE)/folder/records.py --seconds $(SECONDS) --out $(QUEUE)/new
	$(BIN)/python -m builder gpu-merge $(QUEUE)/new --queue $(QUEUE)

$(GPU)/.ready: setup.cfg constraints-gpu.txt
	$(GPU_PYTHON) -m venv $(GPU)
	$(GPU)/bin/pip install --quiet --disable-pip-version-check --constraint constraints-gpu.txt \
	    --editable '.[torch]' triton
	@touch $@

# Continues where it was stopped; `make gpu-folder CACHES=build/gpu_cache/h100` packs the caches.
gpu-cache: $(QUEUE)/rows.parquet $(GPU)/.ready
	$(GPU)/bin/python -m builder gpu-cache --card $(CARD) --samples $<

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

# A warning is an error, such as a link to a page that does not exist.
docs: $(VENV)/.test
	rm -rf build/site
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs build/site

# An environment of its own: the model libraries bring packages that the tests must not see.
$(CATALOGS)/.ready: setup.cfg constraints.txt
	$(PYTHON) -m venv $(CATALOGS)
	$(CATALOGS)/bin/pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	    --editable '.[torch,paddle,builder,catalogs]'
	# These ask for versions of years ago, or for trackers of experiments; their models need neither.
	$(CATALOGS)/bin/pip install --quiet --disable-pip-version-check --no-deps \
	    asteroid==0.7.0 neuraloperator==2.0.0 paddleclas==2.6.0 paddledet==2.6.0 \
	    paddlenlp==2.8.1 paddlesci==1.4.0 paddleseg==2.8.0 paddlespeech==1.5.0 paddlets==1.1.0 \
	    ppgan==2.1.0 ppim==1.1.0 ppvideo==2.3.1
	@touch $@

starter: $(CATALOGS)/.ready
	$(CATALOGS)/bin/python -m builder starter --jobs $(WORKERS)

# Runs each graph once for the statistics of values between its parts; continues where it was stopped.
subgraphs: $(VENV)/.test
	$(BIN)/python -m builder subgraphs --jobs $(WORKERS) --picture build \
	    --docs docs/transforms.md

catalog: $(CATALOGS)/.ready
	$(CATALOGS)/bin/python -m builder catalog --jobs $(WORKERS)

# BESIDE names a table, as `graphnet import` writes it, whose figures docs/dataset.md lists too.
ship: $(CATALOGS)/.ready
	$(CATALOGS)/bin/python -m builder ship --docs docs/dataset.md --write-holds \
	    $(if $(BESIDE),--beside $(BESIDE) --picture build/sizes.svg)

# Continues where it was stopped; the whole dataset takes days.
records: $(VENV)/.test
	$(BIN)/python -m builder measure --out build/runs
	$(BIN)/python -m builder runs build/runs --docs docs/compilers.md
	$(MAKE) leaderboard

leaderboard: $(VENV)/.test
	$(BIN)/graphnet report graphnet --out build/leaderboard

# Fails if an output other than a measurement differs from the stored output, which it replaces.
notebook: $(VENV)/.test
	$(BIN)/python -m builder notebooks

# Runs README from the wheel under every supported Python that is installed.
readme: packages
	$(BIN)/python .ci/readme.py dist/*.whl

benchmarks: $(VENV)/.test
	@for script in $(filter-out benchmarks/soak.py benchmarks/fuzz_%.py,$(wildcard benchmarks/*.py)); do echo "# $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) $(CATALOGS) $(DEMO) build dist *.egg-info
