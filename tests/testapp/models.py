"""What the tasks of the tests work on: a small shop."""

import uuid

from django.db import models


class Customer(models.Model):
    name = models.CharField(max_length=100)

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    customer = models.ForeignKey(
        Customer, on_delete=models.CASCADE, related_name="orders"
    )
    total = models.DecimalField(max_digits=10, decimal_places=2)

    def __str__(self) -> str:
        return f"{self.total} for {self.customer_id}"


class Mark(models.Model):
    """Left by a task, to be read by a test in another process."""

    label = models.CharField(max_length=100, db_index=True)
    pid = models.PositiveIntegerField()
    at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.label} by {self.pid}"
