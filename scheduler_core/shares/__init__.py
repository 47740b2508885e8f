"""Share calculators by their names in the field: pure functions of numbers, exact (integers and fractions) inside.

They know nothing of the engine, and the default policy uses none of them: they say what other schedulers would divide,
allow or take, for comparisons and for policies of other kinds.
"""
