"""Run folder → one self-contained ONNX file that has proven itself."""
