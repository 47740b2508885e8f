"""Files of reference cases (../shared/cases) through the public functions: `python -m tests.reference_cases FILE…`.

A kind of case is a function that reads the case and gives what it expects and what we got, in one shape. It knows
fields, never ids: any file of the format can be run.
"""
