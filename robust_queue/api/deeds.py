"""What can be done over the API, and what it takes: a scope, or permissions.

A token has scopes. Staff who come with a session have the permissions of the admin.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that not everybody may do."""

    # Of a token: see ``robust_queue.scopes``.
    scope: str
    # Of a user, without the label of the app; all of them. None: no user may.
    permissions: tuple[str, ...] | None
    # Is anything changed by it? Not by a session, then, where the admin is read only.
    changes: bool = True


LOOK = Deed("read", ("view_job",), changes=False)
SEE_CONTENTS = Deed("read_arguments", ("view_arguments",), changes=False)
SEE_ALL = Deed("read_arguments", ("view_unredacted_arguments",), changes=False)
LOOK_AT_PROCESSES = Deed("read", ("view_process",), changes=False)
# To have the jobs named that processes run.
LOOK_AT_RUNS = Deed("read", ("view_claimedexecution",), changes=False)
LOOK_AT_RECURRING = Deed("read", ("view_recurringtask",), changes=False)
ENQUEUE = Deed("enqueue", ("add_job",))
RETRY = Deed("operate", ("retry_job",))
DISCARD = Deed("operate", ("discard_job",))
CANCEL = Deed("operate", ("cancel_job",))
RUN = Deed("operate", ("run_job",))
# An edit is the end of one job and the begin of another one, with all that is in it.
RERUN = Deed("operate", ("view_job", "view_arguments", "retry_job", "discard_job"))
# To write over arguments, and over such as are redacted. A user has to see them.
OVERWRITE = Deed("operate", ("view_arguments",))
OVERWRITE_ALL = Deed("operate", ("view_unredacted_arguments",))
# What is done to jobs, by the name of the verb.
TO_JOBS = {
    "retry": RETRY,
    "cancel": CANCEL,
    "run_now": RUN,
    "discard": DISCARD,
    "clear": DISCARD,
}
# Whoever may ask for an operation may end it: that is asked when it is known which.
STOP_OPERATION = Deed("operate", ())
# One whose verb only a later version knows, and what it takes to ask for it.
STOP_UNKNOWN = Deed("operate", None)
PAUSE = Deed("operate", ("pause_queue",))
MANAGE = Deed("operate", ("manage_process",))
ADD_RECURRING = Deed("operate", ("add_recurringtask",))
# It is told of in the answer.
RUN_RECURRING = Deed("operate", ("view_recurringtask", "run_job"))
CHANGE_RECURRING = Deed("operate", ("change_recurringtask",))
DELETE_RECURRING = Deed("operate", ("delete_recurringtask",))
WORK = Deed("work", None)
