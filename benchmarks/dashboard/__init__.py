"""How long the pages of a dashboard take, on few jobs and on very many."""
