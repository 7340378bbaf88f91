"""Ids in addresses: in upper case they are the same ones, as everywhere in JSON."""

from django.urls import register_converter
from django.urls.converters import UUIDConverter
from ninja import Router


class IdConverter(UUIDConverter):
    """Takes an id however it is written; what is made of it is left to its type."""

    regex = UUIDConverter.regex.replace("a-f", "a-fA-F")

    def to_python(self, value: str) -> str:  # type: ignore[override]
        return value


_NAME = "uuid_in_any_case"
register_converter(IdConverter, _NAME)


def take_ids_in_any_case(router: Router) -> None:
    """Have no address of a router care in which case an id is written."""
    router.path_operations = {
        path.replace("{uuidstr:", f"{{{_NAME}:"): view
        for path, view in router.path_operations.items()
    }
