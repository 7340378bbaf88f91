"""Names in addresses that end as another address does, such as the queue `mail/pause`.

A slash that was percent-encoded is one like any other by the time that an address is
looked up. So the address of that queue is also that by which `mail` is paused. Which of
them is meant, the method tells: no address of a name has one that any below it has.
"""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from ninja import Router
from ninja.operation import Operation, PathView

View = Callable[..., Any]


def reach_all_names(router: Router) -> None:
    """Have each address below a name answer what is asked of longer names as well."""
    for whole, name, ending, below in [*_below_names(router)]:
        for operation in whole.operations:
            below.operations.append(_of_longer(operation, name, ending))


def _below_names(router: Router) -> Iterator[tuple[PathView, str, str, PathView]]:
    views = router.path_operations
    for path, below in views.items():
        above, _, ending = path.rpartition("/")
        if above in views and above.startswith(_ANY):
            name = above.removeprefix(_ANY).removesuffix("}")
            yield views[above], name, ending, below


_ANY = "/{path:"


def _of_longer(operation: Operation, name: str, ending: str) -> Operation:
    longer = operation.clone()
    longer.view_func = _with_ending(operation.view_func, name, ending)
    # It is told once, at the address of the name.
    longer.include_in_schema = False
    return longer


def _with_ending(view: View, name: str, ending: str) -> View:
    @wraps(view)
    def answer(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **{**kwargs, name: f"{kwargs[name]}/{ending}"})

    answer.__name__ = f"{view.__name__}_ending_in_{ending}"
    return answer
