"""Applications for web servers that also run the queue: for ASGI and for WSGI."""

import os

from django.core.asgi import get_asgi_application
from django.core.wsgi import get_wsgi_application

from robust_queue.embedding import with_lifespan

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.process_settings")

asgi = with_lifespan(get_asgi_application())
wsgi = get_wsgi_application()
