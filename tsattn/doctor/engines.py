"""torch and onnxruntime: what each really computes with here."""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tsattn.doctor.findings import JOBS, Finding, Job
from tsattn.doctor.machine import in_words
from tsattn.doctor.packages import runtimes_there
from tsattn.doctor.trials import tried

CPU, CUDA, TENSORRT = "CPUExecutionProvider", "CUDAExecutionProvider", "TensorrtExecutionProvider"
ELSEWHERE = {"AzureExecutionProvider": "calls a service elsewhere; tsattn does not use it"}


def engines(jobs: Sequence[Job], device: str = "auto") -> Iterator[Finding]:
    """What the driver allows, then torch if it is needed for `jobs`, then every provider of onnxruntime.

    device: 'cuda' where a GPU that cannot be used counts as broken.
    """
    driver = driver_cuda()
    yield Finding(
        area="engines",
        name="NVIDIA driver",
        value="none" if driver is None else f"CUDA {driver[0]}.{driver[1]} and older",
        state="absent" if driver is None else "good",
    )
    with ThreadPoolExecutor(2) as pool:
        torch = pool.submit(tried, "torch") if {"train", "export"} & set(jobs) and _there("torch") else None
        runtime = list(_onnxruntime(driver, device))
        if torch is not None:
            yield from _torch(torch.result(), device)
        yield from runtime


def driver_cuda() -> tuple[int, int] | None:
    """The newest CUDA that this machine's NVIDIA driver can run; None where there is no driver or no GPU."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        version = ctypes.c_int()
        if driver.cuInit(0) != 0 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return version.value // 1000, version.value % 1000 // 10


def _torch(found: dict[str, Any], device: str) -> Iterator[Finding]:
    jobs: tuple[Job, ...] = ("train", "export")
    if "failed" in found:
        yield Finding(
            area="engines",
            name="torch",
            value=f"cannot be used: {found['failed']}",
            state="broken",
            advice="Install it again: `pip install --force-reinstall torch`",
            jobs=jobs,
        )
        return
    built = f"built for CUDA {found['cuda']}" if found["cuda"] else "built without CUDA"
    yield Finding(
        area="engines",
        name="torch",
        value=f"{found['version']}, {built}, {found['threads']} threads; "
        f"importing it took {found['import_seconds']} s",
    )
    for place in found["devices"]:
        size = f", {in_words(place['bytes'])}" if place["bytes"] else ""
        how = "computes" if place["right"] else f"does not compute: {place['said'] or 'wrong result'}"
        yield Finding(
            area="engines",
            name=f"torch on {place['device']}",
            value=f"{place['name']}{size}, {how}",
            state="good" if place["right"] else "broken" if place["device"] == "cpu" else "note",
            jobs=jobs,
        )
    if not any(place["device"].startswith("cuda") and place["right"] for place in found["devices"]):
        why = found["why_no_cuda"] or "built without CUDA"
        yield _no_cuda("torch on cuda", why, device, jobs, "A torch with CUDA comes by `pip install torch`.")


def _onnxruntime(driver: tuple[int, int] | None, device: str) -> Iterator[Finding]:
    if not _there("onnxruntime"):
        return  # said with the packages
    here = tried("onnxruntime")
    if "failed" in here:
        packages = " ".join(runtimes_there())
        yield Finding(
            area="engines",
            name="onnxruntime",
            value=f"cannot be imported: {here['failed']}",
            state="broken",
            advice=f"Install it again: `pip install --force-reinstall {packages or 'onnxruntime'}`",
            jobs=JOBS,
        )
        return
    built = f"built for CUDA {here['cuda']}" if here["cuda"] else "built without CUDA"
    yield Finding(area="engines", name="onnxruntime", value=f"{here['version']}, {built}")
    for provider in sorted(here["providers"], key=lambda name: name != CPU):
        if provider in ELSEWHERE:
            yield Finding(area="engines", name=provider, value=ELSEWHERE[provider], state="absent")
            continue
        yield _provider(provider, tried("onnxruntime", provider), driver, here["cuda"], device)
    if CUDA not in here["providers"]:
        yield _no_cuda(
            CUDA,
            "this onnxruntime is built without CUDA",
            device,
            ("predict",),
            "`pip uninstall -y onnxruntime`, then `pip install onnxruntime-gpu`",
        )


def _provider(
    provider: str, found: dict[str, Any], driver: tuple[int, int] | None, built_for: str, device: str
) -> Finding:
    if "failed" not in found and found["used"] == provider and found["right"]:
        return Finding(area="engines", name=provider, value=f"computes; the trial took {found['took']} s")
    why = found.get("failed") or _reason(provider, found, driver, built_for)
    if provider == CPU:
        return Finding(area="engines", name=provider, value=f"not usable: {why}", state="broken", jobs=JOBS)
    if provider == CUDA:
        advice = f"onnxruntime needs CUDA {built_for.split('.')[0]} and cuDNN 9: "
        advice += "`pip install 'onnxruntime-gpu[cuda,cudnn]'`"
        return _no_cuda(provider, why, device, ("predict",), advice if driver else "")
    return Finding(area="engines", name=provider, value=f"not usable: {why}", state="absent")


def _reason(provider: str, found: dict[str, Any], driver: tuple[int, int] | None, built_for: str) -> str:
    if found["used"] == provider:
        return "its result is wrong"
    if provider in (CUDA, TENSORRT) and driver is None:
        why = "no NVIDIA driver or no GPU on this machine"
    elif provider in (CUDA, TENSORRT) and built_for and driver and int(built_for.split(".")[0]) > driver[0]:
        why = f"the driver runs CUDA {driver[0]}.{driver[1]} and older, onnxruntime is built for {built_for}"
    else:
        why = found["said"] or "onnxruntime does not say why"
    return f"{why}; it computes with {found['used']} and says nothing"


def _no_cuda(name: str, why: str, device: str, jobs: tuple[Job, ...], advice: str) -> Finding:
    """CUDA that cannot be had: broken where it was asked for, worth a note where there is a GPU."""
    asked, gpu = device == "cuda", driver_cuda() is not None
    return Finding(
        area="engines",
        name=name,
        value=f"not usable: {why}",
        state="broken" if asked else "note" if gpu else "absent",
        advice=advice if asked or gpu else "",
        jobs=jobs,
    )


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
