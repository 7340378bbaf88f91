"""The project of the tests as a web server serves it."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.process_settings")

wsgi = get_wsgi_application()

from robust_queue.api import tally  # noqa: E402 (apps first)

# What is counted would be written behind the test, and stay there.
tally._later = lambda action: None
