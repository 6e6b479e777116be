"""A fortnight on a small platform, day by day: users who write, the real command, and books of its own.

    policy    the figures of each class as a table, and the same as YAML
    platform  users' hands on the disk: logs, foreign files, links, each remembered
    jobs      who writes what: one generator for each kind of job
    days      what happens on which day
    command   the real command, in processes that need not import it anew each time
    stored    the tiers as plain tools read them
    journal   what the catalog says, read with plain SQL
    books     what must be where, and why; compared with all of the above after each run
    simulate  fourteen days of it

``python -m tests.acceptance.fortnight --scale 20 --keep DIR`` runs a larger one by hand; docs/fortnight.md tells more.
"""
