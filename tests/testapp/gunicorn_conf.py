"""What gunicorn is told, as the documentation has it."""

from robust_queue.embedding.gunicorn import post_worker_init, worker_exit

__all__ = ["post_worker_init", "worker_exit"]

workers = 2
threads = 2
graceful_timeout = 20
