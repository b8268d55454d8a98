from collections.abc import Callable

__all__ = ["share"]

def share(work: Callable[[int, int], object], count: int, parts: int) -> None: ...
