"""A believable load for the shop, and what should become of each task.

Each function enqueues what it is named after and returns it as scenes.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.db import transaction
from django.utils import timezone

from robust_queue import cancel, enqueue_all
from robust_queue.models import Job, RecurringExecution, ScheduledExecution

from .models import Customer, Order
from .tasks import (
    DECLINED,
    Card,
    Coupon,
    ask_supplier,
    call_courier,
    charge_card,
    count_stock,
    greet_customer,
    nightly_report,
    rebuild_index,
    redeem_coupon,
    refund,
    render_catalogue,
    resize_photo,
    send_receipt,
    wait_for_supplier,
)

PHOTOS = {"teapot": (3000, 2000), "mug": (1200, 1600), "saucer": (800, 800)}
DELAY = timedelta(seconds=0.8)
TOGETHER = timedelta(seconds=0.1)


class PaymentRefusedError(Exception):
    """Raised to roll a transaction back."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A task that was enqueued, and where its job should end."""

    shows: str
    result: Any
    ends: str = "finished"

    @property
    def job(self) -> Job:
        return Job.objects.with_state().get(pk=self.result.id)

    @property
    def is_as_expected(self) -> bool:
        return self.job.state == self.ends

    @property
    def outcome(self) -> str:
        """What the task returned or raised, in one line."""
        self.result.refresh()
        job = self.job
        if job.state == "failed":
            return str(job.failed_execution.message)
        return str(self.result.return_value) if self.result.is_finished else ""


def enqueue_everything() -> list[Scene]:
    """Enqueue the whole load; nothing runs yet."""
    ada = Customer.objects.create(name="Ada", email="ada@example.org")
    order = place_order(ada, "19.90")
    return [
        *reports(),
        *one_transaction(ada),
        *a_delay(order),
        *arguments_of_many_types(order),
        *photos(),
        *a_declined_card(order),
        *a_coroutine(),
        *refunds(),
        *work_of_its_own(),
        *what_is_ended(order),
        *limits(),
    ]


def reports() -> Iterator[Scene]:
    """Enqueued in the wrong order: the smallest number runs first."""
    for priority in (30, -30, 0):
        report = nightly_report.using(priority=priority)
        result = report.enqueue(timezone.now().date())
        yield Scene(f"priority {priority}", result)


def one_transaction(customer: Customer) -> Iterator[Scene]:
    """The order and its task are committed together."""
    with transaction.atomic():
        order = place_order(customer, "38.50")
        result = send_receipt.enqueue(order)
    yield Scene("committed with its order", result)


def a_delay(order: Order) -> Iterator[Scene]:
    later = send_receipt.using(run_after=DELAY)
    yield Scene(f"{DELAY.total_seconds()} seconds later", later.enqueue(order))


def arguments_of_many_types(order: Order) -> Iterator[Scene]:
    now = timezone.now()
    coupon = Coupon("TEATIME", Decimal("0.10"), valid_until=now + timedelta(days=1))
    result = redeem_coupon.enqueue(order, coupon, at=now)
    yield Scene("model, dataclass, moment", result)


def photos() -> Iterator[Scene]:
    """Many at once, in one transaction and few statements."""
    calls = [resize_photo.bind(name, size, 640) for name, size in PHOTOS.items()]
    for result in enqueue_all(calls):
        yield Scene("one of many at once", result)


def a_declined_card(order: Order) -> Iterator[Scene]:
    card = Card(token="tok_4242", last_digits="4242")  # noqa: S106
    yield Scene("a card that is good", charge_card.enqueue(order, card))
    card = Card(token=DECLINED, last_digits="0002")
    yield Scene("a task that fails", charge_card.enqueue(order, card), "failed")


def a_coroutine() -> Iterator[Scene]:
    yield Scene("a coroutine", ask_supplier.enqueue("teapot"))


def refunds() -> Iterator[Scene]:
    """The one is tried again, the other is of no use any more."""
    card = Card(token="tok_4242", last_digits="4242")  # noqa: S106
    yield Scene("tried again after a while", refund.enqueue(Decimal("5.00"), card))
    card = Card(token=DECLINED, last_digits="0002")
    dropped = refund.enqueue(Decimal("5.00"), card)
    yield Scene("dropped, as declared", dropped, "failed")


def work_of_its_own() -> Iterator[Scene]:
    """In processes of their own, one of which crashes and harms nobody."""
    yield Scene("a process of its own", render_catalogue.enqueue(120))
    crashed = render_catalogue.enqueue(120, is_broken=True)
    yield Scene("a crash that harms nobody", crashed, "failed")


def what_is_ended(order: Order) -> Iterator[Scene]:
    late = wait_for_supplier.enqueue("teapot")
    yield Scene("takes too long", late, "failed")
    unwanted = send_receipt.enqueue(order)
    cancel(unwanted)
    yield Scene("cancelled before it runs", unwanted, "failed")


def limits() -> Iterator[Scene]:
    """So many at a time, only one of a kind, and not too fast."""
    for count in (1, 2):
        yield Scene("one at a time", count_stock.enqueue("mug", count))
    yield Scene("the first of its key", rebuild_index.enqueue())
    yield Scene("in conflict with it", rebuild_index.enqueue(), "failed")
    for _ in range(2):
        greeting = greet_customer.enqueue("Ada")
    yield Scene("asked for twice, run once", greeting)
    for parcel in range(3):
        yield Scene("ten a second at most", call_courier.enqueue(parcel))


def roll_back() -> None:
    """An order that is taken back takes its task along."""
    with suppress(PaymentRefusedError), transaction.atomic():
        order = place_order(Customer.objects.get(), "1000.00")
        send_receipt.enqueue(order)
        raise PaymentRefusedError


def place_order(customer: Customer, total: str) -> Order:
    return Order.objects.create(
        customer=customer, total=Decimal(total), placed_at=timezone.now()
    )


def wait_for_delayed() -> None:
    """Wait until the latest of the delayed tasks is due."""
    latest = ScheduledExecution.objects.order_by("-scheduled_at").first()
    if latest:
        left = latest.scheduled_at - timezone.now()
        time.sleep(max(left.total_seconds(), 0))


def promises(scenes: list[Scene]) -> dict[str, bool]:
    """What must be true when everything has run, in plain words."""
    return {
        "Every task reached the state it should.": all(
            scene.is_as_expected for scene in scenes
        ),
        "The order that was rolled back left no task behind.": (
            _enqueued_by_hand() == len(scenes)
        ),
        "Reports ran by priority, the smallest number first.": (
            _ran_by_priority(scenes)
        ),
        "The delayed receipt did not run before its time.": _waited(scenes),
    }


def _enqueued_by_hand() -> int:
    # It may be three o'clock.
    recurred = RecurringExecution.objects.filter(job_id__isnull=False)
    return Job.objects.exclude(pk__in=recurred.values("job_id")).count()


def _ran_by_priority(scenes: list[Scene]) -> bool:
    reports = [s.result for s in scenes if s.result.task.name == "nightly_report"]
    in_order = sorted(reports, key=lambda result: result.task.priority)
    moments = [result.started_at for result in in_order]
    # Those that are taken together begin together, in threads of their own.
    return None not in moments and all(
        later > sooner - TOGETHER for sooner, later in pairwise(moments)
    )


def _waited(scenes: list[Scene]) -> bool:
    delayed = [s.result for s in scenes if s.result.task.run_after]
    return all(r.started_at and r.started_at >= r.task.run_after for r in delayed)
