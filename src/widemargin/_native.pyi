from typing import Any

# Private, and checked at run time by the bindings: see native/bindings.
def __getattr__(name: str) -> Any: ...
