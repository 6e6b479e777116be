"""The command line: flags in, one call, exit code out. One module per command, imported when it is asked for."""
