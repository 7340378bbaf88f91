"""Arguments and results survive the way through the database, or say why not."""

import base64
import enum
import json
import math
import subprocess
import sys
import threading
from collections import OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from importlib.resources import files
from types import ModuleType
from typing import Any, ClassVar
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest
from django.apps import apps
from django.db import OperationalError, connection, connections, models
from django.test.utils import CaptureQueriesContext, isolate_apps, override_settings
from django.utils import translation
from django.utils.datastructures import MultiValueDict
from django.utils.functional import SimpleLazyObject, lazy
from django.utils.safestring import mark_safe
from django.utils.text import format_lazy
from django.utils.translation import (
    gettext_lazy,
    ngettext_lazy,
    npgettext_lazy,
    pgettext_lazy,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robust_queue import exceptions
from robust_queue.arguments import (
    DeserializationError,
    SerializationError,
    dump_call,
    dump_result,
    load_call,
    load_result,
    plain,
    plain_call,
    plain_result,
    storable,
)
from tests.testapp.models import Customer, Order

try:
    from django.utils.json import normalize_json
except ImportError:  # Django 5.2
    from django_tasks.utils import normalize_json


@pytest.fixture(autouse=True, scope="module")
def _zones_are_not_used():
    """So that naive datetimes are values like others; they are refused otherwise."""
    with override_settings(USE_TZ=False):
        yield


MADRID = ZoneInfo("Europe/Madrid")
PAIR = "\ud83d\ude00"  # two code units, not the one character they stand for
HUGE = 7**9000


class Colour(enum.Enum):
    RED = 1
    CRIMSON = 1  # noqa: PIE796 - an alias on purpose
    SUNSET = ("#fd5e53", Decimal("0.5"))
    NAMELESS = object()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mood(enum.StrEnum):
    CALM = "calm"


class Size(models.TextChoices):
    SMALL = "s", gettext_lazy("small")


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()


class Bits(enum.IntFlag):
    ONE = 1
    HUGE = 1 << 20_000


class Shelf:
    class Side(enum.Enum):
        LEFT = "left"


@storable
@dataclass(frozen=True, slots=True)
class Money:
    amount: Decimal
    currency: str = "EUR"


@storable
@dataclass
class Basket:
    kinds: ClassVar[int] = 2
    lines: list[Any]
    seed: InitVar[int] = 0
    total: int = field(init=False)

    def __post_init__(self, seed: int) -> None:
        self.total = len(self.lines) + seed


@storable
@dataclass
class Link:
    following: Any


@dataclass
class Unlisted:
    amount: int


Point = namedtuple("Point", "x y")


def type_name(value):
    return type(value).__name__


def through(value):
    return load_result(dump_result(value))


def nested(value, levels, wrap=lambda inner: [inner]):
    for _ in range(levels):
        value = wrap(value)
    return value


def exact(value):
    """Equal only for values of the same type, sign, fold, zone and order."""
    match value:
        case list() | tuple():
            details = tuple(exact(item) for item in value)
        case dict():
            details = tuple((exact(key), exact(item)) for key, item in value.items())
        case set() | frozenset():
            details = frozenset(exact(item) for item in value)
        case datetime() | time():
            zone = getattr(value.tzinfo, "key", repr(value.tzinfo))
            details = value.isoformat(), value.fold, zone
        case Decimal() | float():
            details = repr(value)
        case Money() | Basket() | Link():
            details = tuple(exact(getattr(value, name)) for name in fields_of(value))
        case _:
            details = value
    return type(value), details


def fields_of(value):
    return type(value).__dataclass_fields__.keys() - {"kinds", "seed"}


LOSSLESS = [
    None,
    True,
    0,
    -1,
    2**2048 - 1,
    2**2048,
    HUGE,
    -HUGE,
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    "",
    "naïve 漢字 😀",
    'NUL \x00, lone \ud800 and \udfff, quote " and \\',
    PAIR,
    f"{PAIR}😀{PAIR}{PAIR}",
    b"",
    b"\x00\xff",
    [],
    [1, ["two", [3.0]]],
    (),
    (1, (2,), [3]),
    set(),
    {1, "1", (2, frozenset({3}))},
    frozenset({None}),
    {},
    {"a": {"b": [1]}, "naïve\x00\ud800": 2},
    {1: "int", "1": "text", None: 0, True and 2.5: 1, (1, 2): 3, date.min: 4},
    {PAIR: PAIR, "😀": 1},
    {"$type": "uuid", "value": "not one"},
    {"$type": {"$type": "$type"}, 1: 2},
    [{"$type": "dict", "items": [[1, 2]]}],
    {"args": [1], "kwargs": {}},
    datetime(2026, 3, 4, 5, 6, 7, 8),  # noqa: DTZ001
    datetime(2026, 3, 4, fold=1),  # noqa: DTZ001
    datetime(2026, 3, 4, tzinfo=UTC),
    datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=-3, microseconds=7))),
    datetime(2026, 3, 4, tzinfo=timezone(timedelta(hours=1), "CET")),
    datetime(2026, 3, 4, tzinfo=timezone(timedelta(microseconds=-1))),
    time(1, tzinfo=timezone(timedelta(microseconds=1), "ÀÉ")),
    datetime(2026, 10, 25, 2, 30, tzinfo=MADRID),
    datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=MADRID),
    datetime(1800, 1, 1, tzinfo=MADRID),
    datetime.min,  # noqa: DTZ901
    datetime.max,  # noqa: DTZ901
    date(2026, 3, 4),
    time(1, 2, 3, 4),
    time(1, fold=1),
    time(1, tzinfo=UTC),
    time(1, tzinfo=timezone(timedelta(hours=1), "CET")),
    time(1, tzinfo=MADRID),
    time(1, tzinfo=ZoneInfo("Etc/GMT+3")),
    timedelta(0),
    timedelta(days=-1, microseconds=1),
    timedelta.min,
    timedelta.max,
    UUID(int=0),
    uuid4(),
    Decimal("0"),
    Decimal("-0.00"),
    Decimal("1.10"),
    Decimal("1E-999999"),
    Decimal(HUGE % 10**600),
    Colour.RED,
    Colour.CRIMSON,
    Colour.SUNSET,
    Colour.NAMELESS,
    Level.HIGH,
    Mood.CALM,
    Size.SMALL,
    Access.READ,
    Access.READ | Access.WRITE,
    Access(0),
    Bits.ONE | Bits.HUGE,
    Bits(64),
    Shelf.Side.LEFT,
    {Mood.CALM: Level.LOW},
    Money(Decimal("9.90")),
    {Money(Decimal(1)): [Money(Decimal(2), "USD")]},
    Basket([Money(Decimal(3))], seed=5),
    Link(Link((1, {2}))),
]


