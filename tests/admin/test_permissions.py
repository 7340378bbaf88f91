"""Who may do what in the admin: each permission, each deed, and nothing besides.

What can be done is found in the registry of the admin, so that whatever is added is
asked about as well.
"""

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction

from .deeds import (
    TAKES,
    addresses,
    deeds,
    log_length,
    make_world,
    pages,
    tables,
)

EVERYTHING = {"confirmed": "1", "post": "yes", "order": "run", "database": "default"}


def viewer(*more):
    """Somebody who may see everything, and do what is named."""
    user = User.objects.create_user("ada", is_staff=True)
    seen = Permission.objects.filter(
        content_type__app_label="robust_queue", codename__startswith="view_"
    )
    done = Permission.objects.filter(codename__in=more)
    assert len(done) == len(more)
    user.user_permissions.set([*seen, *done])
    return user


def tried(browser, found):
    """What comes of each, before it is undone: has it changed anything, is it noted?"""
    before, noted = tables(), log_length()
    came = {}
    for name, deed in found.items():
        with transaction.atomic():
            status = browser.post(deed.address, deed.body).status_code
            came[name] = status, tables() != before, log_length() > noted
            transaction.set_rollback(True)
    return came


def done_by(browser, found):
    """The deeds of which anything comes."""
    return {name for name, came in tried(browser, found).items() if any(came[1:])}


class TestPermissions:
    def test_who_may_only_look_changes_nothing(self, root, browse):
        make_world()
        found = deeds(root)
        self._refuses(browse(viewer()), found)

    def test_nobody_changes_anything_if_it_is_for_reading_only(
        self, root, browse, settings
    ):
        make_world()
        found = deeds(root)
        settings.ROBUST_QUEUE = {"admin_read_only": True}
        self._refuses(browse(root), found)

    @staticmethod
    def _refuses(browser, found):
        before = tables()
        for name, deed in found.items():
            status = browser.post(deed.address, deed.body).status_code
            # Django passes over an action that somebody does not have.
            assert status == 403 or "action" in deed.body, name
            assert tables() == before, name
        for each in addresses():
            status = browser.post(each, EVERYTHING).status_code
            assert status in {400, 403} or each.endswith(HARMLESS), each
            assert tables() == before, each
        assert log_length() == 0

    def test_to_look_changes_nothing(self, root, browse):
        make_world()
        browser, before = browse(root), tables()
        asked = [deed.address for deed in deeds(root).values()]
        for each in {*asked, *addresses()}:
            assert browser.get(each, EVERYTHING).status_code < 500, each
            assert tables() == before, each
        assert log_length() == 0

    @pytest.mark.parametrize("permission", sorted(set(TAKES.values())))
    def test_a_permission_is_for_its_own_deeds(self, root, browse, permission):
        make_world()
        found = deeds(root)
        done = done_by(browse(viewer(permission)), found)
        assert done == {n for n, deed in found.items() if deed.takes == {permission}}

    def test_who_sees_nothing_does_nothing(self, root, browse):
        """What is allowed takes a page on which to do it."""
        make_world()
        found, blind = deeds(root), User.objects.create_user("ada", is_staff=True)
        acting_only = ["manage", "pause", "discard", "retry", "run", "cancel"]
        codenames = [*(TAKES[each] for each in acting_only), "view_arguments"]
        blind.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        # Who may do it to jobs may see operations.
        assert done_by(browse(blind), found) == {"stop"}

    def test_whatever_is_done_is_written_down(self, root, browse):
        make_world()
        for name, came in tried(browse(root), deeds(root)).items():
            # A new token is told in the answer itself, and nowhere else.
            status = 200 if name == "add a token" else 302
            assert came == (status, True, True), name


# Lists without an action, pages that only show, and the choice of a database.
HARMLESS = tuple(
    [f"/robust_queue/{name}/" for name in pages()] + ["/history/"],
)
