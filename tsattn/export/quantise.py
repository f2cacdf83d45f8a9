"""int8: weights of matrix products as bytes, with ranges of what they are multiplied with or without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from tsattn.export.onnx import quiet

PRODUCTS = ["MatMul", "Gemm"]


def quantised(
    proto: onnx.ModelProto, batches: Iterable[NDArray[np.float32]] | None = None
) -> onnx.ModelProto:
    """The graph with products with weights in int8, one scale an output; all else stays float32.

    batches: real values (cases, channels, timepoints) that tell, once for all, in what ranges the other
    factors lie; without them the graph finds the range anew in every call.
    """
    bare = onnx.ModelProto()
    bare.CopyFrom(proto)
    del bare.graph.value_info[:]  # shapes by name, which the tools' own inference contradicts
    options: dict[str, Any] = {"per_channel": True, "weight_type": QuantType.QInt8}
    options["op_types_to_quantize"] = PRODUCTS
    with tempfile.TemporaryDirectory() as folder, quiet("root"):
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(bare, source)
        if batches is None:
            quantize_dynamic(source, target, extra_options={"MatMulConstBOnly": True}, **options)
        else:
            quantize_static(
                source,
                target,
                _Batches(batches),
                quant_format=QuantFormat.QDQ,
                activation_type=QuantType.QUInt8,
                nodes_to_exclude=_without_weights(bare),
                **options,
            )
        result = onnx.load(target)
    result.ir_version = proto.ir_version
    return result


def _without_weights(proto: onnx.ModelProto) -> list[str]:
    """Products of two things computed: attention's own, whose ranges no calibration foresees."""
    weights = {one.name for one in proto.graph.initializer}
    return [
        node.name for node in proto.graph.node if node.op_type in PRODUCTS and node.input[1] not in weights
    ]


class _Batches(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, batches: Iterable[NDArray[np.float32]]) -> None:
        self._batches: Iterator[NDArray[np.float32]] = iter(batches)

    def get_next(self) -> dict[str, NDArray[np.float32]] | None:
        values = next(self._batches, None)
        return None if values is None else {"values": values}
