"""Mutation testing of the packages that make requests and cuts: `python -m tests.mutation`.

Each mutant is a copy of the tree with one small change, for example `<=` instead of `<`. The tests that probably
fail run first on the mutant, then the others. A mutant that passes them all survives: either a test is missing,
or the change has no effect. `equivalent.json` lists changes without effect, each with its reason.

Read `mutants` for the changes, `stages` for the order of tests, and `workspace` for the runs.
"""
