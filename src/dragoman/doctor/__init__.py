"""The corpus doctor: damage of a parallel corpus, found and repaired before anything is trained on it.

    from dragoman.doctor.examine import Examination

    examination = Examination(FilesSource(src="corpus.de", tgt="corpus.en"), "de", "en")
    diagnosis = examination.run()
    print(diagnosis.verdict, diagnosis.findings)

Files of any size are read once, and eight bytes a pair are kept. `fix` reads them twice more and writes what is left.
"""