class TestValuesComeBackAsTheyWere:
    @pytest.mark.parametrize("value", LOSSLESS, ids=type_name)
    def test_every_supported_value(self, value):
        assert exact(through(value)) == exact(value)

    @pytest.mark.parametrize("value", LOSSLESS, ids=type_name)
    def test_as_positional_and_named_arguments(self, value):
        args, kwargs = load_call(dump_call((1, value), {"named": value}))
        assert exact(args) == exact([1, value])
        assert exact(kwargs) == exact({"named": value})

    def test_enum_members_are_the_very_members(self):
        assert through(Colour.CRIMSON) is Colour.RED
        assert through(Colour.NAMELESS) is Colour.NAMELESS
        assert through(Access.READ | Access.WRITE) is Access.READ | Access.WRITE

    def test_the_zone_wins_over_the_offset_it_had(self):
        moment = through(datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=MADRID))
        assert moment.tzinfo is MADRID
        assert moment.utcoffset() == timedelta(hours=1)

    def test_a_dataclass_is_rebuilt_without_running_its_initialiser(self):
        assert through(Basket([], seed=5)).total == 5

    def test_a_call_without_arguments(self):
        assert load_call(dump_call((), {})) == ([], {})

    def test_names_of_arguments_may_be_any_text(self):
        kwargs = {"$type": "uuid", "naïve": 1, "": 2, PAIR: 3}
        assert load_call(dump_call([], kwargs)) == ([], kwargs)

    def test_a_hundred_levels_of_anything(self):
        wraps = [
            lambda inner: [inner],
            lambda inner: (inner,),
            lambda inner: {"a": inner},
            lambda inner: {1: inner},
            Link,
        ]
        for wrap in wraps:
            deep = nested(1, 100, wrap)
            assert through(deep) == deep
            assert load_call(dump_call([deep], {"a": deep})) == ([deep], {"a": deep})
            assert plain(deep) == plain_result(dump_result(deep))

    def test_large_integers_where_python_reads_the_fewest_digits(self):
        limit = sys.get_int_max_str_digits()
        texts = {bits: dump_result(1 << bits) for bits in (1, 2047, 2048, 2200, 99_999)}
        sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
        try:
            for bits, text in texts.items():
                assert load_result(text) == 1 << bits
                assert dump_result(1 << bits) == text
        finally:
            sys.set_int_max_str_digits(limit)


class TestTheText:
    def test_is_compact_json(self):
        text = dump_call(("World", 4), {"a": None})
        assert text == '{"args":["World",4],"kwargs":{"a":null}}'

    @pytest.mark.parametrize("value", LOSSLESS, ids=type_name)
    def test_is_ascii_without_nul(self, value):
        text = dump_result(value)
        assert text.isascii()
        assert "\x00" not in text
        json.loads(text)

    def test_is_the_same_for_equal_sets_whatever_their_history(self):
        grown = {str(n) for n in range(1000)}
        for n in range(500, 1000):
            grown.remove(str(n))
        assert dump_result(grown) == dump_result({str(n) for n in reversed(range(500))})

    def test_keeps_the_order_of_dictionaries(self):
        assert [*through({"b": 1, "a": 2, 3: 4})] == ["b", "a", 3]
        assert [*through({"b": 1, "a": 2})] == ["b", "a"]

    def test_has_plain_dictionaries_as_they_are(self):
        assert dump_result({"naïve": 1}) == '{"na\\u00efve":1}'
        assert json.loads(dump_result({mark_safe("a"): 1})) == {"a": 1}


class TestSubclassesOfPlainTypes:
    def test_arrive_as_their_base(self):
        class Metres(float):
            def __repr__(self):
                return "many"

        class Count(int):
            def __repr__(self):
                return "few"

        ordered = OrderedDict(a=1, b=2)
        ordered.move_to_end("a")
        for value, base in [
            (mark_safe("<b>"), "<b>"),
            (Metres(1.5), 1.5),
            (Count(3), 3),
            (UserStr("x"), "x"),
            (type("Rows", (list,), {})([1]), [1]),
            (ordered, {"b": 2, "a": 1}),
            (defaultdict(list, {1: [2]}), {1: [2]}),
        ]:
            assert exact(through(value)) == exact(base)
            assert exact(plain(value)) == exact(plain(base))

    def test_a_querydict_arrives_as_its_items(self):
        sent = MultiValueDict({"a": ["1", "2"]})
        assert through(sent) == {"a": "2"} == plain(sent)


