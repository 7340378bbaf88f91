"""For supervisors whose dispatchers shall not wait long before they clear."""

from robust_queue.processes import upkeep

upkeep.FIRST_PAUSE = 0.5
