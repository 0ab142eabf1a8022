"""Run by alembic. The connection comes from `faircount.storage.migrate`, with its transaction."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=True)
context.run_migrations()
