"""The addresses of what runs the queue in tests: there are none."""

urlpatterns = []
