"""What goes on in the shop while somebody looks: a job or two a second."""

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from .demonstration import place_order
from .models import Customer, Order
from .tasks import (
    DECLINED,
    Card,
    ask_supplier,
    call_courier,
    charge_card,
    count_stock,
    pack_parcel,
    refund,
    send_receipt,
)

PAUSE = 0.7
GOOD_CARD = Card(token="tok_4242", last_digits="4242")  # noqa: S106
BAD_CARD = Card(token=DECLINED, last_digits="0002")
# Of so many cards one is declined.
LUCK = 12


def sell_something() -> None:
    """Enqueue one job, as a customer would have it."""
    random.choice(EVENTS)()  # noqa: S311


def _order() -> Order:
    customer = Customer.objects.earliest("pk")
    return place_order(customer, f"{random.uniform(3, 90):.2f}")  # noqa: S311


def _charge() -> Any:
    is_declined = random.randrange(LUCK) == 0  # noqa: S311
    return charge_card.enqueue(_order(), BAD_CARD if is_declined else GOOD_CARD)


EVENTS: tuple[Callable[[], Any], ...] = (
    _charge,
    lambda: send_receipt.enqueue(_order()),
    lambda: pack_parcel.enqueue(random.randrange(1000)),  # noqa: S311
    lambda: count_stock.enqueue("mug", random.randrange(50)),  # noqa: S311
    lambda: call_courier.enqueue(random.randrange(1000)),  # noqa: S311
    lambda: ask_supplier.enqueue("teapot"),
    lambda: refund.enqueue(Decimal("5.00"), GOOD_CARD),
)