class UserStr(str):
    __slots__ = ()

    def __str__(self):
        return "something else"


class Zone(tzinfo):
    def utcoffset(self, moment):
        return timedelta(0)


@dataclass
class Unset:
    amount: int = field(init=False)


storable(Unset)


def itself():
    value: list[Any] = []
    value.append({"again": value})
    return value


class TestWhatCannotBeStored:
    @pytest.mark.parametrize(
        "value",
        [
            object(),
            object,
            len,
            lambda: None,
            3j,
            range(3),
            (n for n in ()),
            iter([]),
            map(str, []),
            bytearray(b"a"),
            memoryview(b"a"),
            deque([1]),
            UserDict(),
            UserList(),
            Point(1, 2),
            type("Tags", (set,), {})(),
            type("Raw", (bytes,), {})(),
            Unlisted(1),
            threading.Lock(),
            Exception("boom"),
            Order.objects.all(),
            Customer,
            SimpleLazyObject(object),
        ],
        ids=type_name,
    )
    def test_types_nobody_can_restore(self, value):
        with pytest.raises(SerializationError) as caught:
            dump_call([value], {})
        kind = object if isinstance(value, SimpleLazyObject) else type(value)
        assert str(caught.value).startswith(f"args[0]: Unsupported type: {kind}. ")
        assert isinstance(caught.value, TypeError)

    @pytest.mark.parametrize(
        ("value", "cure"),
        [
            (Unlisted(1), "Opt the dataclass in with @robust_queue.arguments.storable"),
            (Point(1, 2), "Pass a plain tuple"),
            (range(3), "Pass a list of its items"),
            (bytearray(), "Pass bytes"),
            (UserDict(), "Pass a plain dict"),
            (math.nan, "Pass None or text"),
            (object(), "what the task needs to find or build it"),
        ],
        ids=type_name,
    )
    def test_the_error_tells_the_cure(self, value, cure):
        with pytest.raises(SerializationError, match=cure):
            dump_result(value)

    @pytest.mark.parametrize(
        "value",
        [
            math.nan,
            math.inf,
            -math.inf,
            Decimal("NaN"),
            Decimal("sNaN"),
            Decimal("-Infinity"),
        ],
        ids=repr,
    )
    def test_what_is_not_a_finite_number(self, value):
        with pytest.raises(SerializationError, match=r"^kwargs\['x'\]: .*stored"):
            dump_call([], {"x": value})

    @pytest.mark.parametrize(
        ("value", "path"),
        [
            (math.nan, "return value: "),
            ({"x": [math.nan]}, "return value['x'][0]: "),
            ((1, {2: {"a b": math.nan}}), "return value[1][2]['a b']: "),
            ({"x": Money(math.nan)}, "return value['x'].amount: "),
            (Link([Link(math.nan)]), "return value.following[0].following: "),
            ({(1, math.nan): 1}, "return value key (1, nan)[1]: "),
            ([{(1, math.nan)}], "return value[0] item (1, nan)[1]: "),
            ([Unset()], "return value[0].amount: this field has no value"),
            ({HUGE: math.nan}, "return value[<int>]: "),
            ({"x" * 200: math.nan}, f"return value['{'x' * 99}…]: "),
        ],
        ids=type_name,
    )
    def test_the_message_starts_with_the_way_to_the_culprit(self, value, path):
        with pytest.raises(SerializationError) as caught:
            dump_result(value)
        assert str(caught.value).startswith(path)

    def test_the_way_begins_at_the_argument(self):
        with pytest.raises(SerializationError, match=r"^args\[1\]\[0\]: "):
            dump_call([1, [math.nan]], {})
        with pytest.raises(SerializationError, match=r"^kwargs\['o'\]\[3\]\.amount: "):
            dump_call([], {"o": [1, 2, 3, Money(math.nan)]})

    @pytest.mark.parametrize(
        "value", [nested(1, 101), itself()], ids=["deep", "itself"]
    )
    def test_nesting_beyond_a_hundred_levels(self, value):
        with pytest.raises(SerializationError, match=r"^args\[0\]\[0\].*….*100 levels"):
            dump_call([value], {})

    @pytest.mark.parametrize(
        "wrap",
        [lambda i: (i,), lambda i: {i}, lambda i: {1: i}, Link, lambda i: {i: 1}],
    )
    def test_nesting_counts_every_container(self, wrap):
        freeze = (lambda i: frozenset([i])) if wrap(1) in ({1}, {1: 1}) else wrap
        with pytest.raises(SerializationError, match="100 levels"):
            dump_result(wrap(nested(1, 100, freeze)))

    def test_enums_that_cannot_be_found_again(self):
        local = enum.Enum("local", "A")
        with pytest.raises(
            SerializationError, match="Unsupported type: <enum 'local'>"
        ):
            dump_result(local.A)

    @pytest.mark.parametrize(
        "moment", [datetime(2026, 1, 1, tzinfo=Zone()), time(1, tzinfo=Zone())]
    )
    def test_time_zones_without_a_name(self, moment):
        with pytest.raises(
            SerializationError, match=r"^return value: .*<class '.*Zone'>"
        ):
            dump_result(moment)

    def test_a_zone_read_from_a_file_of_no_name(self):
        with open(self.zone_file(), "rb") as file:  # noqa: PTH123
            nameless = ZoneInfo.from_file(file)
        with pytest.raises(SerializationError, match="time zone cannot be stored"):
            dump_result(datetime(2026, 1, 1, tzinfo=nameless))

    def zone_file(self):
        return files("tzdata") / "zoneinfo" / "Europe" / "Madrid"

    def test_names_of_arguments_that_are_not_text(self):
        with pytest.raises(SerializationError, match=r"^kwargs: names .* not 1"):
            dump_call([], {1: 2})

    def test_a_repr_that_fails_does_not_hide_the_error(self):
        class Mute:
            def __repr__(self):
                raise RuntimeError

        with pytest.raises(SerializationError, match=r"^return value key <Mute>: "):
            dump_result({Mute(): 1})

    def test_the_errors_are_those_of_the_package(self):
        assert SerializationError is exceptions.SerializationError
        assert DeserializationError is exceptions.DeserializationError


