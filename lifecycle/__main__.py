"""``python -m lifecycle``."""

from lifecycle.cli.main import main

main()
