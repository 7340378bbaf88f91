"""The pages of the admin in a browser: as people see them, and as they press them."""