class TestOptingADataclassIn:
    @pytest.mark.parametrize(
        "thing", [object, Money(Decimal(1)), lambda: None, "Money"]
    )
    def test_takes_only_dataclasses(self, thing):
        with pytest.raises(TypeError, match="is not a dataclass"):
            storable(thing)

    def test_does_not_take_a_subclass_that_is_none_itself(self):
        class Wider(Link):
            pass

        with pytest.raises(TypeError, match="is not a dataclass"):
            storable(Wider)
        with pytest.raises(SerializationError, match="Wider"):
            dump_result(Wider(1))

    def test_does_not_take_what_holds_more_than_fields(self):
        with pytest.raises(TypeError):
            storable(make_dataclass("Items", ["a"], bases=(list,)))

    def test_gives_the_class_back(self):
        assert storable(Link) is Link

    def test_the_last_class_of_a_name_counts(self):
        old, new = make_dataclass("Same", ["a"]), make_dataclass("Same", ["a"])
        text = dump_result(storable(old)(1))
        storable(new)
        assert type(load_result(text)) is new
        with pytest.raises(SerializationError, match="Opt the dataclass in"):
            dump_result(old(1))

    def test_changed_fields_are_told(self):
        text = dump_result(storable(make_dataclass("Grown", ["a", "b"]))(1, 2))
        storable(make_dataclass("Grown", ["a", "c"]))
        with pytest.raises(DeserializationError, match=r"changed since: \['b', 'c'\]"):
            load_result(text)


class TestLazyText:
    def test_is_translated_where_the_task_runs(self):
        texts = [
            gettext_lazy("Monday"),
            gettext_lazy(message="Monday"),
            pgettext_lazy("abbrev. month", "Jan."),
            ngettext_lazy("%(num)d day", "%(num)d days", 1),
        ]
        with translation.override("de"):
            text = dump_result(texts)
        with translation.override("es"):
            assert [str(lazy) for lazy in load_result(text)] == [*map(str, texts)]
            assert plain_result(text) == plain(texts)
            assert plain(texts)[:3] == ["lunes", "lunes", "Ene."]
        with translation.override("en"):
            assert plain_result(text)[0] == "Monday"

    @pytest.mark.parametrize("number", ["num", 2])
    def test_keeps_where_its_number_comes_from(self, number):
        days = ngettext_lazy("%(num)d day", "%(num)d days", number)
        with translation.override("es"):
            assert through(days) % {"num": 1} == days % {"num": 1}
            assert through(days) % {"num": 2} == "2 días"

    def test_whose_number_is_the_only_value(self):
        days = through(ngettext_lazy("%d day", "%d days"))
        assert [days % 1, days % 2] == ["1 day", "2 days"]

    def test_keeps_its_context_with_its_number(self):
        days = through(npgettext_lazy("naïve", "%(n)d day", "%(n)d days", "n"))
        assert [days % {"n": 1}, days % {"n": 2}] == ["1 day", "2 days"]

    def test_keeps_odd_characters(self):
        assert str(through(gettext_lazy(f"a\x00{PAIR}"))) == f"a\x00{PAIR}"

    def test_of_other_functions_is_evaluated_at_once(self):
        with translation.override("es"):
            text = dump_result(
                [
                    format_lazy("{} {}", gettext_lazy("Monday"), 1),
                    gettext_lazy(gettext_lazy("Monday")),
                    lazy(lambda: mark_safe("x"), str)(),
                    lazy(lambda: [1], list)(),
                    lazy(lambda: gettext_lazy("Monday"), str)(),
                ]
            )
        assert [*map(exact, load_result(text)[:4])] == [
            *map(exact, ["lunes 1", "lunes", "x", [1]])
        ]
        assert str(load_result(text)[4]) == "Monday"

    def test_as_a_key_is_a_key(self):
        assert through({format_lazy("{}", "a"): 1}) == {"a": 1}

    def test_that_cannot_be_evaluated_says_so_itself(self):
        def broken():
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            dump_result(lazy(broken, str)())


