"""What the shop does in the background.

Nothing leaves the machine: a receipt is a line of text, a photo a pair of numbers.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, Sum
from django.utils import timezone

from robust_queue import (
    Concurrency,
    Unique,
    exponential,
    external_task,
    recurring,
    storable,
    task,
)
from robust_queue.compat import TaskContext

from .models import Order

DECLINED = "tok_declined"
IN_STOCK = {"teapot": 3, "mug": 48}


@storable
@dataclass(frozen=True)
class Card:
    """What the payment provider gave in exchange for a card, never its number."""

    token: str
    last_digits: str


@storable
@dataclass(frozen=True)
class Coupon:
    """A share of the price that need not be paid, for a while."""

    code: str
    share: Decimal
    valid_until: datetime


class CardDeclinedError(Exception):
    """The bank said no. Asking again would not help."""


@task(queue_name="mail")
def send_receipt(order: Order) -> str:
    """Tell the customer what was bought. A model arrives as it is stored by then."""
    order.receipt_sent_at = timezone.now()
    order.save(update_fields=["receipt_sent_at"])
    return f"{order.total} to {order.customer.email}"


@task
def charge_card(order: Order, card: Card) -> str:
    """Take the money, unless the bank declines the card."""
    if card.token == DECLINED:
        raise CardDeclinedError(f"The card ending in {card.last_digits} was declined.")
    order.paid_at = timezone.now()
    order.save(update_fields=["paid_at"])
    return f"{order.total} from the card ending in {card.last_digits}"


@task
def redeem_coupon(order: Order, coupon: Coupon, at: datetime) -> Decimal:
    """Lower the total of an order; return the new one, as the Decimal it is."""
    if at <= coupon.valid_until:
        order.total = (order.total * (1 - coupon.share)).quantize(Decimal("0.01"))
        order.save(update_fields=["total"])
    return order.total


@task(queue_name="photos", priority=10)
def resize_photo(name: str, size: tuple[int, int], width: int) -> tuple[int, int]:
    """Return the size a photo has once it is that wide."""
    return width, round(size[1] * width / size[0])


@task(queue_name="reports", priority=20)
def nightly_report(day: date) -> dict[str, int | Decimal]:
    """Count the orders of a day and add them up."""
    orders = Order.objects.filter(placed_at__date=day)
    found = orders.aggregate(count=Count("pk"), sum=Sum("total", default=0))
    return {"orders": found["count"], "total": round(found["sum"], 2)}


@task
async def ask_supplier(article: str) -> int:
    """Ask how many are in stock; tasks may be coroutines."""
    await asyncio.sleep(0.05)
    return IN_STOCK.get(article, 0)


class BankAwayError(Exception):
    """The bank does not answer. Asking again later may help."""


@task(
    takes_context=True,
    max_attempts=3,
    backoff=[0.3],
    retry_on=BankAwayError,
    discard_on=CardDeclinedError,
)
def refund(context: TaskContext[..., Any], amount: Decimal, card: Card) -> str:
    """Give money back. The bank answers when it is asked for the second time."""
    if card.token == DECLINED:
        raise CardDeclinedError(f"The card ending in {card.last_digits} is gone.")
    if context.attempt == 1:
        raise BankAwayError("The bank does not answer.")
    return f"{amount} to the card ending in {card.last_digits}"


@task(timeout=0.3)
async def wait_for_supplier(article: str) -> int:
    """Ask one who never answers; nobody waits for longer than that."""
    await asyncio.sleep(3600)
    return IN_STOCK[article]


@task(isolation="process")
def render_catalogue(pages: int, *, is_broken: bool = False) -> str:
    """Heavy work in a process of its own, which may even crash."""
    if is_broken:
        os.abort()
    return f"{pages} pages"


@task(queue_name="parcels", max_attempts=20, backoff=exponential(0.5, cap=2))
def pack_parcel(number: int) -> str:
    """Take a while. If the worker dies meanwhile, another one begins anew."""
    time.sleep(0.4)
    return f"parcel {number}"


def _label(parcel: int, address: list[str]) -> str:
    """Return the label of a parcel as SVG."""
    raise NotImplementedError


# Drawn by a program in another language: see ``example_project/node_worker``.
draw_label = external_task(
    "draw-label",
    queue_name="labels",
    signature=_label,
    max_attempts=5,
    timeout=60,
)


@task(concurrency=Concurrency(key=lambda article, count: article))
def count_stock(article: str, count: int) -> str:
    """Of each article only one count at a time: the next one waits for its slot."""
    time.sleep(0.1)
    return f"{count} of {article}"


@task(concurrency=Concurrency(key="index", on_conflict="discard"))
def rebuild_index() -> str:
    """While one is waiting or running, another would be in vain."""
    return "the index is fresh"


@task(unique=Unique(by="arguments"))
def greet_customer(name: str) -> str:
    """However often it is asked for: once is enough."""
    return f"Welcome, {name}!"


@task(rate_limit="10/s")
def call_courier(parcel: int) -> str:
    """The courier's machine answers ten times a second at most."""
    return f"parcel {parcel} is announced"


@task(concurrency=Concurrency(key="warehouse"))
async def count_warehouse(hall: int, minutes: int) -> str:
    """Takes its time. The next hall waits until this one is counted."""
    await asyncio.sleep(60 * minutes)
    return f"hall {hall}"


@task(queue_name="reports")
def print_catalogue(minutes: int) -> str:
    """The press does not hear that it is told to stop."""
    time.sleep(60 * minutes)
    return "printed"


@task(queue_name="letters")
def write_letter(name: str) -> str:
    """By hand. In the demonstration nobody serves this queue."""
    return f"Dear {name}, ..."


@recurring(schedule="0 3 * * *", key="tidy up", timezone="Europe/Madrid")
@task(queue_name="reports")
def forget_old_carts() -> str:
    """Every night at three, whatever becomes of the clocks."""
    return "No cart is older than a week"


@task
def strike_bell() -> str:
    """Recurs as soon as somebody says so."""
    return "Ding"
