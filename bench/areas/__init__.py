"""The areas of the scoreboard by their names on the command line.

Each module has NAME (of its file of results), TITLE, run, wrong, tables and bars.
"""

from areas import compile_time, cortex_m, host, kernels, memory, survey, threads, training

AREAS = {"host": host, "training": training, "survey": survey, "threads": threads,
         "memory": memory, "compile": compile_time, "kernels": kernels, "cortex-m": cortex_m}
