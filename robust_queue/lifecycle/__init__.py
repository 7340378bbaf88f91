"""A job's way through the tables: one module per arrow, each one transaction.

::

    enqueue ──▶ scheduled ──dispatch──▶ ready ──claim──▶ claimed ──perform──▶ (outcome)
       └──────────────────────────────▶  ▲                  │                     │
                                         └─────release──────┘   finished ◀─settle─┤
                                                                failed   ◀────────┘

    discard: scheduled, ready, blocked or failed ──▶ gone

``results`` tells where a job stands, ``announce`` tells the world.
"""
