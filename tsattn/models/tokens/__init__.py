"""Token stages: how a standardised series becomes the tokens that attention works on."""

from tsattn.models.tokens import competing, convolutions, linear
from tsattn.models.tokens.contract import TokenStage
from tsattn.models.tokens.registry import build_tokens, token_words, with_stride

__all__ = ["TokenStage", "build_tokens", "competing", "convolutions", "linear", "token_words", "with_stride"]
