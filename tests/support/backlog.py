"""Deep backlogs, made by the database itself."""

from django.db import connections

_NUMBERS = {
    "postgresql": "SELECT n FROM generate_series(1, {count}) AS numbers (n)",
    "mysql": "SELECT seq AS n FROM seq_1_to_{count}",
    "sqlite": "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1"
    " FROM numbers WHERE n < {count}) SELECT n FROM numbers",
}
_IDS = {
    "postgresql": "gen_random_uuid()",
    "mysql": "UUID()",
    "sqlite": "lower(hex(randomblob(16)))",
}
_QUEUES = {
    "postgresql": "'queue_' || (n %% 5)",
    "mysql": "CONCAT('queue_', n %% 5)",
    "sqlite": "'queue_' || (n %% 5)",
}


def fill(count, using="default", *, queue=None, partition=""):
    """So many ready jobs of three priorities, spread over five queues or in one."""
    connection = connections[using]
    vendor = connection.vendor
    numbers = _NUMBERS[vendor].format(count=count)
    now = connection.ops.adapt_datetimefield_value(_now())
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO robust_queue_jobs (id, task_path, backend, queue_name,"
            " priority, arguments, metadata, concurrency_key, partition_key,"
            f" enqueued_at) SELECT {_IDS[vendor]}, 'tests.testapp.tasks.note',"
            f" 'default', COALESCE(%s, {_QUEUES[vendor]}), n %% 3, %s, '', '', %s, %s"
            f" FROM ({numbers}) given",
            [queue, '{"args":[],"kwargs":{}}', partition, now],
        )
        cursor.execute(
            "INSERT INTO robust_queue_ready_executions"
            " (job_id, queue_name, priority, attempts, created_at, partition_key)"
            " SELECT id, queue_name, priority, 0, enqueued_at, partition_key"
            " FROM robust_queue_jobs"
        )


def analyze(using="default"):
    """Fresh statistics."""
    connection = connections[using]
    tables = "robust_queue_jobs, robust_queue_ready_executions"
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute(f"ANALYZE TABLE {tables}")
            cursor.fetchall()
        else:
            cursor.execute("ANALYZE")


def _now():
    from django.utils import timezone

    return timezone.now()
