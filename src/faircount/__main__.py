"""`python -m faircount` is the command `faircount`."""

from faircount.cli import main

main()
