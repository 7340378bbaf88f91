PYTHON ?= python3

.DEFAULT_GOAL := help
.PHONY: help test test-long lint docs screenshots demo bench clean

help: ## List what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
	@echo
	@echo "ARGS='...' is passed on:  make test ARGS='--only py313-django61-sqlite -k retry'"
	@echo "RQ_FAST=1                 make test: Python 3.13 with Django 6.1 only"
	@echo "ARGS=\"--only '*'\"         make test: every version against every database"
	@echo "RQ_STRICT=1               make test: fail rather than leave anything out (so does CI=true)"
	@echo "RQ_POSTGRESQL_URL, RQ_MARIADB_URL name servers to use; see tests/services.py"

test: ## Run every test on three Pythons, three Djangos and three databases
	$(PYTHON) .ci/dev.py test $(ARGS)

test-long: ## Run the tests that take long, those in tests/long
	$(PYTHON) .ci/dev.py test-long $(ARGS)

lint: ## Check style, types and the direction of imports
	$(PYTHON) .ci/dev.py lint

docs: ## Build the documentation into docs/_build/html
	$(PYTHON) .ci/dev.py docs

screenshots: ## Take the pictures of the documentation anew
	$(PYTHON) .ci/dev.py screenshots

demo: ## See everything at work in one minute (DEMO_EXIT=1 ends by itself)
	$(PYTHON) .ci/dev.py demo $(ARGS)

bench: ## Measure speed beside the alternatives
	$(PYTHON) .ci/dev.py bench $(ARGS)

clean: ## Remove everything that was built
	rm -rf .venv .cache build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
