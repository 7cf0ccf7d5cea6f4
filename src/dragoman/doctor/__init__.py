"""The corpus doctor: damage of a parallel corpus, found and repaired before anything is trained on it.

    examination = Examination(FilesSource(src="corpus.de", tgt="corpus.en"), "de", "en")
    diagnosis = examination.run()
    print(diagnosis.verdict, diagnosis.findings)

Files of any size are read once, and eight bytes a pair are kept. `fix` reads them twice more and writes what is left.
"""

from dragoman.doctor.examine import Examination, Identify
from dragoman.doctor.findings import EXIT_CODES, KINDS, Diagnosis, worst
from dragoman.doctor.fix import fix, require_new
from dragoman.doctor.shifts import Shift, Shifts

__all__ = [
    "EXIT_CODES",
    "KINDS",
    "Diagnosis",
    "Examination",
    "Identify",
    "Shift",
    "Shifts",
    "fix",
    "require_new",
    "worst",
]