class TestThePlainView:
    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            ((1, [2, range(2)]), [1, [2, [0, 1]]]),
            (b"caf\xc3\xa9", "café"),
            (b"\xff", base64.b64encode(b"\xff").decode()),
            (datetime(2026, 7, 4, 5, 6, tzinfo=MADRID), "2026-07-04T05:06:00+02:00"),
            (datetime(1, 2, 3, 4, 5, 6, 7), "0001-02-03T04:05:06.000007"),  # noqa: DTZ001
            (date(2026, 3, 4), "2026-03-04"),
            (time(1, tzinfo=UTC), "01:00:00+00:00"),
            (timedelta(days=-1, microseconds=5), "-P0DT23H59M59.999995S"),
            (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (Decimal("1.10"), "1.10"),
            ({3, 1, 2}, [1, 2, 3]),
            (frozenset({"a"}), ["a"]),
            (Colour.SUNSET, ["#fd5e53", "0.5"]),
            (Colour.NAMELESS, "NAMELESS"),
            (Level.HIGH, 2),
            (Size.SMALL, "s"),
            (Access.READ | Access.WRITE, 3),
            (Money(Decimal("9.90")), {"amount": "9.90", "currency": "EUR"}),
            ({1: "a", None: "b", Mood.CALM: 3}, {"1": "a", "None": "b", "calm": 3}),
            (
                {(1, "x"): 1, b"y": 2, date.min: 3},
                {"[1, 'x']": 1, "y": 2, "0001-01-01": 3},
            ),
            ({"$type": "uuid"}, {"$type": "uuid"}),
            (PAIR, PAIR),
            (HUGE, HUGE),
            ({HUGE: 1}, {f'{{"$type":"int","hex":"{HUGE:x}"}}': 1}),
            (gettext_lazy("Monday"), "Monday"),
            (SimpleLazyObject(lambda: "text"), "text"),
            (UserDict(a=UserList([1])), {"a": [1]}),
            (Point(1, 2), [1, 2]),
        ],
        ids=type_name,
    )
    def test_shows_each_type(self, value, shown):
        assert plain(value) == shown
        assert normalize_json(plain(value)) == shown

    @pytest.mark.parametrize("value", LOSSLESS, ids=type_name)
    def test_is_the_same_for_a_live_value_and_for_its_text(self, value):
        text = dump_call([value], {"named": value})
        assert plain_call(text) == ([plain(value)], {"named": plain(value)})
        assert plain_result(dump_result(value)) == plain(value)

    def test_needs_no_class_and_no_zone(self):
        text = dump_result([Shelf.Side.LEFT, Money(Decimal(1)), time(1, tzinfo=MADRID)])
        gone = text.replace("Shelf", "Gone").replace("Money", "Gone")
        gone = gone.replace("Europe/Madrid", "Mars/Olympus")
        shown = ["left", {"amount": "1", "currency": "EUR"}, "01:00:00"]
        assert plain_result(gone) == shown

    def test_shows_tags_of_another_version_as_they_are(self):
        assert plain_result('{"$type":"vector","items":[1]}') == {
            "$type": "vector",
            "items": [1],
        }

    @pytest.mark.parametrize("value", [object(), {1: {object()}}, [Unlisted(1)]])
    def test_of_what_cannot_be_stored_is_refused(self, value):
        with pytest.raises(TypeError, match="Unsupported type: <class "):
            plain(value)


def tagged(kind, **details):
    return json.dumps({"$type": kind, **details})


def stored_model(label, pk=1, database="default"):
    return tagged("model", model=label, pk=pk, database=database)


class TestTextThatCannotBeRead:
    @pytest.mark.parametrize(
        ("text", "missing"),
        [
            ("", "not JSON"),
            ("{", "not JSON"),
            ("NaN", "not JSON: NaN"),
            ("9" * 5000, "not JSON"),
            ("[" * 100_000, "nested too deeply"),
            ('["$type",' + "[" * 3000 + "]" * 3001, "nested too deeply"),
            (tagged("vector"), "the tag 'vector' is not known"),
            (tagged(["list"]), r"the tag \['list'\] is not known"),
            (tagged(None), "the tag None is not known"),
            (tagged("uuid"), "stored uuid is malformed"),
            (tagged("uuid", value=7), "stored uuid is malformed"),
            (tagged("int", hex="xyz"), "stored int is malformed"),
            (tagged("str", parts=[1]), "stored str is malformed"),
            (tagged("bytes", value="é"), "stored bytes is malformed"),
            (tagged("bytes", value="a"), "stored bytes is malformed"),
            (tagged("decimal", value="ten"), "stored decimal is malformed"),
            (tagged("decimal", value="NaN"), "NaN is not a number"),
            (tagged("tuple", items="abc"), "its items are not a list"),
            (tagged("set", items=[[]]), "stored set is malformed: "),
            (tagged("dict", items=[[{}, 1]]), "stored dict is malformed"),
            (tagged("dict", items=[[1]]), "stored dict is malformed"),
            (tagged("date", value="2026-13-01"), "stored date is malformed"),
            (tagged("datetime", value="2026-01-01", fold=2), "stored datetime is"),
            (tagged("datetime", value="2026-01-01", zone="../x"), "not the name of"),
            (
                tagged("time", value="01:00", zone="Mars/X"),
                "zone 'Mars/X' is not known",
            ),
            (
                tagged("time", value="01:00", zone="Europe"),
                "zone 'Europe' is not known",
            ),
            (tagged("time", value="01:00+01:00", name=5), "stored time is malformed"),
            (tagged("timedelta", days=10**12, seconds=0, microseconds=0), "malformed"),
            (tagged("dataclass"), "stored dataclass is malformed"),
            (tagged("dataclass", **{"class": []}), "stored dataclass is malformed"),
            (tagged("dataclass", **{"class": "os.system"}), "os.system is not opted"),
            (tagged("lazy", function="activate", arguments={}), "lazy is malformed"),
            (tagged("lazy", function="gettext", arguments={}), "gettext.. does not"),
            (tagged("lazy", function="gettext", arguments={"message": 5}), "malformed"),
            (stored_model("shop.gone"), "no model 'shop.gone'"),
            (stored_model("gone"), "no model 'gone'"),
            (stored_model(5), "stored model is malformed"),
            (stored_model("testapp.order", database="moon"), "no database 'moon'"),
        ],
        ids=lambda text: text[:40],
    )
    def test_tells_what_is_missing(self, text, missing):
        with pytest.raises(DeserializationError, match=missing):
            load_result(text)

    @pytest.mark.parametrize(
        ("enum_name", "member", "missing"),
        [
            ("Colour", "GREEN", "Colour has no 'GREEN'"),
            ("Gone", "RED", "Gone is not here. If it still exists, import it"),
            ("Shelf", "LEFT", "Shelf is not here"),
            ("Shelf.Side.LEFT", "LEFT", "LEFT is not here"),
            ("LOSSLESS", "RED", "LOSSLESS is not here"),
            ("Access", "BOTH", "Access has no 'BOTH'"),
        ],
    )
    def test_tells_which_enum_is_missing(self, enum_name, member, missing):
        details = {"module": __name__, "class": enum_name, "name": member, "value": 99}
        with pytest.raises(DeserializationError, match=missing):
            load_result(tagged("enum", **details))

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            "1",
            "{}",
            '{"args":[]}',
            '{"args":{},"kwargs":{}}',
            '{"args":[],"kwargs":[]}',
            '{"args":[],"kwargs":{},"more":1}',
        ],
    )
    @pytest.mark.parametrize("read", [load_call, plain_call])
    def test_that_is_no_call(self, read, text):
        with pytest.raises(DeserializationError, match="call"):
            read(text)

    def test_that_has_names_which_are_not_text(self):
        with pytest.raises(DeserializationError, match="names of kwargs"):
            load_call('{"args":[],"kwargs":{"$type":"dict","items":[[1,2]]}}')

    def test_tells_where(self):
        text = dump_call([{"a": [Money(Decimal(1))]}], {"b": {1: (2, Level.LOW)}})
        with pytest.raises(
            DeserializationError, match=r"^args\[0\]\['a'\]\[0\]\.amount: "
        ):
            load_call(text.replace('"1"', '"one"'))
        with pytest.raises(
            DeserializationError, match=r"^kwargs\['b'\]\[1\]\[1\]: the enum"
        ):
            load_call(text.replace("Level", "Gone"))
        with pytest.raises(DeserializationError, match=r"^return value: the tag"):
            load_result('{"$type":"?"}')

    def test_chains_the_cause(self):
        with pytest.raises(DeserializationError) as caught:
            load_result(tagged("decimal", value="ten"))
        assert isinstance(caught.value.__cause__, ArithmeticError)


