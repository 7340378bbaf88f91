"""Families: how a supervisor gets its children and runs its errands."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from uuid import UUID, uuid4

from .children import Child
from .errands import Errand, Work
from .life import Birth
from .page import Page
from .posts import Post


class Family(ABC):
    """Whose members are processes, or threads of one process."""

    @abstractmethod
    def prepare(self) -> None:
        """Get ready for the first birth."""

    @abstractmethod
    def bear(self, birth: Birth) -> Child:
        """Begin a life."""

    @abstractmethod
    def errand(self, work: Work, *, database: str) -> Errand:
        """Work that is to be done while the supervisor goes on."""

    def beget(
        self, post: Post, *, supervisor_id: UUID, wake_supervisor: Callable[[], None]
    ) -> Child:
        """Fill a post. Who comes goes on with what was wished of the one before."""
        page = Page(post.slots, slot_size=post.slot_size)
        page.show_tuning(post.tuning)
        return self.bear(
            Birth(
                post=post,
                identity=uuid4(),
                supervisor_id=supervisor_id,
                page=page,
                wake_supervisor=wake_supervisor,
            )
        )
