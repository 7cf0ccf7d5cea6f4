"""Looking inside: pictures and tables of what a model is made of and what it does, drawn from the code that trains.

One subject a file: functions that compute, and functions that draw what was computed. `dragoman inspect` is
`cli/inspect.py`; a page can hold any of the figures by `figure.to_svg`.
"""