class TestStoredTextRunsNothing:
    def test_modules_are_not_imported(self):
        assert "antigravity" not in sys.modules
        details = {"class": "X", "name": "X", "value": 1}
        with pytest.raises(DeserializationError, match="is not here"):
            load_result(tagged("enum", module="antigravity", **details))
        assert "antigravity" not in sys.modules

    def test_lazy_modules_and_objects_stay_asleep(self, monkeypatch):
        woken = []
        module = ModuleType("sleeper")
        module.__getattr__ = woken.append
        module.lazy = SimpleLazyObject(lambda: woken.append("lazy"))
        monkeypatch.setitem(sys.modules, "sleeper", module)
        for name in ("X", "lazy", "lazy.X", "X.Y", ""):
            with pytest.raises(DeserializationError, match="is not here"):
                load_result(
                    tagged(
                        "enum", module="sleeper", **{"class": name}, name="X", value=1
                    )
                )
        assert woken == []

    def test_only_enums_are_looked_up_by_name(self):
        for module, name in [
            ("os", "system"),
            ("builtins", "dict"),
            ("enum", "EnumType"),
        ]:
            with pytest.raises(DeserializationError, match="is not here"):
                load_result(
                    tagged("enum", module=module, **{"class": name}, name="x", value=1)
                )


