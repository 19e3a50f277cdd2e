"""Mutation testing of the packages that make requests and cuts: `python -m tests.mutation`.

Each mutant is a copy of the tree with one small change, for example `<=` instead of `<`. The tests that probably
fail run first on the mutant, then the others. A mutant that passes them all survives: either a test is missing,
or the change has no effect. `equivalent.json` lists changes without effect, each with its reason.

The first run records which blocks of code each test enters. Only the tests that enter the changed code then run.

Read `mutants` for the changes, `coverage` and `stages` for the choice of tests, and `workspace` for the runs.
"""
