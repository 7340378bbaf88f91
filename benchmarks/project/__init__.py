"""The Django project of the systems that need one."""