def test_the_module_can_be_imported_before_there_are_settings():
    script = (
        "import sys; import robust_queue.arguments as arguments; "
        "assert 'django.db.models' not in sys.modules; "
        "print(arguments.dump_call(('World', 4), {}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout == '{"args":["World",4],"kwargs":{}}\n'


@pytest.fixture
def customer():
    return Customer.objects.create(name="Ada")


@pytest.fixture
def order(customer):
    return Order.objects.create(customer=customer, total=Decimal("9.90"))


@pytest.mark.django_db
class TestModels:
    def test_are_read_afresh_when_the_task_runs(self, customer):
        text = dump_call([customer], {"others": [customer]})
        Customer.objects.update(name="Grace")
        (found,), kwargs = load_call(text)
        assert found == customer
        assert [found.name, kwargs["others"][0].name] == ["Grace", "Grace"]

    def test_are_stored_by_label_key_and_database(self, order):
        assert json.loads(dump_result(order)) == {
            "$type": "model",
            "model": "testapp.order",
            "pk": {"$type": "uuid", "value": str(order.pk)},
            "database": "default",
        }

    def test_take_one_query_each(self, order):
        text = dump_result([order, order.customer])
        with CaptureQueriesContext(connection) as queries:
            assert load_result(text) == [order, order.customer]
        assert len(queries) == 2

    def test_are_shown_without_a_query(self, order):
        shown = {"model": "testapp.order", "pk": str(order.pk), "database": "default"}
        text = dump_result(order)
        with CaptureQueriesContext(connection) as queries:
            assert plain(order) == shown == plain_result(text)
            assert (
                plain_result(text.replace("testapp", "gone"))["model"] == "gone.order"
            )
        assert len(queries) == 0

    def test_may_be_deferred_or_lazy(self, customer):
        deferred = Customer.objects.defer("name").get()
        behind = SimpleLazyObject(lambda: customer)
        assert load_result(dump_result([deferred, behind])) == [customer, customer]
        assert plain(behind) == plain(customer)

    def test_may_be_keys(self, customer):
        assert through({customer: {customer}}) == {customer: {customer}}

    def test_that_vanished_are_named(self, order):
        text = dump_call([], {"orders": [order]})
        Order.objects.all().delete()
        with pytest.raises(DeserializationError) as caught:
            load_call(text)
        assert str(caught.value) == (
            f"kwargs['orders'][0]: there is no testapp.Order with pk {order.pk!r} "
            "in database 'default' any more."
        )
        assert isinstance(caught.value.__cause__, Order.DoesNotExist)
        assert plain_call(text)[1]["orders"][0]["pk"] == str(order.pk)

    def test_that_are_not_saved_are_refused(self, customer):
        unsaved = Order(customer=customer, total=1)
        assert unsaved.pk is not None
        customer.delete()
        for value in (unsaved, customer, Customer(pk=7, name="x")):
            with pytest.raises(
                SerializationError, match=r"^args\[0\]: .* is not saved"
            ):
                dump_call([value], {})

    @pytest.mark.parametrize("pk", ["x", [1], {"a": 1}, 10**30, None, "\x00"])
    @pytest.mark.parametrize("model", ["testapp.customer", "testapp.order"])
    def test_keys_that_no_row_can_have(self, model, pk):
        with pytest.raises(DeserializationError, match="testapp"):
            load_result(stored_model(model, pk))

    def test_keep_to_the_limit_of_nesting(self, customer):
        assert through(nested(customer, 100)) == nested(customer, 100)


@pytest.mark.django_db(databases=["default", "other"])
def test_a_model_is_read_from_the_database_it_came_from():
    for alias in ("default", "other"):
        there = Customer.objects.using(alias).create(pk=77, name=alias)
        found = through(there)
        assert (found.name, found._state.db) == (alias, alias)


def test_an_outage_of_the_database_is_not_a_missing_row(unreachable):
    with pytest.raises(OperationalError):
        load_result(f"[{stored_model('testapp.customer', database=unreachable)}]")


@pytest.fixture
def unreachable(tmp_path, django_db_blocker):
    connections.settings["unreachable"] = connections.settings["default"] | {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(tmp_path / "no such folder" / "db.sqlite3"),
        "OPTIONS": {},
    }
    with django_db_blocker.unblock():
        yield "unreachable"
    del connections["unreachable"], connections.settings["unreachable"]


@pytest.fixture
def registered():
    """Lets a model of this module be found by its label, for one test."""
    names = []

    def register(model):
        apps.register_model("testapp", model)
        names.append(model._meta.model_name)
        return model

    yield register
    for name in names:
        del apps.all_models["testapp"][name]
    apps.clear_cache()


@pytest.mark.django_db
@isolate_apps("tests.testapp")
def test_a_proxy_stays_a_proxy(customer, registered):
    class Patron(Customer):
        class Meta:
            app_label = "testapp"
            proxy = True

    patron = registered(Patron).objects.get()
    assert type(through(patron)) is Patron
    assert plain(patron)["model"] == "testapp.patron"


@pytest.mark.django_db(transaction=True)
@isolate_apps("tests.testapp")
def test_a_composite_primary_key_is_kept(registered):
    class Line(models.Model):
        pk = models.CompositePrimaryKey("sheet", "number")
        sheet = models.UUIDField()
        number = models.IntegerField()

        class Meta:
            app_label = "testapp"

        def __str__(self):
            return "line"

    sheet = uuid4()
    with connection.schema_editor() as editor:
        editor.create_model(registered(Line))
    try:
        Line.objects.create(sheet=uuid4(), number=3)
        line = Line.objects.create(sheet=sheet, number=3)
        assert through(line).pk == (sheet, 3)
        assert plain(line)["pk"] == [str(sheet), 3]
        line.number = None
        with pytest.raises(SerializationError, match="is not saved"):
            dump_result(line)
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(Line)


any_text = st.text(st.characters(exclude_categories=())) | st.text(
    "a\x00\ud83d\ude00😀$"
)
json_atoms = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text
)
zones = st.none() | st.timezones() | st.builds(
    timezone,
    st.timedeltas(timedelta(hours=-23), timedelta(hours=23)),
    st.text("ABC", min_size=1),
)  # fmt: skip
folds = st.sampled_from([0, 1])
hashables = (
    json_atoms
    | st.builds(lambda bits, n: n << bits, st.integers(0, 20_000), st.integers())
    | st.binary()
    | st.dates()
    | st.timedeltas()
    | st.uuids()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.builds(datetime.replace, st.datetimes(), tzinfo=zones, fold=folds)
    | st.builds(time.replace, st.times(), tzinfo=zones, fold=folds)
    | st.sampled_from([*Colour, *Level, *Mood, *Size, *Access, Access(3), *Shelf.Side])
)
keys = st.recursive(
    hashables | st.just("$type"),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(inner, max_size=3)
        | st.builds(Money, inner, any_text)
    ),
    max_leaves=4,
)
tag_names = ["str", "int", "dict", "tuple", "set", "frozenset", "datetime", "date"]
tag_names += ["time", "timedelta", "uuid", "decimal", "bytes", "enum", "dataclass"]
tag_names += ["model", "lazy", "other"]
tag_details = ["value", "items", "parts", "hex", "zone", "name", "fold", "days"]
tag_details += ["seconds", "microseconds", "module", "class", "fields", "model"]
tag_details += ["pk", "database", "function", "arguments"]


