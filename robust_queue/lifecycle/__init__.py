"""A job's way through the tables: one module per arrow, each one transaction.

::

                     ┌──────────────────── settle: to be tried again ─────────────┐
                     ▼                                                            │
    enqueue ──▶ scheduled ──dispatch──▶ ready ──claim──▶ claimed ──perform──▶ (outcome)
       └──────────────────────────────▶ ▲ ▲                 │                     │
                                        │ └─────release─────┘   finished ◀─settle─┤
                                        └────────retry───────── failed   ◀────────┘

    discard: scheduled, ready, blocked or failed ──▶ gone
    rerun:   scheduled, ready, blocked or failed ──▶ gone, with a new job in its place
    clear:   finished or failed, long ago ──▶ gone
    cancel:  scheduled, ready or blocked ──▶ failed; claimed ──▶ asked to end

``selection`` tells which jobs are meant where many are, ``results`` where a job stands,
and ``announce`` tells the world.
"""
