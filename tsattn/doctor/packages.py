"""Which packages are there, in which versions, beside what tsattn asks for; and the two that may not meet."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from tsattn.doctor.findings import JOBS, Finding, Job

OF_PREDICT = (
    "filelock",
    "numpy",
    "onnxruntime",
    "packaging",
    "platformdirs",
    "pyarrow",
    "pyyaml",
    "rich",
    "typer",
)
"""What predicting with a model file needs; onnxruntime stands for any of its packages."""
RUNTIMES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "onnxruntime-directml",
    "onnxruntime-openvino",
    "onnxruntime-training",
)
"""Packages that bring the module onnxruntime, and overwrite one another's files."""


def packages() -> Iterator[Finding]:
    """What tsattn's metadata ask for, each beside what is installed; then extras, and the runtimes."""
    try:
        asked = importlib.metadata.requires("tsattn") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding(
            area="packages",
            name="tsattn",
            value="is not installed, so what it asks for is not known",
            state="note",
            advice="`pip install -e .` in the checkout",
        )
        asked = []
    required = [requirement for text in asked if (requirement := _read(text)) is not None]
    for requirement in sorted(required, key=lambda one: one.name):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _required(requirement)
    yield _extras(required)
    yield from _runtimes()


def runtimes_there() -> dict[str, str]:
    """Installed packages that bring onnxruntime, with their versions."""
    found = {name: _version(name) for name in RUNTIMES}
    return {name: version for name, version in found.items() if version is not None}


def _required(requirement: Requirement) -> Finding:
    name = requirement.name.lower()
    is_runtime = name in RUNTIMES
    of_predict = is_runtime or name in OF_PREDICT
    jobs: tuple[Job, ...] = (
        JOBS if of_predict else ("export",) if name == "onnxscript" else ("train", "export")
    )
    version = _version(name)
    if is_runtime and version is None and (others := runtimes_there()):
        name, version = next(iter(others.items()))  # another package brings the same module
    wanted = str(requirement.specifier)
    if version is None:
        return Finding(
            area="packages",
            name=name,
            value=f"missing, asked for is {wanted or 'any version'}",
            state="broken",
            advice=f"`pip install '{requirement.name}{wanted}'`",
            jobs=jobs,
        )
    fits = requirement.specifier.contains(version, prereleases=True)
    return Finding(
        area="packages",
        name=name,
        value=f"{version}, asked for is {wanted}" if wanted else version,
        state="good" if fits else "broken",
        advice="" if fits else f"`pip install '{requirement.name}{wanted}'`",
        jobs=jobs,
    )


def _extras(required: list[Requirement]) -> Finding:
    words = {}
    for requirement in required:
        for extra in ("tensorboard", "mlflow", "wandb", "ray"):
            marker = requirement.marker
            if (
                marker is not None
                and not marker.evaluate({"extra": ""})
                and marker.evaluate({"extra": extra})
            ):
                words[extra] = _version(requirement.name) or "not installed"
    shown = ", ".join(f"{name} {version}" for name, version in words.items())
    there = any(version != "not installed" for version in words.values())
    return Finding(area="packages", name="extras", value=shown, state="good" if there else "absent")


def _runtimes() -> Iterator[Finding]:
    there = runtimes_there()
    if len(there) > 1:
        listed = " ".join(there)
        keep = "onnxruntime-gpu" if "onnxruntime-gpu" in there else next(iter(there))
        yield Finding(
            area="packages",
            name="onnxruntime twice",
            value=", ".join(f"{name} {version}" for name, version in there.items()),
            state="broken",
            advice=f"They overwrite one another. `pip uninstall -y {listed}`, then `pip install {keep}`",
            jobs=JOBS,
        )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _read(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None
