"""The network: attention mechanisms, token stages, layers and the classifier they make."""
