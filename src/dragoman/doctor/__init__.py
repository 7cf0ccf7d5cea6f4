"""The corpus doctor: everything that can be seen to be wrong with a parallel corpus before anything is trained on it.

    examination = Examination(FilesSource(src="corpus.de", tgt="corpus.en"), "de", "en")
    diagnosis = examination.run()
    print(diagnosis.verdict, diagnosis.findings)

Files of any size are read once, side by side; what is kept of a pair are eight bytes. `fix` reads them twice again and
writes what is left of them.
"""

from dragoman.doctor.examine import Examination, HeldOut, Identify
from dragoman.doctor.findings import EXIT_CODES, KINDS, Diagnosis, Finding, worst
from dragoman.doctor.fix import FixReport, fix, require_new
from dragoman.doctor.shifts import Shift, Shifts

__all__ = [
    "EXIT_CODES",
    "KINDS",
    "Diagnosis",
    "Examination",
    "Finding",
    "FixReport",
    "HeldOut",
    "Identify",
    "Shift",
    "Shifts",
    "fix",
    "require_new",
    "worst",
]
