"""What the parties compute: surveys in memory."""