def tag_looking(inner):
    return st.dictionaries(
        st.sampled_from(["$type", "value", "items", "args"]),
        st.sampled_from(tag_names) | inner,
    )


values = st.recursive(
    keys,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(any_text, inner, max_size=4)
        | st.sets(keys, max_size=4)
        | st.builds(Basket, st.lists(inner, max_size=2), st.integers())
        | tag_looking(inner)
    ),
    max_leaves=12,
)


class TestWhateverTheValue:
    @given(values)
    def test_it_comes_back_from_ascii_text(self, value):
        text = dump_result(value)
        assert text.isascii()
        assert exact(load_result(text)) == exact(value)

    @given(st.lists(values, max_size=3), st.dictionaries(any_text, values, max_size=3))
    def test_a_call_comes_back(self, args, kwargs):
        text = dump_call(args, kwargs)
        assert exact(load_call(text)) == exact((args, kwargs))
        assert dump_call(*load_call(text)) == text

    @given(values)
    def test_its_plain_view_is_that_of_its_text(self, value):
        shown = plain(value)
        assert shown == plain_result(dump_result(value))
        assert normalize_json(shown) == shown

    @given(
        st.recursive(
            json_atoms | st.text().map(str.encode) | st.sampled_from([*Level, *Mood]),
            lambda inner: (
                st.lists(inner)
                | st.lists(inner).map(tuple)
                | st.lists(inner).map(deque)
                | st.dictionaries(any_text, inner)
                | st.dictionaries(any_text, inner).map(UserDict)
            ),
        )
    )
    def test_its_plain_view_is_djangos_where_django_has_one(self, value):
        assert plain(value) == normalize_json(value)


hostile = st.recursive(
    json_atoms
    | st.sampled_from(
        [*tag_names, __name__, "Colour", "Access", "RED", "Europe/Madrid"]
    )
    | st.sampled_from(
        [f"{__name__}.Money", f"{__name__}.Basket", "gettext", "ngettext"]
    )
    | st.sampled_from(
        ["testapp.customer", "testapp.order", "auth.user", "default", "ff"]
    )
    | st.sampled_from(["2026-01-01", "2026-01-01T10:00+01:00", "10:00", "1e5", "AAAA"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(), inner, max_size=3)
        | st.fixed_dictionaries(
            {"$type": st.sampled_from(tag_names) | inner},
            optional=dict.fromkeys(tag_details, inner),
        )
        | st.fixed_dictionaries(
            {
                "$type": st.just("model"),
                "model": st.sampled_from(["testapp.customer", "testapp.order"]),
                "pk": inner,
                "database": st.just("default"),
            }
        )
        | st.fixed_dictionaries({"amount": inner, "currency": inner})
        | st.fixed_dictionaries({"message": inner})
    ),
    max_leaves=10,
)


@pytest.mark.django_db
class TestHostileText:
    @given(hostile)
    @settings(max_examples=500)
    def test_is_read_or_refused(self, node):
        for text in (json.dumps(node), json.dumps({"args": [node], "kwargs": {}})):
            for read in (load_result, load_call, plain_result, plain_call):
                with suppress(DeserializationError):
                    read(text)

    @given(st.text() | st.text('[]{}":,$type0123456789.eE-nulNaN\\u '))
    @example("\ufeff{}")
    @example("1e999")
    @example("[]]")
    def test_that_is_hardly_json(self, text):
        for read in (load_result, load_call, plain_result, plain_call):
            with suppress(DeserializationError):
                read(text)

    @given(values, st.data())
    def test_that_was_damaged(self, value, data):
        text = dump_result(value)
        at = data.draw(st.integers(0, len(text)))
        damaged = text[:at] + data.draw(st.text(max_size=3)) + text[at + 1 :]
        for read in (load_result, plain_result):
            with suppress(DeserializationError):
                read(damaged)


class FrozenDatetime(datetime):
    """What a frozen clock gives: a datetime that says no more than one."""


class PreciseDatetime(datetime):
    """What some libraries give: a datetime that says more than one."""

    def __eq__(self, other):
        return isinstance(other, PreciseDatetime)

    __hash__ = datetime.__hash__


class TestKinOfDatetime:
    def test_arrives_as_a_datetime_if_nothing_is_lost(self):
        moment = FrozenDatetime(2026, 10, 25, 2, 30, fold=1, tzinfo=MADRID)
        found = load_result(dump_result(moment))
        assert (type(found), found, found.fold) == (datetime, moment, 1)

    def test_is_refused_if_something_would_be(self):
        with pytest.raises(SerializationError, match="Unsupported type"):
            dump_result(PreciseDatetime(2026, 1, 1, tzinfo=UTC))


class TestWhereTimeZonesAreUsed:
    @pytest.fixture(autouse=True)
    def _zones_are_used(self):
        with override_settings(USE_TZ=True):
            yield

    @pytest.mark.parametrize("kind", [datetime, FrozenDatetime])
    def test_a_naive_datetime_is_refused(self, kind):
        with pytest.raises(SerializationError, match=r"^args.*\['at'\]: .*Unsupported"):
            dump_call([{"at": kind(2026, 1, 1)}], {})

    def test_dates_and_times_of_day_are_not_moments(self):
        for value in (date(2026, 1, 1), time(9, 30), datetime(2026, 1, 1, tzinfo=UTC)):
            assert load_result(dump_result(value)) == value

    def test_what_was_stored_before_can_still_be_read(self):
        with override_settings(USE_TZ=False):
            text = dump_result(datetime(2026, 1, 1))  # noqa: DTZ001
        assert load_result(text) == datetime(2026, 1, 1)  # noqa: DTZ001
