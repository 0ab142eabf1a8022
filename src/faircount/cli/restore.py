"""`faircount restore`, which stands beside `backup`."""

from faircount.cli.backup import restore as restore
