"""A job's way through the tables: one module per arrow, each one transaction.

::

                     ┌──────────────────── settle: to be tried again ─────────────┐
                     ▼                                                            │
    enqueue ──▶ scheduled ──dispatch──▶ ready ──claim──▶ claimed ──perform──▶ (outcome)
       └──────────────────────────────▶ ▲ ▲                 │                     │
                                        │ └─────release─────┘   finished ◀─settle─┤
                                        └────────retry───────── failed   ◀────────┘

    discard: scheduled, ready, blocked or failed ──▶ gone

``results`` tells where a job stands, ``announce`` tells the world.
"""
